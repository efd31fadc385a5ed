//! What the reader asks of a sweep, as it was typed, and the plan that it makes.

use crate::params::{BackendKind, ClockKind, Config, Kind, PARAMS, Param, Problem, pairs, param, to_query};
use crate::policy::PolicyKind;
use crate::report::columns;
use crate::sweep::{Axis, Plan, Seeds};

/// The most runs (a point, a seed, a policy) of a sweep in the page; the command line takes more.
pub const MAX_RUNS: u64 = 20_000;

/// The most seeds.
pub const MAX_SEEDS: u64 = 1000;

/// The most values of the second parameter: each is a plot of its own.
pub const MAX_SECOND: usize = 12;

/// Parameters that change nothing where nothing is computed.
const IDLE: [&str; 3] = ["temperature", "top_k", "top_p"];

/// Parameters that a sweep can vary.
pub fn sweepable() -> impl Iterator<Item = &'static Param> {
    PARAMS
        .iter()
        .filter(|p| !IDLE.contains(&p.key) && Axis::parse(&format!("{}={}", p.key, sample(p))).is_ok())
}

/// Some value that a parameter takes, without commas.
fn sample(param: &Param) -> String {
    param.get(&Config::default()).split(',').next().unwrap_or_default().to_owned()
}

/// One of the texts that a range or a list is typed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Where a range begins.
    From,
    /// Where it ends.
    To,
    /// From each value to the next.
    Step,
    /// A list with commas.
    Values,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A text of the first or the second parameter.
    Range(usize, Part),
    /// How many seeds.
    Seeds,
    /// All of it together.
    Plan,
}

/// Why something cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where it was typed.
    pub place: Place,
    /// What was found and what would be right.
    pub problem: String,
}

/// A parameter and its values, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The parameter's key.
    pub key: &'static str,
    /// Whether its values are a list and not a range.
    pub list: bool,
    /// Where the range begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// From each value to the next.
    pub step: String,
    /// The list.
    pub values: String,
}

impl Range {
    /// From what stands behind the parameter's name on the command line: FROM:TO:STEP or a list.
    fn of(key: &'static str, text: &str) -> Range {
        let parts: Vec<&str> = text.split(':').map(str::trim).collect();
        let (from, to, step, list) = match parts[..] {
            [from, to, step] => (from, to, step, false),
            _ => ("", "", "", true),
        };
        let values = if list { text.trim() } else { "" };
        let [from, to, step, values] = [from, to, step, values].map(str::to_owned);
        Range { key, list, from, to, step, values }
    }

    /// Values of a parameter that are worth a look, where it stands at a configuration.
    pub fn suggested(param: &'static Param, config: &Config) -> Range {
        let known = match param.key {
            "rate" => "1:10:1",
            "requests" => "24,100,400",
            "replicas" => "1,2,4,8",
            "tenants" => "2,6,12,24,48",
            "skew" => "0:2:0.5",
            "hot_share" => "none,0.25,0.5,0.75",
            "blocks" => "96,192,384,768",
            "max_batch" => "2,4,8,16",
            "prefill_chunk" => "0,32,64,128",
            "prefix_length" => "16,64,256",
            "max_imbalance" => "1,1.25,1.5,2,4,inf",
            "longest_prefix_guard" => "1,1.5,2,4,inf",
            "signal_period" => "0,0.5,1,2,5",
            "routers" => "1,2,4,8,16",
            "cost" => "chapter-cpu,tinygpt-wasm",
            _ => "",
        };
        if !known.is_empty() {
            return Range::of(param.key, known);
        }
        let names: Vec<&str> = param.choices().iter().map(|(name, _)| *name).collect();
        let list = match param.kind {
            Kind::Integer { min, max } => {
                let at: u64 = param.get(config).parse().unwrap_or(min);
                around([at / 2, at, at.saturating_mul(2)].map(|v| v.clamp(min, max).to_string()))
            }
            Kind::Real { min, max, .. } => {
                let at: f64 = param.get(config).parse().unwrap_or(min);
                around([at / 2.0, at, at * 2.0].map(|v| v.clamp(min, max).to_string()))
            }
            _ => names.join(","),
        };
        Range::of(param.key, &list)
    }

