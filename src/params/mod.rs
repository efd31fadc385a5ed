//! Every parameter once: name, unit, default, range and help, from which the page's controls, the
//! URL, the command line, its help and the validation are made.
//!
//! [`Config`] holds the values; [`PARAMS`] describes them. The defaults are [`Config::default`]. A
//! [`Param`] is generic over the type that holds its value, so that a tool beside the experiment
//! (the cold-start calculator) has a table of the same kind.

use core::fmt;

mod config;
mod knobs;
mod query;
mod replica;
mod table;

pub use config::{BackendKind, ClockKind, Config, MAX_TRACE_TOKENS, Preset, SHAPE_KEYS};
pub use knobs::{all_params, knob_params, knobs_of, set, suggestion};
pub use query::{from_pairs, from_query, from_settings, once, pairs, to_query};
pub use replica::Blocks;
pub use table::PARAMS;

use crate::cost::Cost;
use crate::policy::PolicyKind;

/// What a parameter belongs to, for grouping controls and help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What arrives.
    Trace,
    /// What serves it.
    Fleet,
    /// Who decides.
    Policy,
    /// What counts as good.
    Objectives,
    /// How time and tokens come about.
    Run,
    /// A new replica's weights on their way: a calculator beside the experiment, so not in
    /// [`Group::ALL`].
    ColdStart,
    /// Replicas that come and go: a command of its own, so not in [`Group::ALL`].
    Autoscale,
}

impl Group {
    /// Every group of an experiment's parameters, in the order of controls and help.
    pub const ALL: [Group; 5] = [Group::Trace, Group::Fleet, Group::Policy, Group::Objectives, Group::Run];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Trace => "Trace",
            Group::Fleet => "Fleet",
            Group::Policy => "Policy",
            Group::Objectives => "Objectives",
            Group::Run => "Run",
            Group::ColdStart => "Cold start",
            Group::Autoscale => "Autoscaling",
        }
    }
}

/// What values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number in a range.
    Integer {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number in a range; `inf` too where that means something.
    Real {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
        /// Whether `inf` is a value.
        infinite: bool,
    },
    /// One of some names, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
    /// One or more policies.
    Policies,
    /// A price by name, or six numbers.
    Cost,
    /// A quantity by name, or as a number.
    Quantity {
        /// The names, each with what it means.
        names: &'static [(&'static str, &'static str)],
        /// What numbers there are besides, in words.
        number: &'static str,
    },
}

/// How a parameter reaches its value in a configuration.
pub(crate) enum Field<C = Config> {
    U32(fn(&mut C) -> &mut u32),
    U64(fn(&mut C) -> &mut u64),
    F64(fn(&mut C) -> &mut f64),
    OptU32(fn(&mut C) -> &mut Option<u32>),
    OptF64(fn(&mut C) -> &mut Option<f64>),
    /// A whole number, or `auto`.
    Blocks(fn(&mut C) -> &mut Blocks),
    /// Index into the names of a [`Kind::Choice`].
    Choice(fn(&C) -> usize, fn(&mut C, usize)),
    Policies(fn(&mut C) -> &mut Vec<PolicyKind>),
    Cost(fn(&mut C) -> &mut Cost),
    /// How a [`Kind::Quantity`] is written, read and counted.
    Quantity {
        get: fn(&C) -> String,
        /// Whether a text was understood; if not, nothing has changed.
        set: fn(&mut C, &str) -> bool,
        number: fn(&C) -> f64,
    },
    /// A number among many of a configuration, by its place; of a [`Kind::Choice`] the choice's place.
    Tuned {
        index: usize,
        get: fn(&C, usize) -> f64,
        set: fn(&mut C, usize, f64),
    },
}

/// One parameter of a configuration of type `C`.
pub struct Param<C: 'static = Config> {
    /// Its name in JSON and in the URL, in snake case; with hyphens it is the command line's.
    pub key: &'static str,
    /// Its name on the page.
    pub label: &'static str,
    /// Its unit; empty where it has none.
    pub unit: &'static str,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Where it belongs.
    pub group: Group,
    /// What values it takes.
    pub kind: Kind,
    /// Whether `none` is a value.
    pub optional: bool,
    pub(crate) field: Field<C>,
}

/// A value that a parameter cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The parameter's key.
    pub key: String,
    /// What was found and what would be right.
    pub problem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

/// The parameter of a key, written with hyphens or underscores.
pub fn param(key: &str) -> Option<&'static Param> {
    let key = key.replace('-', "_");
    all_params().find(|p| p.key == key)
}

/// The most characters of what somebody wrote that a message repeats.
const REPEATED: usize = 48;

/// What somebody wrote as a message repeats it: of a long text only the beginning.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The name that is nearest to one that does not exist, if any is near.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

