//! Tests of the study: workers are played by running its jobs.

use super::settings::{Place, Refusal};
use super::words::{knee, scan_command, scanned, sweep_command, verdict};
use super::*;
use crate::params::{BackendKind, pairs};
use crate::plot::Format;
use crate::sweep::equivalents;

fn config(query: &str) -> Config {
    let (config, problems) = crate::params::from_query(query);
    assert_eq!(problems, vec![]);
    config
}

fn study(query: &str) -> Study {
    let (settings, problems) = Settings::from_pairs(pairs(query));
    assert_eq!(problems, vec![]);
    Study::new(settings)
}

/// Plays the workers: runs up to so many jobs of what is wanted, in the order in which they are given
/// out.
fn work(study: &mut Study, config: &Config, most: usize) {
    let (number, task) = study.wanted().expect("there is something to do");
    for job in task.jobs().into_iter().take(most) {
        let act = match &task {
            Task::Sweep(plan) => Act::Swept(number, vec![plan.run(None, job).expect("it fits the clock")]),
            Task::Scan(ask, _) => {
                let config = Config { seed: job, ..crate::params::from_query(&ask.query).0 };
                let found = equivalents(&config, None, ask.of, ask.by, ask.cap).expect("it fits the clock");
                Act::Found(number, vec![found])
            }
        };
        study.act(act, config);
    }
}

fn refusals(study: &Study, config: &Config) -> Vec<Refusal> {
    study.settings.plan(config).expect_err("it is refused")
}

#[test]
fn a_sweep_is_the_command_lines_whatever_the_page_computes() {
    let config = config("tenants=12&requests=30&slo_itl=0.2&backend=tinygpt&seed=3&policy=round-robin");
    let mut study = study("sweep_over=rate=2:8:3&sweep_seeds=2");
    study.act(Act::Run, &config);
    let sweep = study.sweep.as_ref().expect("it runs");
    assert_eq!(
        sweep_command(&sweep.plan),
        "warmroute sweep --over rate=2:8:3 --seeds 3..5 --requests 30 --tenants 12 --slo-itl 0.2"
    );
    assert_eq!(sweep.plan.settings[0], ("backend".into(), "modelled".into()));
    assert_eq!(study.wanted().expect("it is wanted").1.jobs(), [0, 2, 4, 1, 3, 5], "all points first");
    work(&mut study, &config, 99);
    let sweep = study.sweep.as_ref().expect("it ran");
    let all = (0..6).map(|job| sweep.plan.run(None, job).expect("it fits the clock")).collect();
    let whole = Results::new((*sweep.plan).clone(), all).expect("it is whole");
    assert_eq!((sweep.phase.clone(), sweep.whole()), (Phase::Done, Some(whole)));
    assert_eq!((sweep.runs(), study.wanted()), ((18, 18), None));
}

#[test]
fn what_was_cancelled_stays_as_far_as_it_came() {
    let config = config("slo_itl=0.2");
    let mut study = study("sweep_over=rate=1,8&sweep_seeds=3");
    study.act(Act::Run, &config);
    work(&mut study, &config, 3);
    study.act(Act::Cancel, &config);
    let (number, done) = (study.tasks, vec![Done { job: 5, runs: vec![[None; 8]; 3] }]);
    study.act(Act::Swept(number, done), &config);
    let sweep = study.sweep.as_ref().expect("it ran");
    assert_eq!((sweep.phase.clone(), sweep.runs(), study.wanted()), (Phase::Cancelled, (9, 18), None));
    assert!(sweep.whole().is_none());
    let n: Vec<usize> = sweep.results().cells.iter().map(|cell| cell.stats[0].n).collect();
    assert_eq!(n, [2, 2, 2, 1, 1, 1]);
    assert_eq!(verdict(sweep), "The sweep was ended; 9 of 18 runs are shown.");
}