    /// The same as the command line's `--over` has it, behind the parameter's name.
    pub fn text(&self) -> String {
        let trimmed = |text: &str| text.split_whitespace().collect::<String>();
        if self.list {
            trimmed(&self.values)
        } else {
            [&self.from, &self.to, &self.step].map(|part| trimmed(part)).join(":")
        }
    }

    /// The text of a part, to be changed.
    pub fn part(&mut self, part: Part) -> &mut String {
        match part {
            Part::From => &mut self.from,
            Part::To => &mut self.to,
            Part::Step => &mut self.step,
            Part::Values => &mut self.values,
        }
    }

    /// The parameter with its values, or which text is refused and why.
    pub fn axis(&self) -> Result<Axis, (Part, String)> {
        let mut part = Part::Values;
        if !self.list {
            let own = param(self.key).ok_or((Part::From, String::new()))?;
            for (part, text) in [(Part::From, &self.from), (Part::To, &self.to)] {
                own.set(&mut Config::default(), text).map_err(|p| (part, p.problem))?;
            }
            let number = |text: &str| text.trim().parse::<f64>().unwrap_or(f64::NAN);
            if !(number(&self.step) > 0.0 && number(&self.step).is_finite()) {
                return Err((
                    Part::Step,
                    format!("found `{}`; a step is a number above 0", self.step.trim()),
                ));
            }
            part = if number(&self.from) > number(&self.to) { Part::To } else { Part::Step };
        }
        let flag = format!("{}: ", self.key.replace('_', "-"));
        Axis::parse(&format!("{}={}", self.key, self.text()))
            .map_err(|p| (part, p.problem.strip_prefix(&flag).unwrap_or(&p.problem).to_owned()))
    }
}

/// Three values as a list, each once.
fn around(values: [String; 3]) -> String {
    let mut values = Vec::from(values);
    values.dedup();
    values.join(",")
}

/// What the reader asks, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The first parameter, which goes to the right in the plots, and the second, which has a plot a
    /// value.
    pub ranges: Vec<Range>,
    /// How many seeds, or from where to where.
    pub seeds: String,
    /// Under which policies.
    pub policies: Vec<PolicyKind>,
    /// Which of the [`columns`] is shown.
    pub figure: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            ranges: vec![Range::of("rate", "1:10:1")],
            seeds: "10".into(),
            policies: PolicyKind::RACE.to_vec(),
            figure: columns().iter().position(|c| c.key == "goodput_fraction").unwrap_or(0),
        }
    }
}

/// What the settings are called in the page's address: this, then their name.
pub const URL_PREFIX: &str = "sweep_";

