//! Help, made from the parameter table.

use crate::coldstart;
use crate::params::{Group, PARAMS, Param, knobs_of};
use crate::policy::PolicyKind;

/// `warmroute --help`.
pub fn overview() -> String {
    "\
warmroute: which replica should get this request?

Usage: warmroute COMMAND [OPTIONS]

Commands:
  run          serve one trace under several routing policies and compare them
  compare      any policies on one trace: where two first decide otherwise, what a threshold trades
  scenario     what users of the routers reported, run: the fault, and the fix
  fork         one run, and what it would have come to with one thing different from some time on
  sweep        the same over values of one or two parameters and many seeds
  merge        join the parts of a sweep that was shared out
  equivalents  how many round-robin replicas some prefix-affinity ones are worth
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
  --save-trace FILE
        Write the trace that was run, as JSON lines.
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

/// What makes a configuration: the trace, the preset and every parameter.
fn inputs() -> String {
    let mut text = "
Where it starts from:
  --trace FILE
        A trace as JSON lines: arrival (s), tokens (ids) or prompt (text), max_tokens, and
        optionally tenant and output. Without it, the trace is generated.
  --trace-block N
        The trace is Mooncake's JSON lines: timestamp (ms), input_length, output_length, hash_ids
        with an id for each N tokens. It has no tokens: only --backend modelled runs it, with a
        --block-size that divides N.
  --spread
        Spread arrivals out where the trace rounds them (Mooncake's to 3 s): each anywhere in its
        bucket, drawn from --seed, the order kept.
  --preset NAME
        Where the parameters start from: chapter (the chapter's experiment, the default) or
        tinygpt-wasm (the same offered load at the price of our own engine).
"
    .to_owned();
    for group in Group::ALL {
        text += &format!("\n{}:\n", group.title());
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

Cold start:
"
    .to_owned();
    text.extend(coldstart::PARAMS.iter().map(option));
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
    }
}
