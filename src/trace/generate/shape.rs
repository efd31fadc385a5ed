//! The shapes that a trace can be made to, each with what can be set of it.

use core::fmt;

use super::agents::{self, Tasks};
use super::completion::{self, Buffers};
use super::frame::Frame;
use super::noisy::{self, Neighbour};
use super::rag::{self, Passages};
use super::{Arrivals, Draw, MultiTenant, batch, chat};
use crate::trace::Trace;
use crate::units::Time;

/// Which shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShapeKind {
    /// Questions behind their tenants' system prompts.
    #[default]
    MultiTenant,
    /// Sessions that grow by turns.
    Chat,
    /// Questions behind passages.
    Rag,
    /// A shared preamble and growing transcripts.
    Agents,
    /// Buffers up to the cursor.
    Completion,
    /// Tenants, and one in bursts.
    NoisyNeighbour,
    /// All at once, or in waves.
    Batch,
}

/// Something that can be set of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knob {
    /// Its name.
    pub key: &'static str,
    /// What it is unless it is set.
    pub default: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// Whether it is a whole number.
    pub whole: bool,
    /// What it is.
    pub help: &'static str,
}

const fn whole(key: &'static str, default: u32, min: u32, max: u32, help: &'static str) -> Knob {
    Knob { key, default: default as f64, min: min as f64, max: max as f64, whole: true, help }
}

const fn real(key: &'static str, default: f64, min: f64, max: f64, help: &'static str) -> Knob {
    Knob { key, default, min, max, whole: false, help }
}

impl ShapeKind {
    /// Every shape: its name, what it is, and what can be set of it.
    pub const ALL: [(&'static str, ShapeKind, &'static str, &'static [Knob]); 7] = [
        ("multi-tenant", ShapeKind::MultiTenant, "questions behind their tenants' system prompts", &[]),
        (
            "chat",
            ShapeKind::Chat,
            "sessions that grow by turns",
            &[
                real("turns", 5.0, 1.0, 100.0, "turns of a session in the mean"),
                real("think", 10.0, 0.0, 3600.0, "seconds between two turns in the mean"),
            ],
        ),
        (
            "rag",
            ShapeKind::Rag,
            "questions behind passages, some found often",
            &[
                whole("passages", 200, 1, 100_000, "passages there are"),
                whole("top", 4, 1, 64, "passages of a prompt"),
                whole("tokens", 128, 1, 8192, "tokens of a passage"),
                real("skew", 1.0, 0.0, 5.0, "Zipf exponent over passages"),
                whole("sorted", 0, 0, 1, "1: in one order; 0: shuffled"),
            ],
        ),
        (
            "agents",
            ShapeKind::Agents,
            "a preamble that all share, and transcripts that grow by steps",
            &[
                real("steps", 8.0, 1.0, 100.0, "steps of a task in the mean"),
                whole("preamble", 1000, 1, 65_536, "tokens of the preamble"),
                whole("tool", 200, 1, 8192, "tokens of a tool's answer in the mean"),
                real("pause", 2.0, 0.0, 3600.0, "seconds between two steps in the mean"),
            ],
        ),
        (
            "completion",
            ShapeKind::Completion,
            "code completion over buffers that stay",
            &[
                whole("buffers", 8, 1, 1000, "open buffers of a tenant"),
                whole("tokens", 800, 16, 65_536, "tokens of a buffer when it is opened"),
                whole("typed", 6, 1, 512, "tokens typed between two proposals, at most"),
            ],
        ),
        (
            "noisy-neighbour",
            ShapeKind::NoisyNeighbour,
            "multi-tenant, and one more tenant in bursts of long prompts of its own",
            &[
                real("share", 0.3, 0.0, 1.0, "the neighbour's part of the requests"),
                whole("tokens", 1500, 1, 131_072, "tokens of its prompts"),
                real("on", 10.0, 0.1, 86_400.0, "seconds of a burst"),
                real("off", 30.0, 0.0, 86_400.0, "seconds between two bursts"),
            ],
        ),
        (
            "batch",
            ShapeKind::Batch,
            "offline work, all there at once or in waves",
            &[
                whole("wave", 0, 0, 1_000_000, "requests of a wave; 0: all in one"),
                real("gap", 60.0, 0.0, 86_400.0, "seconds between two waves"),
            ],
        ),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        ShapeKind::ALL[self as usize].0
    }

    /// What can be set of it.
    pub fn knobs(self) -> &'static [Knob] {
        ShapeKind::ALL[self as usize].3
    }
}

