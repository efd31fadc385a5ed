//! Help, made from the parameter table.

use crate::autoscale;
use crate::coldstart;
use crate::params::{Group, PARAMS, Param, knobs_of};
use crate::policy::PolicyKind;
use crate::trace::generate::ShapeKind;
use crate::trace::import::Format;

/// `warmroute --help`.
pub fn overview() -> String {
    "\
warmroute: which replica should get this request?

Usage: warmroute COMMAND [OPTIONS]

Commands:
  run          serve one trace under several routing policies and compare them
  compare      any policies on one trace: where two first decide otherwise, what a threshold trades
  scenario     what users of the routers reported, run: the fault, and the fix
  portrait     what a trace is like, before anything is run
  trace        write a trace, generated or read, in our format or in Mooncake's
  fork         one run, and what it would have come to with one thing different from some time on
  sweep        the same over values of one or two parameters and many seeds
  merge        join the parts of a sweep that was shared out
  recommend    which policy with which thresholds, by how much, and what would change it
  equivalents  how many round-robin replicas some prefix-affinity ones are worth
  autoscale    one load under several scalers: how late, how bad, how dear
  policies     the routing policies, and what each can be tuned by
  export-config
               a policy with its values as the configuration of the router it comes from
  cost         what a step costs on accelerators, and how near that is to what was measured
  calibrate    measure what a step costs on this machine
  cold-start   how long a new replica's weights take to arrive

`warmroute COMMAND --help` lists a command's options.
"
    .to_owned()
}