impl<C: Clone> Param<C> {
    /// The flag on the command line, without its dashes.
    pub fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    /// The value in a configuration, as [`set`](Param::set) reads it.
    pub fn get(&self, config: &C) -> String {
        let config = &mut config.clone();
        match self.field {
            Field::U32(f) => f(config).to_string(),
            Field::U64(f) => f(config).to_string(),
            Field::F64(f) => f(config).to_string(),
            Field::OptU32(f) => f(config).map_or_else(|| "none".into(), |v| v.to_string()),
            Field::OptF64(f) => f(config).map_or_else(|| "none".into(), |v| v.to_string()),
            Field::Choice(get, _) => self.choices()[get(config)].0.to_owned(),
            Field::Blocks(f) => f(config).to_string(),
            Field::Policies(f) => f(config).iter().map(|p| p.name()).collect::<Vec<_>>().join(","),
            Field::Cost(f) => f(config).to_string(),
            Field::Quantity { get, .. } => get(config),
            Field::Tuned { index, get, .. } => match self.kind {
                Kind::Choice(names) => names[get(config, index) as usize].0.to_owned(),
                _ => get(config, index).to_string(),
            },
        }
    }

    /// The value as JSON: numbers as numbers, `none` and `inf` as null.
    pub fn json(&self, config: &C) -> serde_json::Value {
        let scratch = &mut config.clone();
        match self.field {
            Field::U32(f) => (*f(scratch)).into(),
            Field::U64(f) => (*f(scratch)).into(),
            Field::F64(f) => (*f(scratch)).into(),
            Field::OptU32(f) => (*f(scratch)).into(),
            Field::OptF64(f) => (*f(scratch)).into(),
            Field::Blocks(f) => match *f(scratch) {
                Blocks::Number(number) => number.into(),
                Blocks::Auto => "auto".into(),
            },
            Field::Policies(f) => f(scratch).iter().map(|p| p.name()).collect(),
            Field::Quantity { number, .. } => number(config).into(),
            Field::Tuned { index, get, .. } => match self.kind {
                Kind::Choice(_) => self.get(config).into(),
                Kind::Integer { .. } => (get(config, index) as u64).into(),
                _ => get(config, index).into(),
            },
            Field::Choice(..) | Field::Cost(_) => self.get(config).into(),
        }
    }

    /// Reads a value; the configuration is left as it was where the value is refused.
    pub fn set(&self, config: &mut C, text: &str) -> Result<(), Problem> {
        let text = text.trim();
        let none = self.optional && text == "none";
        match self.field {
            Field::U32(f) => *f(config) = self.integer(text)? as u32,
            Field::U64(f) => *f(config) = self.integer(text)?,
            Field::F64(f) => *f(config) = self.real(text)?,
            Field::OptU32(f) => *f(config) = if none { None } else { Some(self.integer(text)? as u32) },
            Field::OptF64(f) => *f(config) = if none { None } else { Some(self.real(text)?) },
            Field::Blocks(f) if text == "auto" => *f(config) = Blocks::Auto,
            Field::Blocks(f) => *f(config) = Blocks::Number(self.integer(text)? as u32),
            Field::Choice(_, set) => set(config, self.choice(text)?),
            Field::Policies(f) => *f(config) = self.policies(text)?,
            Field::Cost(f) => *f(config) = Cost::parse(text).ok_or_else(|| self.refuse(text))?,
            Field::Tuned { index, set, .. } => {
                let value = match self.kind {
                    Kind::Choice(_) => self.choice(text)? as f64,
                    Kind::Integer { .. } => self.integer(text)? as f64,
                    _ => self.real(text)?,
                };
                set(config, index, value);
            }
            Field::Quantity { set, .. } => {
                if !set(config, text) {
                    return Err(self.refuse(text));
                }
            }
        }
        Ok(())
    }

