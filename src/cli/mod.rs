//! The native command line: one file a command, `inputs` for what several of them read.
//!
//! Results go to standard output, everything else to standard error; wrong input is one line that
//! says what, where and what would be right, and exit code 2.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

mod autoscale;
mod calibrate;
mod cold_start;
mod compare;
mod cost;
mod equivalents;
mod export_config;
mod fork;
mod help;
mod inputs;
mod policies;
mod portrait;
mod recommend;
mod run;
mod scenario;
mod sweep;
mod trace;
mod traces;
mod whole_start;

/// Wrong input, in one line.
#[derive(Debug)]
pub struct UsageError(pub String);

impl<E: core::fmt::Display> From<E> for UsageError {
    fn from(error: E) -> UsageError {
        UsageError(error.to_string())
    }
}

/// Runs the command line with these arguments (without the program's name).
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let output = match dispatch(args.into_iter().collect()) {
        Ok(output) => output,
        Err(UsageError(message)) => {
            eprintln!("warmroute: {}", message.replace('\n', " "));
            return ExitCode::from(2);
        }
    };
    match std::io::stdout().lock().write_all(output.as_bytes()) {
        // Whoever reads us may stop reading.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("warmroute: standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

const COMMANDS: [&str; 16] = [
    "run",
    "compare",
    "scenario",
    "fork",
    "portrait",
    "trace",
    "sweep",
    "merge",
    "recommend",
    "equivalents",
    "autoscale",
    "policies",
    "export-config",
    "cost",
    "calibrate",
    "cold-start",
];

fn dispatch(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut args = args.into_iter();
    let Some(first) = args.next() else { return Ok(help::overview()) };
    let command = first.to_string_lossy().into_owned();
    let rest = args.collect();
    match command.as_str() {
        "-h" | "--help" | "help" => Ok(help::overview()),
        "-V" | "--version" => Ok(format!("warmroute {}\n", env!("CARGO_PKG_VERSION"))),
        "run" => run::main(rest),
        "portrait" => portrait::main(rest),
        "trace" => trace::main(rest),
        "fork" => fork::main(rest),
        "cost" => cost::main(rest),
        "sweep" => sweep::main(rest),
        "merge" => sweep::merge(rest),
        "recommend" => recommend::main(rest),
        "equivalents" => equivalents::main(rest),
        "autoscale" => autoscale::main(rest),
        "compare" => compare::main(rest),
        "scenario" => scenario::main(rest),
        "export-config" => export_config::main(rest),
        "policies" => policies::main(rest),
        "calibrate" => calibrate::main(rest),
        "cold-start" => cold_start::main(rest),
        other => {
            let near = crate::params::nearest(other, COMMANDS)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Err(UsageError(format!("`{other}` is no command; there are {}{near}", COMMANDS.join(", "))))
        }
    }
}
