//! `warmroute cold-start`: how long a new replica's weights take to arrive.

use std::ffi::OsString;

use lexopt::prelude::*;
use serde::Serialize;

use super::inputs::unknown;
use super::{UsageError, help};
use crate::coldstart::{LEFT_OUT, PARAMS, Precision, Row, Settings, rate_text, rows, seconds_text};
use crate::report::markdown;

struct Options {
    settings: Settings,
    json: bool,
    help: bool,
}

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options { settings: Settings::default(), json: false, help: false };
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.json = true,
            Long("whole") => {}
            Long(flag) => {
                let Some(param) = PARAMS.iter().find(|p| p.flag() == flag) else {
                    let flags = PARAMS.iter().map(|p| p.key).chain(["json", "help"]);
                    return Err(unknown(flag, "cold-start", flags));
                };
                let text = parser.value()?.string()?;
                param
                    .set(&mut options.settings, &text)
                    .map_err(|p| UsageError(format!("--{}: {}", param.flag(), p.problem)))?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let asks = |what: &str| args.iter().any(|arg| arg == what);
    if asks("--whole") && !asks("--help") && !asks("-h") {
        return super::whole_start::main(args);
    }
    let options = parse(args)?;
    Ok(match options {
        Options { help: true, .. } => help::cold_start(),
        Options { json: true, settings, .. } => json(&settings),
        Options { settings, .. } => text(&settings),
    })
}

fn text(settings: &Settings) -> String {
    let transfer = settings.transfer();
    let mut table = vec![vec!["model".to_owned()]];
    table[0].extend(Precision::SIZES.map(|(_, names)| names.to_owned()));
    for row in rows(settings) {
        let mut cells = vec![row.model.clone()];
        cells.extend(Precision::SIZES.map(|(precision, _)| seconds_text(row.cell(precision).seconds)));
        table.push(cells);
    }
    let seconds = transfer.seconds();
    let note = if settings.precision == Precision::Int4 { " (int4: the scales are not counted)" } else { "" };
    format!(
        "{}{note}\n{seconds:.6} seconds for {} of weights\n\nPure transfer at {} (GB = 10^9 bytes):\n\n{}\nA floor. Not in it:\n{}",
        transfer.formula(),
        transfer.size_text(),
        rate_text(transfer.bandwidth),
        markdown(&table),
        LEFT_OUT.map(|what| format!("- {what}\n")).concat(),
    )
}

#[derive(Serialize)]
struct Output {
    parameters: u64,
    precision: &'static str,
    bytes_per_parameter: f64,
    bytes: f64,
    bandwidth_bytes_per_second: f64,
    seconds: f64,
    formula: String,
    table: Vec<TableRow>,
}

/// One model at one precision: flat, so that a program finds it without nesting.
#[derive(Serialize)]
struct TableRow {
    model: String,
    parameters: u64,
    precision: &'static str,
    bytes: f64,
    seconds: f64,
}

fn json(settings: &Settings) -> String {
    let transfer = settings.transfer();
    let flat = |row: Row| {
        let (model, parameters) = (row.model, row.parameters);
        row.cells.into_iter().map(move |cell| TableRow {
            model: model.clone(),
            parameters,
            precision: cell.precision,
            bytes: cell.bytes,
            seconds: cell.seconds,
        })
    };
    let output = Output {
        parameters: transfer.parameters,
        precision: transfer.precision.name(),
        bytes_per_parameter: transfer.precision.bytes_per_parameter(),
        bytes: transfer.bytes().0,
        bandwidth_bytes_per_second: transfer.bandwidth.0,
        seconds: transfer.seconds(),
        formula: transfer.formula(),
        table: rows(settings).into_iter().flat_map(flat).collect(),
    };
    serde_json::to_string_pretty(&output).expect("the output holds no map with other keys than texts") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str]) -> Result<String, String> {
        main(args.iter().map(OsString::from).collect()).map_err(|UsageError(message)| message)
    }

    #[test]
    fn eight_billion_at_two_bytes_over_four_gigabytes_a_second_take_four_seconds() {
        let args = ["--parameters", "8e9", "--precision", "bf16", "--bandwidth", "4GB/s"];
        let text = run(&args).expect("right input");
        assert!(
            text.starts_with("8 × 10⁹ parameters × 2 bytes ÷ 4 GB/s = 4.00 s\n4.000000 seconds"),
            "{text}"
        );
        assert!(text.contains("| Llama 3.1 70B "), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&run(&[&args[..], &["--json"]].concat()).expect("right input"))
                .expect("it is JSON");
        assert_eq!(json["parameters"], 8_000_000_000_u64);
        assert_eq!(json["precision"], "bf16");
        assert_eq!(json["bytes_per_parameter"], 2.0);
        assert_eq!(json["bytes"], 16e9);
        assert_eq!(json["bandwidth_bytes_per_second"], 4e9);
        assert_eq!(json["seconds"], 4.0);
        let table = json["table"].as_array().expect("a table");
        assert_eq!(table.len(), 5 * 6);
        assert!(table.iter().any(|row| row["precision"] == "bf16" && row["seconds"] == 4.0));
    }

    #[test]
    fn names_stand_for_numbers() {
        let text = run(&["--parameters=llama-3.1-70b", "--bandwidth=object-store", "--precision=int4"])
            .expect("right input");
        // 70,553,706,496 ÷ 2 ÷ 3.1 × 10⁹ = 11.379…
        assert!(text.starts_with("70.6 × 10⁹ parameters × 0.5 byte ÷ 3.1 GB/s = 11.4 s (int4"), "{text}");
    }

    #[test]
    fn wrong_input_is_one_line_that_names_the_flag_and_says_what_would_be_right() {
        for (args, found, right) in [
            (["--parameters", "many"], "`many`", "llama-3.1-8b"),
            (["--precision", "int3"], "`int3`", "int4"),
            (["--bandwidth", "fast"], "`fast`", "3.5GB/s"),
            (["--bandwidth", "3.5"], "`3.5`", "from 1e6 to 1e13"),
        ] {
            let message = run(&args).expect_err("wrong input");
            assert!(message.starts_with(args[0]) && message.contains(found), "{message}");
            assert!(message.contains(right) && !message.contains('\n'), "{message}");
        }
        let message = run(&["--bandwith", "1e9"]).expect_err("no such flag");
        assert!(message.contains("did you mean --bandwidth?"), "{message}");
        assert!(run(&["--precision"]).expect_err("no value").contains("--precision"));
        assert!(run(&["nvme"]).is_err());
    }

    #[test]
    fn help_comes_from_the_table() {
        let text = run(&["--help"]).expect("help");
        assert!(text.contains("--bandwidth VALUE") && text.contains("[default: nvme]"), "{text}");
    }
}