    /// The range in words.
    pub fn range(&self) -> String {
        let range = match self.kind {
            Kind::Integer { max: u64::MAX, .. } => "a whole number below 2^64".to_owned(),
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Real { min, max, infinite } => {
                format!("a number from {min} to {max}{}", if infinite { ", or inf" } else { "" })
            }
            Kind::Choice(choices) => choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" | "),
            Kind::Policies => {
                let names: Vec<&str> = PolicyKind::every().map(PolicyKind::name).collect();
                format!(
                    "{}, a comma list of them, all (the first five), production (the others) or every",
                    names.join(" | ")
                )
            }
            Kind::Cost => "chapter-cpu | tinygpt-wasm | six whole numbers of picoseconds with commas: \
                           prefill base, per token, per attended pair, decode base, per token, per pair"
                .to_owned(),
            Kind::Quantity { names, number } => {
                let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                format!("{} | {number}", names.join(" | "))
            }
        };
        match self.field {
            Field::Blocks(_) => format!("{range}, or auto"),
            _ if self.optional => format!("{range}, or none"),
            _ => range,
        }
    }

    fn refuse(&self, text: &str) -> Problem {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" ({})", self.unit) };
        Problem {
            key: self.key.into(),
            problem: format!("found `{}`; it is {}{unit}", shortened(text), self.range()),
        }
    }

    fn integer(&self, text: &str) -> Result<u64, Problem> {
        let Kind::Integer { min, max } = self.kind else { unreachable!("whole numbers have a range") };
        text.parse().ok().filter(|v| (min..=max).contains(v)).ok_or_else(|| self.refuse(text))
    }

    fn real(&self, text: &str) -> Result<f64, Problem> {
        let Kind::Real { min, max, infinite } = self.kind else { unreachable!("numbers have a range") };
        if infinite && ["inf", "infinity"].contains(&text.to_ascii_lowercase().as_str()) {
            return Ok(f64::INFINITY);
        }
        text.parse().ok().filter(|v| (min..=max).contains(v)).ok_or_else(|| self.refuse(text))
    }

    /// The names that a choice or a quantity has, and what they mean; empty for other kinds.
    pub fn choices(&self) -> &'static [(&'static str, &'static str)] {
        match self.kind {
            Kind::Choice(choices) | Kind::Quantity { names: choices, .. } => choices,
            _ => &[],
        }
    }

    fn choice(&self, text: &str) -> Result<usize, Problem> {
        self.choices().iter().position(|(name, _)| *name == text).ok_or_else(|| self.refuse(text))
    }

    fn policies(&self, text: &str) -> Result<Vec<PolicyKind>, Problem> {
        match text {
            "all" => return Ok(PolicyKind::ALL.to_vec()),
            "production" => return Ok(PolicyKind::PRODUCTION.to_vec()),
            "every" => return Ok(PolicyKind::every().collect()),
            _ => {}
        }
        let mut chosen = Vec::new();
        for name in text.split(',').map(str::trim) {
            let Some(policy) = PolicyKind::from_name(name) else {
                let mut problem = Problem {
                    key: self.key.into(),
                    problem: format!(
                        "found `{}`; it is a policy (round-robin, least-tokens, llm-d and {} others), a comma list of them, all, production or every",
                        shortened(name),
                        PolicyKind::every().count() - 3
                    ),
                };
                if let Some(near) = nearest(&shortened(name), PolicyKind::every().map(PolicyKind::name)) {
                    problem.problem += &format!("; did you mean `{near}`?");
                }
                return Err(problem);
            };
            if chosen.contains(&policy) {
                return Err(Problem { key: self.key.into(), problem: format!("`{name}` is named twice") });
            }
            chosen.push(policy);
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_reads_back_what_it_writes() {
        let config = Config::default();
        for param in &PARAMS {
            let mut copy = config.clone();
            let text = param.get(&config);
            param.set(&mut copy, &text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(copy, config, "{}", param.key);
            assert!(!param.help.is_empty() && !param.label.is_empty());
        }
    }

    #[test]
    fn keys_are_unique() {
        for (i, one) in PARAMS.iter().enumerate() {
            assert!(PARAMS[i + 1..].iter().all(|other| other.key != one.key), "{}", one.key);
        }
    }

    #[test]
    fn both_ends_of_every_range_are_taken_and_what_lies_beyond_is_not() {
        for param in &PARAMS {
            let (low, high, above) = match param.kind {
                Kind::Integer { max: u64::MAX, .. } => continue,
                Kind::Integer { min, max } => (min.to_string(), max.to_string(), (max + 1).to_string()),
                Kind::Real { min, max, .. } => (min.to_string(), max.to_string(), (max * 1.01).to_string()),
                _ => continue,
            };
            let mut config = Config::default();
            param.set(&mut config, &low).unwrap_or_else(|e| panic!("{e}"));
            param.set(&mut config, &high).unwrap_or_else(|e| panic!("{e}"));
            let before = config.clone();
            for bad in [above.as_str(), "-1e9", "nan", "", "x"] {
                let problem = param.set(&mut config, bad).expect_err(bad);
                assert!(problem.to_string().contains(param.key) && problem.problem.contains("from"));
            }
            assert_eq!(config, before, "a refused value changes nothing");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_answered_with_the_nearest_name() {
        let policy = param("policy").expect("it exists");
        let problem = policy.set(&mut Config::default(), "round-robbin").expect_err("no such policy");
        assert!(problem.problem.contains("did you mean `round-robin`?"), "{problem}");
        assert_eq!(nearest("max-imbalanse", PARAMS.iter().map(|p| p.key)), Some("max_imbalance"));
        assert_eq!(nearest("zzz", PARAMS.iter().map(|p| p.key)), None);
    }

    #[test]
    fn no_guard_is_inf() {
        let guard = param("max-imbalance").expect("it exists");
        let mut config = Config::default();
        guard.set(&mut config, "inf").expect("inf is a value");
        assert_eq!((config.max_imbalance, guard.get(&config).as_str()), (f64::INFINITY, "inf"));
        assert!(guard.json(&config).is_null());
    }
}