/// The most knobs of a shape.
const KNOBS: usize = 5;

/// A shape with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    kind: ShapeKind,
    values: [f64; KNOBS],
}

impl Default for Shape {
    fn default() -> Shape {
        ShapeKind::default().into()
    }
}

impl From<ShapeKind> for Shape {
    fn from(kind: ShapeKind) -> Shape {
        let mut values = [0.0; KNOBS];
        for (value, knob) in values.iter_mut().zip(kind.knobs()) {
            *value = knob.default;
        }
        Shape { kind, values }
    }
}

impl Shape {
    /// Which it is.
    pub fn kind(&self) -> ShapeKind {
        self.kind
    }

    /// Reads `NAME` or `NAME:KEY=VALUE,…`, or says what is wrong.
    pub fn parse(text: &str) -> Result<Shape, String> {
        let (name, settings) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let names = ShapeKind::ALL.map(|row| row.0);
        let Some(row) = ShapeKind::ALL.into_iter().find(|row| row.0 == name) else {
            return Err(format!(
                "found `{name}`; it is {}, with :KEY=VALUE,… where one likes",
                names.join(" | ")
            ));
        };
        let mut shape = Shape::from(row.1);
        for part in settings.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let Some(at) = row.3.iter().position(|knob| knob.key == key.trim()) else {
                let keys: Vec<&str> = row.3.iter().map(|knob| knob.key).collect();
                let keys = if keys.is_empty() { "nothing".into() } else { keys.join(", ") };
                return Err(format!("found `{part}`; of {name} one sets {keys}"));
            };
            shape.set(at, value)?;
        }
        Ok(shape)
    }

    /// Sets what is the `at`-th of its knobs.
    pub fn set(&mut self, at: usize, text: &str) -> Result<(), String> {
        let knob = &self.kind.knobs()[at];
        let value = text.trim().parse().ok().filter(|value: &f64| {
            (knob.min..=knob.max).contains(value) && (!knob.whole || *value == libm::trunc(*value))
        });
        self.values[at] = value.ok_or_else(|| {
            format!(
                "found `{}={text}`; it is a {}number from {} to {}: {}",
                knob.key,
                if knob.whole { "whole " } else { "" },
                knob.min,
                knob.max,
                knob.help
            )
        })?;
        Ok(())
    }

    /// Tokens that a prompt of it has at most.
    pub fn longest_prompt(&self, base: &MultiTenant) -> u64 {
        let plain = base.longest_prompt();
        let (answer, v) = (base.output_tokens.1, &self.values);
        let most = |mean: f64| (4.0 * mean) as u64;
        match self.kind {
            ShapeKind::MultiTenant | ShapeKind::Batch => plain,
            ShapeKind::Chat => plain + most(v[0]) * (base.user_bytes.1 + answer),
            ShapeKind::Rag => plain + v[1] as u64 * v[2] as u64,
            ShapeKind::Agents => plain + v[1] as u64 + most(v[0]) * (answer + 2 * v[2] as u64),
            ShapeKind::Completion => plain + 2 * v[1] as u64 + v[2] as u64 + answer,
            ShapeKind::NoisyNeighbour => plain.max(v[1] as u64),
        }
    }

    /// Makes a trace of it.
    pub fn generate(&self, base: &MultiTenant, arrivals: &Arrivals) -> Trace {
        let (frame, v) = (Frame { base, arrivals }, &self.values);
        match self.kind {
            ShapeKind::MultiTenant => retimed(base, arrivals),
            ShapeKind::Chat => chat::generate(&frame, v[0], v[1]),
            ShapeKind::Rag => {
                let passages = Passages {
                    pool: v[0] as usize,
                    top: v[1] as usize,
                    tokens: v[2] as u64,
                    skew: v[3],
                    sorted: v[4] == 1.0,
                };
                rag::generate(&frame, passages)
            }
            ShapeKind::Agents => {
                let tasks = Tasks { steps: v[0], preamble: v[1] as u64, tool: v[2] as u64, pause: v[3] };
                agents::generate(&frame, tasks)
            }
            ShapeKind::Completion => {
                let buffers = Buffers { each: v[0] as usize, tokens: v[1] as u64, typed: v[2] as u64 };
                completion::generate(&frame, buffers)
            }
            ShapeKind::NoisyNeighbour => {
                let neighbour = Neighbour { share: v[0], tokens: v[1] as u64, on: v[2], off: v[3] };
                noisy::generate(&frame, neighbour)
            }
            ShapeKind::Batch => batch::generate(&frame, v[0] as usize, v[1]),
        }
    }
}

