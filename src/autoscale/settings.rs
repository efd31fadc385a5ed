//! What an autoscaled run is set to, besides the experiment's own parameters; [`PARAMS`](super::PARAMS) says
//! what each means.

use super::fleet::Lifecycle;
use super::life::{StartUp, Victim};
use super::scaler::{Bounds, Overrides, Pending, ScalerKind, Surroundings};
use crate::coldstart::Bandwidth;
use crate::cost::roofline::BYTES;
use crate::fleet::Devices;
use crate::params::{BackendKind, Config, Problem};
use crate::policy::PolicyKind;
use crate::trace::generate::{Load, LoadShape as Shape};
use crate::units::{Span, Time};

/// The values; see [`PARAMS`](super::PARAMS) for what each means.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table of parameters documents each, once")]
pub struct Settings {
    pub scaler: Vec<ScalerKind>,
    pub min: u32,
    pub max: u32,
    pub scrape: f64,
    pub delay: f64,
    pub target: Option<f64>,
    pub tolerance: Option<f64>,
    pub interval: Option<f64>,
    pub down_window: Option<f64>,
    pub pending: Pending,
    pub shape: Shape,
    pub factor: f64,
    pub shape_at: f64,
    pub rise: f64,
    pub hold: f64,
    pub duration: f64,
    pub provisioning: f64,
    pub image: f64,
    pub process: f64,
    pub weights: Option<f64>,
    pub bandwidth: Bandwidth,
    pub compile: f64,
    pub warm_up: f64,
    pub warm_pool: u32,
    pub wake: f64,
    pub grace: f64,
    pub victim: Victim,
    pub mtbf: Option<f64>,
    pub fail_at: Option<f64>,
    pub preempt_at: Option<f64>,
    pub notice: f64,
    pub replace_at: Option<f64>,
    pub start_before_drain: bool,
    pub price: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            scaler: vec![ScalerKind::Fixed, ScalerKind::Hpa, ScalerKind::Keda, ScalerKind::Oracle],
            min: 1,
            max: 16,
            // As in vLLM's own example of a Prometheus configuration.
            scrape: 5.0,
            delay: 0.0,
            target: None,
            tolerance: None,
            interval: None,
            down_window: None,
            pending: Pending::Counted,
            shape: Shape::Step,
            factor: 4.0,
            shape_at: 300.0,
            rise: 60.0,
            hold: 600.0,
            duration: 1800.0,
            // A machine with a GPU stands by; the image is there; imports and compilation are cached: the
            // fast end of what is published (see coldstart::phases).
            provisioning: 0.0,
            image: 16.0,
            process: 34.0,
            weights: None,
            bandwidth: Bandwidth::default(),
            compile: 20.0,
            warm_up: 8.4,
            warm_pool: 0,
            wake: 2.0,
            // Kubernetes' terminationGracePeriodSeconds.
            grace: 30.0,
            victim: Victim::Youngest,
            mtbf: None,
            fail_at: None,
            preempt_at: None,
            // What AWS gives a spot instance.
            notice: 120.0,
            replace_at: None,
            start_before_drain: true,
            price: 0.0,
        }
    }
}

fn span(seconds: f64) -> Span {
    // The table's ranges are well within the clock.
    Span::from_seconds(seconds).unwrap_or(Span::ZERO)
}

impl Settings {
    /// What arrives over time, from a rate on.
    pub fn load(&self, rate: f64) -> Load {
        let Settings { shape, factor, shape_at: at, rise, hold, duration, .. } = *self;
        let rise = if shape == Shape::Step { 0.0 } else { rise };
        Load { shape, rate, factor, at, rise, hold, duration }
    }

    /// How few and how many replicas there may be.
    pub fn bounds(&self) -> Bounds {
        Bounds { min: self.min, max: self.max }
    }

    /// What is said for all scalers at once.
    pub fn overrides(&self) -> Overrides {
        let Settings { target, tolerance, interval, down_window, pending, .. } = *self;
        Overrides { target, tolerance, interval, down_window, pending }
    }

    /// How long the weights take, in seconds: as given, or the model's bytes ÷ bandwidth.
    pub fn weight_seconds(&self, config: &Config) -> f64 {
        let parameters = config.model.shape().parameters();
        self.weights.unwrap_or((parameters * BYTES) as f64 / self.bandwidth.rate().0)
    }