#[test]
fn what_cannot_be_run_is_refused_where_it_was_typed() {
    let config = config("");
    let mut study = Study::default();
    for (part, text, place, words) in [
        (Part::From, "0", Part::From, "from 0.001"),
        (Part::From, "x", Part::From, "`x`"),
        (Part::From, "11", Part::To, "begins above its end"),
        (Part::To, "", Part::To, "``"),
        (Part::Step, "0", Part::Step, "above 0"),
        (Part::Step, "0.0001", Part::Step, "at most 1000"),
    ] {
        let before = study.settings.clone();
        study.act(Act::Edit(0, part, text.into()), &config);
        let found = refusals(&study, &config);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].place == Place::Range(0, place) && found[0].problem.contains(words), "{found:?}");
        assert_eq!(study.settings.ranges[0].clone().part(part), text, "nothing is lost");
        study.act(Act::Run, &config);
        assert!(study.sweep.is_none());
        study.settings = before;
    }
    study.act(Act::Seeds("5..5".into()), &config);
    study.act(Act::Edit(0, Part::To, "y".into()), &config);
    let places: Vec<Place> = refusals(&study, &config).into_iter().map(|r| r.place).collect();
    assert_eq!(places, [Place::Range(0, Part::To), Place::Seeds]);
    study.act(Act::Scan, &config);
    assert!(study.scan.is_none());
    study.act(Act::Edit(0, Part::To, "10".into()), &config);
    study.act(Act::Seeds("1000".into()), &config);
    assert!(refusals(&study, &config)[0].problem.contains("30000 runs; the page takes at most 20000"));
    study.act(Act::Seeds("1001".into()), &config);
    assert_eq!(refusals(&study, &config)[0].place, Place::Seeds);
    study.act(Act::Seeds("1".into()), &config);
    study.act(Act::Vary(1, Some("output_min")), &config);
    study.act(Act::Edit(1, Part::Values, "8,64".into()), &config);
    let found = refusals(&study, &config);
    assert!(found[0].place == Place::Plan && found[0].problem.contains("output_min=64"), "{found:?}");
}

#[test]
fn every_parameter_that_can_be_swept_has_values_to_begin_with() {
    let config = config("");
    let keys: Vec<&str> = settings::sweepable().map(|p| p.key).collect();
    assert!(
        keys.len() > 25 && ["policy", "seed", "backend", "clock", "top_k"].iter().all(|k| !keys.contains(k))
    );
    for param in settings::sweepable() {
        let axis = Range::suggested(param, &config).axis().unwrap_or_else(|e| panic!("{}: {e:?}", param.key));
        assert!(axis.values.len() >= 2, "{axis:?}");
    }
    let mut study = Study::default();
    study.act(Act::Vary(0, Some("replicas")), &config);
    study.act(Act::Vary(1, Some("devices")), &config);
    let plan = study.settings.plan(&config).expect("a good plan");
    assert_eq!((plan.points(), plan.over[1].values.clone()), (8, vec!["shared".into(), "separate".into()]));
    study.act(Act::Vary(1, Some("replicas")), &config);
    assert!(refusals(&study, &config)[0].problem.contains("twice"));
    study.act(Act::Vary(1, None), &config);
    assert_eq!(study.settings.ranges.len(), 1);
    study.act(Act::Vary(0, Some("rate")), &config);
    study.act(Act::List(0, true), &config);
    assert_eq!(study.settings.ranges[0].values, "1,2,3,4,5,6,7,8,9,10");
}

#[test]
fn settings_are_part_of_the_address() {
    assert_eq!(Settings::default().to_pairs(), vec![]);
    let query = "sweep_over=replicas=2,4&sweep_and=devices=shared,separate&sweep_seeds=0..5&sweep_policy=round-robin&sweep_figure=reuse";
    let settings = study(query).settings;
    let written: Vec<String> = settings.to_pairs().iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(written.join("&"), query);
    let (settings, problems) = Settings::from_pairs(pairs(
        "sweep_over=rte=1&sweep_and=top_k=3&sweep_seeds=x&sweep_policy=y&sweep_figure=z&sweep_x=1",
    ));
    assert_eq!((settings, problems.len()), (Settings::default(), 6));
    assert!(problems[0].to_string().starts_with("sweep_over: `rte` is no parameter; did you mean `rate`?"));
}