impl Settings {
    /// What an address has to carry: only what differs from the defaults and can be run.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        let default = Settings::default();
        let mut pairs = Vec::new();
        let mut add = |name: &str, value: String| pairs.push((format!("{URL_PREFIX}{name}"), value));
        for (range, name) in self.ranges.iter().zip(["over", "and"]) {
            if !default.ranges.contains(range) && range.axis().is_ok() {
                add(name, format!("{}={}", range.key, range.text()));
            }
        }
        if self.seeds != default.seeds && Seeds::parse(&self.seeds, 0).is_ok() {
            add("seeds", self.seeds.split_whitespace().collect());
        }
        if self.policies != default.policies {
            add("policy", names(&self.policies));
        }
        if self.figure != default.figure {
            add("figure", columns()[self.figure].key.into());
        }
        pairs
    }

    /// What an address says, and what of it was not understood; that is left at its default.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> (Settings, Vec<Problem>) {
        let (mut settings, mut problems) = (Settings::default(), Vec::new());
        let mut second = None;
        for (key, value) in pairs {
            let result = match key.strip_prefix(URL_PREFIX).unwrap_or(&key) {
                "over" => read_range(&value).map(|range| settings.ranges[0] = range),
                "and" => read_range(&value).map(|range| second = Some(range)),
                "seeds" => Seeds::parse(&value, 0).map(|_| settings.seeds.clone_from(&value)),
                "policy" => {
                    let mut scratch = Config::default();
                    let policy = param("policy").map_or(Ok(()), |p| p.set(&mut scratch, &value));
                    policy.map(|()| settings.policies = scratch.policy)
                }
                "figure" => match columns().iter().position(|c| c.key == value) {
                    Some(figure) => {
                        settings.figure = figure;
                        Ok(())
                    }
                    None => {
                        let known = columns().map(|c| c.key).join(" | ");
                        Err(problem(&key, format!("found `{value}`; it is {known}")))
                    }
                },
                _ => Err(problem(
                    &key,
                    "no such setting of the sweep: over, and, seeds, policy, figure".into(),
                )),
            };
            problems.extend(result.err().map(|p| problem(&key, p.problem)));
        }
        settings.ranges.extend(second);
        (settings, problems)
    }

    /// The seeds; without a range they are counted from the configuration's own.
    pub fn seeds(&self, config: &Config) -> Result<Seeds, Refusal> {
        let refuse = |problem| Refusal { place: Place::Seeds, problem };
        let seeds = Seeds::parse(&self.seeds, config.seed).map_err(|p| refuse(p.problem))?;
        match seeds.count() {
            0..=MAX_SEEDS => Ok(seeds),
            count => Err(refuse(format!(
                "{count} seeds; the page takes at most {MAX_SEEDS}, the command line more"
            ))),
        }
    }

    /// The plan, at a configuration whose backend and clock are taken for modelled; or all that is in
    /// its way.
    pub fn plan(&self, config: &Config) -> Result<Plan, Vec<Refusal>> {
        let (mut over, mut refusals) = (Vec::new(), Vec::new());
        for (at, range) in self.ranges.iter().enumerate() {
            match range.axis() {
                Ok(axis) if at == 1 && axis.values.len() > MAX_SECOND => refusals.push(Refusal {
                    place: Place::Range(1, if range.list { Part::Values } else { Part::Step }),
                    problem: format!(
                        "{} values; each is a plot of its own, so it is at most {MAX_SECOND}",
                        axis.values.len()
                    ),
                }),
                Ok(axis) => over.push(axis),
                Err((part, problem)) => refusals.push(Refusal { place: Place::Range(at, part), problem }),
            }
        }
        let seeds = self.seeds(config).map_err(|refusal| refusals.push(refusal));
        let (Ok(seeds), true) = (seeds, refusals.is_empty()) else { return Err(refusals) };
        let mut settings = modelled_settings(config);
        settings.retain(|(key, _)| over.iter().all(|axis| axis.key != *key));
        let plan = Plan {
            version: env!("CARGO_PKG_VERSION").into(),
            preset: "chapter".into(),
            settings,
            over,
            policies: self.policies.clone(),
            seeds,
            trace: None,
        };
        let refuse = |problem| Err(vec![Refusal { place: Place::Plan, problem }]);
        let runs = plan.jobs().saturating_mul(plan.policies.len() as u64);
        if runs > MAX_RUNS {
            return refuse(format!(
                "{} points × {} seeds × {} policies are {runs} runs; the page takes at most {MAX_RUNS}, the command line more",
                plan.points(),
                plan.seeds.count(),
                plan.policies.len()
            ));
        }
        match plan.check() {
            Ok(()) => Ok(plan),
            Err(p) if p.key == "over" => refuse(p.problem),
            Err(p) => refuse(p.to_string()),
        }
    }
}

/// The parameters that differ from the defaults, as `warmroute sweep` would be given them.
pub fn modelled_settings(config: &Config) -> Vec<(String, String)> {
    let mut settings = vec![("backend".to_owned(), "modelled".to_owned())];
    let own = pairs(&modelled_query(config));
    settings
        .extend(own.into_iter().filter(|(key, _)| !["backend", "policy", "seed"].contains(&key.as_str())));
    settings
}

/// The query of a configuration that is priced and not computed.
pub fn modelled_query(config: &Config) -> String {
    to_query(&Config { backend: BackendKind::Modelled, clock: ClockKind::Modelled, ..config.clone() })
}

/// Policies as a list with commas.
pub fn names(policies: &[PolicyKind]) -> String {
    policies.iter().map(|p| p.name()).collect::<Vec<_>>().join(",")
}

fn problem(key: &str, problem: String) -> Problem {
    Problem { key: key.into(), problem }
}

/// `rate=2:20:2`, as an address has it.
fn read_range(text: &str) -> Result<Range, Problem> {
    let axis = Axis::parse(text)?;
    let values = text.split_once('=').map_or("", |(_, values)| values);
    let own = sweepable().find(|p| p.key == axis.key);
    let own = own.ok_or_else(|| problem("over", format!("`{}` changes nothing here", axis.key)))?;
    Ok(Range::of(own.key, values))
}
