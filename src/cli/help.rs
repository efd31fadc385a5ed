//! Help, made from the parameter table.

use crate::coldstart;
use crate::params::{Group, PARAMS, Param};

/// `warmroute --help`.
pub fn overview() -> String {
    "\
warmroute: which replica should get this request?

Usage: warmroute COMMAND [OPTIONS]

Commands:
  run         serve one trace under several routing policies and compare them
  cost        what a step costs on accelerators, and how near that is to what was measured
  calibrate   measure what a step costs on this machine
  cold-start  how long a new replica's weights take to arrive

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
  --trace FILE
        A trace as JSON lines: arrival (s), tokens (ids) or prompt (text), max_tokens, and
        optionally tenant and output. Without it, the trace is generated.
  --trace-block N
        The trace is Mooncake's JSON lines: timestamp (ms), input_length, output_length, hash_ids
        with an id for each N tokens. It has no tokens: only --backend modelled runs it, with a
        --block-size that divides N.
  --preset NAME
        Where the other options start from: chapter (the chapter's experiment, the default) or
        tinygpt-wasm (the same offered load at the price of our own engine).
  --seeds N
        Run N seeds, counted up from --seed; print medians, spread, and what held how often.
  --json
        Print JSON: an array, one object a policy.
  --save-trace FILE
        Write the trace that was run, as JSON lines.
"
    .to_owned();
    for group in Group::ALL {
        text += &format!("\n{}:\n", group.title());
        for param in PARAMS.iter().filter(|p| p.group == group) {
            text += &option(param);
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