#[test]
fn the_knee_is_the_last_value_that_holds() {
    let config = config("tenants=48&devices=separate&requests=300");
    let mut study = study("sweep_over=rate=8:24:8&sweep_seeds=2");
    study.act(Act::Run, &config);
    work(&mut study, &config, 99);
    let sweep = study.sweep.as_ref().expect("it ran");
    let mut results = sweep.results();
    let words = |results: &Results| knee(results, 0, results.plan.policies[0]).expect("all is done");
    let mut set = |means: [f64; 3]| {
        for (at, mean) in means.into_iter().enumerate() {
            results.cells[3 * at].stats[5].mean = Some(mean);
        }
        words(&results)
    };
    assert_eq!(set([1.0, 0.95, 0.9]), "up to 16 requests/s (at 24: 90.0 %)");
    assert_eq!(set([0.2, 0.95, 0.97]), "from 16 requests/s on");
    assert_eq!(set([1.0, 0.5, 1.0]), "at 8, 24 requests/s");
    assert_eq!(set([1.0, 1.0, 1.0]), "at every value here, up to 24 requests/s");
    assert_eq!(set([0.1, 0.4, 0.3]), "nowhere here; at best 40.0 %, at 16 requests/s");
    assert!(
        verdict(sweep).starts_with("The sweep is over, 18 runs. 95 % of requests are good: round-robin ")
    );
    let charts = chart::charts(&sweep.results(), 5);
    assert_eq!((charts.len(), charts[0].series.len(), charts[0].x.range), (1, 3, Some((8.0, 24.0))));
    assert!(charts[0].discrete && charts[0].y.format == Format::Percent);
}

#[test]
fn a_second_parameter_has_a_plot_a_value() {
    let config = config("");
    let mut study = study("sweep_over=max_imbalance=1.5,inf&sweep_and=replicas=2,4&sweep_seeds=1");
    study.act(Act::Run, &config);
    work(&mut study, &config, 99);
    let results = study.sweep.as_ref().expect("it ran").results();
    let charts = chart::charts(&results, 6);
    let titles: Vec<&str> = charts.iter().map(|c| c.title.as_str()).collect();
    assert_eq!(titles, ["2 replicas", "4 replicas"]);
    assert_eq!(charts[0].x.names, ["1.5", "inf"]);
    let cell = results.cells.iter().find(|c| c.point == 3 && c.policy == PolicyKind::RoundRobin);
    assert_eq!(charts[1].series[0].points[1], (1.0, cell.and_then(|c| c.stats[6].mean).expect("it ran")));
}

#[test]
fn a_scan_says_what_replicas_are_worth_and_where_it_stopped() {
    let config = config("tenants=48&devices=separate&requests=200&rate=16");
    let mut study = study("sweep_seeds=2");
    study.act(Act::Run, &config);
    study.act(Act::Scan, &config);
    assert!(matches!(study.wanted(), Some((1, Task::Sweep(_)))), "one after the other");
    study.act(Act::Failed(1, "its worker died twice".into()), &config);
    assert_eq!(
        study.sweep.as_ref().map(verdict).as_deref(),
        Some("The sweep stopped: its worker died twice. 0 of 60 runs are shown.")
    );
    work(&mut study, &config, 99);
    let scan = study.scan.as_ref().expect("it ran");
    assert_eq!((scan.phase.clone(), scan.found.len(), scan.ask.cap), (Phase::Done, 2, 64));
    let own = Config { backend: BackendKind::Modelled, seed: 85, ..config.clone() };
    assert_eq!(scan.found[0], equivalents(&own, None, OF, BY, 64).expect("it fits the clock"));
    let told = scanned(scan);
    assert!(
        told[0].starts_with("4 prefix-affinity replicas are worth ") && told[1].contains(" against "),
        "{told:?}"
    );
    assert_eq!(
        scan_command(&scan.config, scan.seeds, 64),
        "warmroute equivalents --seeds 85..87 --requests 200 --rate 16 --tenants 48 --devices separate"
    );
}