    /// How replicas start and end.
    pub fn lifecycle(&self, config: &Config) -> Lifecycle {
        let seconds = [
            self.provisioning,
            self.image,
            self.process,
            self.weight_seconds(config),
            self.compile,
            self.warm_up,
        ];
        Lifecycle {
            start: StartUp { spans: seconds.map(span) },
            pool: self.warm_pool,
            wake: span(self.wake),
            grace: span(self.grace),
            victim: self.victim,
        }
    }

    /// The time between scrapes.
    pub fn scrape_span(&self) -> Span {
        span(self.scrape)
    }

    /// How old a scrape is when a scaler sees it.
    pub fn delay_span(&self) -> Span {
        span(self.delay)
    }

    /// How long a machine that is taken away may go on.
    pub fn notice_span(&self) -> Span {
        span(self.notice)
    }

    /// When everything is replaced.
    pub fn replace_time(&self) -> Option<Time> {
        self.replace_at.and_then(Time::from_seconds)
    }

    /// What does not go together, in itself and with the experiment. `from_file`: what arrives is given.
    pub fn validate(&self, config: &Config, from_file: bool) -> Result<(), Problem> {
        let problem = |key: &str, problem: String| Err(Problem { key: key.into(), problem });
        if self.min > self.max {
            return problem(
                "min",
                format!("found {}, which is above max = {}; it is at most that", self.min, self.max),
            );
        }
        if !(self.min.max(1)..=self.max).contains(&config.replicas) {
            return problem(
                "replicas",
                format!(
                    "found {} to begin with; there are from {} to {} (min and max)",
                    config.replicas,
                    self.min.max(1),
                    self.max
                ),
            );
        }
        if config.devices == Devices::Shared || config.backend == BackendKind::TinyGpt {
            return problem(
                if config.devices == Devices::Shared { "devices" } else { "backend" },
                "replicas that come and go have devices of their own and are priced: devices separate, backend modelled".into(),
            );
        }
        let changing = |policy: &&PolicyKind| PolicyKind::of_changing_fleets().any(|own| own == **policy);
        if let Some(fixed) = config.policy.iter().find(|policy| !changing(policy)) {
            let names: Vec<&str> = PolicyKind::of_changing_fleets().map(PolicyKind::name).collect();
            return problem(
                "policy",
                format!(
                    "`{}` counts on a fleet whose replicas stay the same; here it is {}",
                    fixed.name(),
                    names.join(" | ")
                ),
            );
        }
        if config.routers > 1 {
            return problem("routers", format!("found {}; here one router sees who serves", config.routers));
        }
        for &kind in &self.scaler {
            if kind.reads_compute() && config.accelerator.is_none() {
                return problem(
                    "scaler",
                    format!(
                        "{} reads compute utilisation, which only an accelerator has (accelerator)",
                        kind.name()
                    ),
                );
            }
            let scaler = kind.build(&self.overrides(), &Surroundings::unknown());
            if let Some(window) = scaler.shortest_window().filter(|window| *window < self.scrape_span()) {
                return problem(
                    "scrape",
                    format!(
                        "found {} s, but {} looks at a window of {} s, which could be empty; a scrape is no longer than that",
                        self.scrape,
                        kind.name(),
                        window.seconds()
                    ),
                );
            }
        }
        if !from_file {
            let most = self.load(config.rate).most_requests();
            if most > MOST_REQUESTS {
                return problem(
                    "duration",
                    format!(
                        "{} s at up to {} requests a second are {most:.0} requests; there are at most {MOST_REQUESTS}",
                        self.duration,
                        self.load(config.rate).most()
                    ),
                );
            }
            if self.shape != Shape::Constant && self.shape != Shape::Diurnal && self.shape_at >= self.duration
            {
                return problem(
                    "shape_at",
                    format!(
                        "found {} s, when the last request has come: duration = {} s",
                        self.shape_at, self.duration
                    ),
                );
            }
        }
        for (key, at) in
            [("fail_at", self.fail_at), ("preempt_at", self.preempt_at), ("replace_at", self.replace_at)]
        {
            if let Some(at) = at.filter(|at| !from_file && *at >= self.duration) {
                return problem(
                    key,
                    format!("found {at} s; the run is over at duration = {} s", self.duration),
                );
            }
        }
        let all = Config { replicas: self.max + self.warm_pool, ..config.clone() };
        all.validate().map_err(|p| match p.key.as_str() {
            "blocks" => Problem { problem: format!("{} (max and warm_pool)", p.problem), ..p },
            _ => p,
        })
    }
}

/// Requests that are generated at most.
const MOST_REQUESTS: f64 = 2_000_000.0;