/// `warmroute run --help`.
pub fn run() -> String {
    let mut text = "\
Serves one trace under several routing policies and compares them.

Usage: warmroute run [OPTIONS]

Input and output:
  --seeds N
        Run N seeds, counted up from --seed; print medians, spread, and what held how often.
  --json
        Print JSON: an array, one object a policy.
  --csv
        Print CSV: a row a policy; with --seeds, a row a policy and seed.
  --save-trace FILE
        Write the trace that was run, as JSON lines.
  --force
        Replace that file, if it is there with other content.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute portrait --help`.
pub fn portrait() -> String {
    let mut text = "\
Says what a trace is like, before anything is run: when requests arrive and how evenly, how long they
are, what of their prompts one infinite cache would have, how long it would have to keep it, and how
the prompts' beginnings are shared out.

Usage: warmroute portrait [OPTIONS] [FILE…]

Output:
  --json
        Print JSON: all of it, with the counts that a chart draws.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute trace --help`.
pub fn trace() -> String {
    let mut text = "\
Writes a trace, generated or read from files of any format.

Usage: warmroute trace [OPTIONS] [FILE…]

Output:
  --as FORMAT
        json-lines: our own, with everything that is known; or mooncake: timestamp (ms), lengths, and
        an id for each block [default: json-lines].
  --out-block N
        Tokens that an id of Mooncake's format stands for, where the trace has tokens [default: 512].
  --out FILE
        The file to write, whole or not at all [default: standard output].
  --force
        Replace that file, if it is there with other content.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute fork --help`.
pub fn fork() -> String {
    let mut text = "\
Runs one policy, and the same again with one thing different from some time on: up to there both are
one run. Steps are priced, not computed, which changes tokens but no time: --backend modelled and
--policy round-robin are the defaults here.

Usage: warmroute fork --at SECONDS --change KEY=VALUE [OPTIONS]

The fork and its output:
  --at SECONDS
        From when on, in simulated time; what happens at that time has happened.
  --change KEY=VALUE
        What is different: policy, replicas, max_imbalance, longest_prefix_guard, prefix_length,
        signal_period, signal_own, slo_ttft or slo_itl, as policy=prefix-affinity or replicas=6.
  --json
        Print JSON: an object with the figures of both.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute sweep --help`.
pub fn sweep() -> String {
    let mut text = "\
Runs one or two parameters over their values, under every policy, with every seed, on all cores, and
prints of each figure the mean and how far it spreads. The bytes do not depend on the number of
threads. Steps are priced, not computed: --backend modelled is the default here.

Usage: warmroute sweep --over KEY=VALUES [--over KEY=VALUES] [OPTIONS]

The sweep and its output:
  --over KEY=VALUES
        A parameter (any below but policy, seed, backend and clock) and its values: KEY=FROM:TO:STEP
        from FROM by STEP as far as TO, as rate=2:20:2, or a comma list, as replicas=2,4,8. One or
        two of them.
  --seeds FROM..TO
        The seeds of every point, TO not included: 0..100 are a hundred. Or N: so many from --seed
        on [default: 1].
  --shard I/N
        Run only the I-th of N parts, counted from 1, and write it to a file for `warmroute merge`.
        A part is the same wherever it is run, so that a batch system can share them out.
  --part FILE
        That file [default: sweep-I-of-N.part].
  --force
        Replace that file, if it is there and no earlier run of the same part.
  --threads N
        How many threads run [default: one a core].
  --csv
        Print CSV: a row a point, policy and figure, with n, mean, min, p10, p50, p90, max.
  --json
        Print JSON: an object with the sweep and, as `cells`, the same by point and policy.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute merge --help`.
pub fn merge() -> String {
    "\
Joins the parts of a sweep (`warmroute sweep --shard`) and prints what one run of it would have
printed, to the byte. Parts that are missing, there twice, damaged or of another sweep are refused.

Usage: warmroute merge [OPTIONS] PART…

Options:
  --csv   print CSV
  --json  print JSON
"
    .to_owned()
}

/// `warmroute recommend --help`.
pub fn recommend() -> String {
    let mut text = "\
Says which policy, with which thresholds, serves most requests within the objectives on this trace and
this fleet; the runner-up and by how much; and what load, objectives or replicas would change that.
Steps are priced, not computed. A threshold that is set stays as it is.

Usage: warmroute recommend [OPTIONS] [FILE…]

The comparison and its output:
  --seeds FROM..TO
        Generated traces of these seeds, TO not included; or N: so many from --seed on [default: 10].
  --parts N
        Of a trace from a file, so many consecutive parts are compared [default: 4].
  --json
        Print JSON: an object with all that was tried.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute equivalents --help`.
pub fn equivalents() -> String {
    let mut text = "\
Finds the smallest number of round-robin replicas that serve as many requests well (both objectives
met) as --replicas prefix-affinity ones do, on the same trace: scanned upwards from 1, since more are
not always better. Steps are priced, not computed.

Usage: warmroute equivalents [OPTIONS]

The comparison and its output:
  --of POLICY
        The policy that is to be reached, on --replicas replicas [default: prefix-affinity].
  --by POLICY
        The policy that is to reach it [default: round-robin].
  --cap N
        The most replicas to try; where they are not enough, it is said [default: 64].
  --seeds FROM..TO
        Traces of these seeds, TO not included; or N: so many from --seed on [default: 1].
  --json
        Print JSON: an array, one object a seed, with the fraction for each number tried.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute autoscale --help`.
pub fn autoscale() -> String {
    let mut text = "\
Serves one load with replicas that come and go, under several scalers, and says what each was worth:
requests outside the objectives while waiting for capacity, how late it came, what it cost, which
signal moved first, and what removing replicas took with it.

Usage: warmroute autoscale [OPTIONS]

Output:
  --decisions
        Print every decision that changed the number of replicas, with its reason and its numbers;
        with --json every decision.
  --samples
        Print every scrape of the signals.
  --reuse FROM:TO
        Print instead what going from FROM to TO replicas halfway does to prefix reuse under
        prefix-affinity, modulo-hash, consistent-hash and rendezvous-hash.
  --json
        Print JSON: an array, one object a policy and scaler.

Autoscaling:
"
    .to_owned();
    text.extend(autoscale::PARAMS.iter().map(option));
    text += "\nThe experiment starts from other defaults than those below:\n";
    let start: Vec<String> = super::autoscale::START
        .iter()
        .map(|(key, value)| format!("--{} {value}", key.replace('_', "-")))
        .collect();
    for line in wrap(&(start.join(" ") + " --policy least-tokens"), 88) {
        text += &format!("        {line}\n");
    }
    text + &inputs()
}

/// What makes a configuration: the trace, the preset and every parameter.
fn inputs() -> String {
    let mut text = "
Where it starts from:
  --trace FILE
        A trace, in place of a generated one. What it is, its first line tells (--format says it);
        several are merged, each from its own zero.
  --preset NAME
        Where the parameters start from: chapter (the chapter's experiment, the default) or
        tinygpt-wasm (the same offered load at the price of our own engine).
"
    .to_owned();
    text += &reading();
    for group in Group::ALL {
        text += &format!("\n{}:\n", group.title());
        if group == Group::Trace {
            text += &shapes();
        }
        for param in PARAMS.iter().filter(|p| p.group == group) {
            text += &option(param);
        }
        if group == Group::Policy {
            text += "  --POLICY.NAME VALUE\n";
            text +=
                "        A router's own parameter, as --dynamo.temperature 0.5 or --llm-d.prefix-weight 1;\n";
            text += "        `warmroute policies POLICY` lists them.\n";
        }
    }
    text
}

/// `warmroute compare --help`.
pub fn compare() -> String {
    let mut text = "\
Runs any set of policies on one trace and says what each came to, what each expected to be cached
against what was, and the first request that two of them send to different replicas, with why. Steps
are priced, not computed.

Usage: warmroute compare [OPTIONS]

Output:
  --curve
        Run each policy over the values of its own threshold too: hit rate against the busiest
        replica's share, the default marked.
  --json
        Print JSON: an object with policies, first_differences and curves.
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute scenario --help`.
pub fn scenario() -> String {
    "\
Runs what users of the routers reported: the fault, and where there is one, the fix. Without a name it
lists them; `all` runs all.

Usage: warmroute scenario [--json] [NAME…]

Output:
  --json
        Print JSON: an array, one object a scenario.
"
    .to_owned()
}

/// `warmroute export-config --help`.
pub fn export_config() -> String {
    let mut text = "\
Prints a policy with its values as the configuration of the router it comes from: flags, YAML or
environment, with what is assumed in comments.

Usage: warmroute export-config --policy POLICY [OPTIONS]
"
    .to_owned();
    text += &inputs();
    text
}

/// `warmroute policies --help`.
pub fn policies() -> String {
    "\
Lists the routing policies; with names, what each can be tuned by, with default, range and source.

Usage: warmroute policies [POLICY…]
"
    .to_owned()
}

/// A policy with its knobs.
pub fn policy(policy: PolicyKind) -> String {
    let mut text = format!("{}: {}\n", policy.name(), policy.summary());
    for (param, source) in knobs_of(policy) {
        text += &option(param);
        for line in wrap(&format!("Source: {source}."), 88) {
            text += &format!("        {line}\n");
        }
    }
    text
}

/// How a trace file is read, and what of it is run.
fn reading() -> String {
    let mut text = "
Reading a trace:
  --format NAME
        What the file is, where its first line does not tell or is to be overruled:
"
    .to_owned();
    for (name, _, title, what) in Format::ALL {
        text += &format!("          {name}: {title}: {what}\n");
    }
    text += "  --trace-block N
        Tokens that an id stands for, where they are not the format's usual ones (mooncake 512,
        bailian 16, kv-cache-tester 64); for access logs, texts and RAGPulse, the blocks that they
        are cut into (16). --block-size divides it. A trace of ids has no tokens: only --backend
        modelled runs it.
  --columns ROLE=COLUMN,…
        Which column of a CSV is what, by its name or number, where names do not tell. Roles: time,
        input, output, prompt, session, tenant. With numbers alone a file need have no header.
  --time-unit UNIT
        What numbers of time are in: s, ms, us or ns [default: by their size].
  --bytes-per-token N
        Bytes of an access log's text that count as a token [default: 1].
  --lengths FILE
        A side file of RAGPulse's, with the lengths of its segments; may be given several times.
  --skip-bad-lines
        Count lines that are wrong and pass over them, instead of ending at the first.
  --keep-failed
        Keep requests that generated nothing, which are rejected; else they are left out as failed.
  --spread
        Spread arrivals out where the trace rounds them (Mooncake's to 3 s): each anywhere in its
        bucket, drawn from --seed, the order kept.
  --from SECONDS, --to SECONDS
        Run only what arrives from then on and before then, counted from there.
  --sample FRACTION
        Run about this part of the sessions, drawn from --seed, each whole.
  --time-scale FACTOR
        Multiply times: 0.5 is twice as fast.
";
    text
}

/// The shapes of a generated trace.
fn shapes() -> String {
    let mut text = "  --shape NAME[:KEY=VALUE,…]
        What a generated trace is like [default: multi-tenant].
"
    .to_owned();
    for (name, _, what, knobs) in ShapeKind::ALL {
        text += &format!("          {name}: {what}\n");
        for knob in knobs {
            text += &format!(
                "            {} ({} to {}): {} [default: {}]\n",
                knob.key, knob.min, knob.max, knob.help, knob.default
            );
        }
    }
    text += "  --arrivals KIND
        When requests, or the sessions they belong to, begin: poisson, gamma:VARIATION (gaps' standard
        deviation over their mean; above 1 in bursts) or diurnal:PERIOD,SWING (seconds, 0 to 1)
        [default: poisson].
  --arrivals-from FILE
        At the times of another trace, as far as it goes (not with sweep and recommend).
";
    text
}

/// `warmroute cost --help`.
pub fn cost() -> String {
    let mut text = "\
Says what steps cost on accelerators and how many KV blocks their memory holds.

Usage: warmroute cost [OPTIONS]

Output:
  --fit
        Print instead how near the roofline comes to profiled steps.

Fleet (of these, only what a replica is and how it is run matters):
"
    .to_owned();
    text.extend(PARAMS.iter().filter(|p| p.group == Group::Fleet).map(option));
    text
}

/// `warmroute cold-start --help`.
pub fn cold_start() -> String {
    let mut text = "\
Says how long a new replica's weights take to arrive: bytes of weights ÷ bandwidth, and nothing
else, so a floor. GB is 10^9 bytes.

Usage: warmroute cold-start [OPTIONS]

Output:
  --json
        Print JSON: an object with the result and, as `table`, every model at every precision.
  --whole
        Print the whole of a cold start: from order to service with everything around the weights,
        what shortens it, what it means for a fleet, and published loading times against the floor.

Cold start:
"
    .to_owned();
    text.extend(coldstart::PARAMS.iter().map(option));
    text += "\nThe whole of a cold start (--whole), which has options of its own:\n";
    for (flag, help) in super::whole_start::FLAGS {
        text += &format!("  --{flag} VALUE\n");
        for line in wrap(help, 88) {
            text += &format!("        {line}\n");
        }
    }
    let names = |names: Vec<&str>| names.join(" | ");
    use crate::coldstart::{format::Format, phases::PRESETS, start::Route, techniques::Technique};
    for (flag, names) in [
        ("--format", names(Format::ALL.map(Format::name).to_vec())),
        ("--route", names(Route::ALL.map(Route::name).to_vec())),
        ("--with", names(Technique::ALL.map(Technique::name).to_vec())),
    ] {
        for line in wrap(&format!("{flag}: {names}"), 88) {
            text += &format!("        {line}\n");
        }
    }
    for preset in PRESETS {
        for line in wrap(&format!("--phases {}: {} ({})", preset.name, preset.what, preset.source), 88) {
            text += &format!("        {line}\n");
        }
    }
    text
}

/// One parameter's lines.
fn option<C: Clone + Default>(param: &Param<C>) -> String {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" in {}", param.unit) };
    let mut text = format!("  --{} VALUE{unit}\n", param.flag());
    let range = format!("{} {} [default: {}]", param.help, range(param), param.get(&C::default()));
    for line in wrap(&range, 88) {
        text += &format!("        {line}\n");
    }
    for (name, means) in param.choices() {
        text += &format!("          {name}: {means}\n");
    }
    text
}

fn range<C: Clone>(param: &Param<C>) -> String {
    let range = param.range();
    let mut chars = range.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    // A list of names keeps its case.
    if range.contains(" | ") { range + "." } else { first.chain(chars).collect::<String>() + "." }
}

/// Breaks a text at blanks into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coldstart::Settings;
    use crate::params::Config;

    fn has_every_parameter<C: Clone + Default>(text: &str, params: &[Param<C>]) {
        for param in params {
            let at =
                text.find(&format!("--{} VALUE", param.flag())).unwrap_or_else(|| panic!("{}", param.key));
            let default = format!("[default: {}]", param.get(&C::default()));
            let own = text[at..].split("\n  --").next().expect("a part").replace("\n        ", " ");
            assert!(own.contains(&default), "{}: {own}", param.key);
        }
    }
    #[test]
    fn every_parameter_is_in_the_help_with_its_default() {
        has_every_parameter::<Config>(&run(), &PARAMS);
        has_every_parameter::<Settings>(&cold_start(), &coldstart::PARAMS);
        has_every_parameter::<autoscale::Settings>(&super::autoscale(), &autoscale::PARAMS);
    }
}