/// A multi-tenant trace; unless its arrivals are Poisson, with others, drawn from a stream of their own.
fn retimed(base: &MultiTenant, arrivals: &Arrivals) -> Trace {
    let mut trace = base.generate();
    if *arrivals != Arrivals::Poisson {
        let (mut draw, mut process) = (Draw::new(!base.seed), arrivals.at(base.rate));
        let mut times = core::iter::from_fn(|| process.next(&mut draw).and_then(Time::from_seconds));
        trace.requests.retain_mut(|request| match times.next() {
            Some(time) => {
                request.arrival = time;
                true
            }
            None => false,
        });
    }
    trace
}

/// As [`Shape::parse`] reads it: with what is not as it would be anyway.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        let set = self.kind.knobs().iter().zip(&self.values).filter(|(knob, value)| **value != knob.default);
        for (at, (knob, value)) in set.enumerate() {
            write!(f, "{}{}={value}", if at == 0 { ':' } else { ',' }, knob.key)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn base(requests: usize) -> MultiTenant {
        MultiTenant {
            requests,
            rate: 8.0,
            tenants: 6,
            skew: 0.0,
            hot_share: None,
            repeat: 6,
            user_bytes: (8, 32),
            output_tokens: (16, 32),
            seed: 7,
        }
    }

    pub fn frame(base: &MultiTenant) -> Frame<'_> {
        Frame { base, arrivals: &Arrivals::Poisson }
    }

    #[test]
    fn every_shape_is_what_its_seed_makes_it_and_within_its_bounds() {
        let base = base(300);
        for (name, kind, help, knobs) in ShapeKind::ALL {
            assert!(!help.is_empty() && knobs.len() <= KNOBS && kind.name() == name);
            let shape = Shape::from(kind);
            let trace = shape.generate(&base, &Arrivals::Poisson);
            assert_eq!(trace.requests.len(), 300, "{name}");
            assert!(trace.requests.is_sorted_by_key(|r| r.arrival), "{name}");
            let longest = trace.requests.iter().map(|r| r.prompt.len()).max().expect("300 requests") as u64;
            assert!(longest <= shape.longest_prompt(&base), "{name}: {longest}");
            assert_eq!(trace, shape.generate(&base, &Arrivals::Poisson), "{name}");
            let other = MultiTenant { seed: 8, ..base.clone() };
            assert_ne!(trace, shape.generate(&other, &Arrivals::Poisson), "{name}");
            let tokens =
                |r: &crate::trace::RequestSpec| r.prompt.tokens().is_some_and(|t| t.iter().all(|&t| t < 256));
            assert!(trace.requests.iter().all(tokens), "{name}: TinyGPT can compute it");
        }
        assert_eq!(Shape::default().generate(&base, &Arrivals::Poisson), base.generate());
    }

    #[test]
    fn arrivals_are_anothers_where_they_are_given() {
        let base = base(50);
        let given = Arrivals::Given((0..30).map(|i| Time(i * i)).collect());
        for (name, kind, ..) in ShapeKind::ALL {
            let trace = Shape::from(kind).generate(&base, &given);
            match kind {
                ShapeKind::MultiTenant | ShapeKind::Rag | ShapeKind::Completion => {
                    assert!(trace.requests.iter().map(|r| r.arrival.0).eq((0..30).map(|i| i * i)), "{name}");
                }
                _ => assert!(!trace.requests.is_empty(), "{name}"),
            }
        }
    }

    #[test]
    fn texts_read_back_and_what_is_wrong_is_said() {
        for text in ["multi-tenant", "chat", "chat:turns=3,think=0.5", "rag:sorted=1", "batch:wave=10"] {
            assert_eq!(Shape::parse(text).expect(text).to_string(), text);
        }
        assert_eq!(Shape::parse("chat:turns=5"), Ok(ShapeKind::Chat.into()));
        for (text, part) in [
            ("chatt", "multi-tenant | chat"),
            ("chat:turn=3", "one sets turns, think"),
            ("chat:turns=0", "from 1 to 100"),
            ("rag:top=2.5", "whole number from 1 to 64"),
            ("chat:turns=nan", "from 1 to 100"),
            ("multi-tenant:x=1", "one sets nothing"),
        ] {
            let problem = Shape::parse(text).expect_err(text);
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
