//! CSV: a row a request. The columns of any file are told by their names ([`Columns`](super::Columns)); BurstGPT's and Azure's are
//! files like any other, whose names are known.
//!
//! - **Azure** (github.com/Azure/AzurePublicDataset, CC-BY-4.0): `TIMESTAMP` (a date with seven decimals),
//!   `ContextTokens`, `GeneratedTokens`; of 2025 `NumImages` too.
//! - **BurstGPT** (github.com/HPMLL/BurstGPT): `Timestamp` (s), `Session ID`, `Request tokens`, `Response tokens` and
//!   others; a row whose response has no tokens failed.
//!
//! Neither tells what prompts have in common, so nothing of them is shared.

use super::TraceError;
use super::columns::{Header, Role, cells, plain};
use super::detect::Format;
use super::intern::Interner;
use super::item::shown;
use super::moment::{Moment, TimeUnit};
use super::reader::ReadOptions;
use super::rows::{Row, Rows};
use crate::trace::TenantName;

/// Reads it.
pub struct Table {
    format: Format,
    delimiter: u8,
    names: Vec<String>,
    /// By role: which column it is.
    roles: [Option<usize>; 6],
    unit: Option<TimeUnit>,
    block: u32,
    bytes_per_token: u32,
    ids: Interner,
}

impl Table {
    pub fn new(format: Format) -> Table {
        Table {
            format,
            delimiter: b',',
            names: Vec::new(),
            roles: [None; 6],
            unit: None,
            block: 16,
            bytes_per_token: 1,
            ids: Interner::default(),
        }
    }

    fn column(&self, role: Role) -> Option<usize> {
        self.roles[role as usize]
    }

    /// Takes the first line. Where all columns are said by number it may be a row.
    pub fn header(
        &mut self,
        number: usize,
        text: &str,
        options: &ReadOptions,
        rows: &mut Rows,
    ) -> Result<(), TraceError> {
        let header = Header::read(text);
        let refuse = |problem| TraceError { line: number, field: None, problem };
        for (_, role, _) in Role::ALL {
            self.roles[role as usize] = header.find(role, &options.columns).map_err(refuse)?;
        }
        if self.format == Format::BurstGpt {
            // `Model` and `Log Type` are nobody's.
            self.roles[Role::Prompt as usize] = None;
        }
        let missing = |what: &str| {
            let way = "name it with --columns, as --columns time=COLUMN,input=COLUMN,output=COLUMN";
            refuse(format!("no column for {what}; there are {}; {way}", header.listed()))
        };
        if self.column(Role::Time).is_none() {
            return Err(missing("the time"));
        }
        if self.column(Role::Input).is_none() && self.column(Role::Prompt).is_none() {
            return Err(missing("the prompt's length (input) or its text (prompt)"));
        }
        if self.column(Role::Output).is_none() {
            return Err(missing("the output's length"));
        }
        if self.column(Role::Input).is_some() {
            // A text beside a length is passed over unless it is asked for.
            if options.columns.get(Role::Prompt).is_none() {
                self.roles[Role::Prompt as usize] = None;
            }
        }
        self.delimiter = header.delimiter;
        self.block = options.trace_block.unwrap_or(16);
        self.bytes_per_token = options.bytes_per_token;
        self.unit = options.time_unit.or_else(|| {
            let name = plain(&header.names[self.column(Role::Time)?]);
            // A longer unit first: `ms` ends in `s`.
            let unit = ["ms", "us", "ns"]
                .into_iter()
                .find(|unit| name.ends_with(unit))
                .or_else(|| (name.ends_with("milliseconds")).then_some("ms"));
            unit.and_then(TimeUnit::from_name).filter(|_| self.format == Format::Csv)
        });
        self.names = header.names;
        if self.format == Format::Csv {
            let told: Vec<String> = Role::ALL
                .iter()
                .filter_map(|(name, role, _)| {
                    Some(format!("{name} is `{}`", shown(&self.names[self.column(*role)?])))
                })
                .collect();
            rows.notes.push(format!("columns: {}", told.join(", ")));
        }
        if options.columns.only_numbers() && self.row(number, text, rows).is_ok() {
            rows.notes.push("the first line is a row, not names".into());
        }
        Ok(())
    }

    /// Takes a row.
    pub fn row(&mut self, line: usize, text: &str, rows: &mut Rows) -> Result<(), TraceError> {
        let mut wanted: [Option<std::borrow::Cow<'_, str>>; 6] = [const { None }; 6];
        let mut columns = 0;
        for (at, cell) in cells(text, self.delimiter).enumerate() {
            let cell = cell.map_err(|problem| TraceError {
                line,
                field: self.names.get(at).map(|name| shown(name)),
                problem,
            })?;
            columns += 1;
            for (role, column) in self.roles.iter().enumerate() {
                if *column == Some(at) {
                    wanted[role] = Some(cell.clone());
                }
            }
        }
        if columns != self.names.len() {
            let problem = format!(
                "{columns} cells, and the first line has {}; found `{}`",
                self.names.len(),
                shown(text)
            );
            return Err(TraceError { line, field: None, problem });
        }
        let name = |role: Role| self.roles[role as usize].map(|at| shown(&self.names[at]));
        let refuse = |role: Role, wanted: &str, found: &str| TraceError {
            line,
            field: name(role),
            problem: format!("found `{}`; it is {wanted}", shown(found)),
        };
        let cell = |role: Role| wanted[role as usize].as_deref().unwrap_or_default().trim();
        let number = |role: Role| {
            // Some tools write whole numbers with a point.
            let text = cell(role);
            let whole = text.strip_suffix(".0").unwrap_or(text);
            whole.parse::<u32>().map_err(|_| refuse(role, "a whole number of tokens below 2^32", text))
        };
        let moment = Moment::parse(cell(Role::Time))
            .ok_or_else(|| refuse(Role::Time, Moment::WANTED, cell(Role::Time)))?;
        let time =
            rows.time(line, self.column(Role::Time).map_or("", |at| self.names[at].as_str()), moment)?;
        let max_tokens = number(Role::Output)?.into();
        let prompt = if self.column(Role::Prompt).is_some() {
            let text = cell(Role::Prompt);
            let prompt = self.ids.prompt(text, self.block, self.bytes_per_token);
            prompt.ok_or_else(|| refuse(Role::Prompt, "one of 2^32 blocks", text))?
        } else {
            rows.of_length(number(Role::Input)?)
        };
        let own_name = |role: Role| {
            let text = cell(role);
            let named = self.column(role).is_some() && !text.is_empty();
            named.then(|| text.parse().map_or_else(|_| TenantName::Text(text.to_owned()), TenantName::Number))
        };
        let tenant = own_name(Role::Tenant).map(|name| rows.tenant(name));
        let session = own_name(Role::Session).map(|name| rows.session(name));
        if let Moment::Number(first) = moment {
            rows.unit = Some(*self.unit.get_or_insert(TimeUnit::of_size(first)));
        }
        rows.push(Row { line, time, prompt, max_tokens, tenant, output: None, session })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Columns, Imported, ReadOptions, Reader};
    use super::*;

    fn read(text: &str, options: ReadOptions) -> Result<Imported, TraceError> {
        let mut reader = Reader::new(options);
        reader.push(text.as_bytes())?;
        reader.finish()
    }

    fn arrivals(read: &Imported) -> Vec<f64> {
        read.log.trace.requests.iter().map(|r| r.arrival.seconds()).collect()
    }

    #[test]
    fn azures_dates_are_exact() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n";
        let read = read(text, ReadOptions::default()).expect("a good trace");
        assert_eq!(read.detected.format, Format::Azure);
        assert_eq!(read.log.trace.requests[1].arrival.0, 4_314_579_000_000);
        assert_eq!(
            (read.log.trace.requests[0].prompt.len(), read.log.trace.requests[0].max_tokens),
            (374, 44)
        );
    }

    #[test]
    fn burstgpts_failures_are_left_out_and_its_sessions_kept() {
        let text = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                    19440110.0,a,43,GPT-4,906,446,1352,Conversation log\n\
                    19440161.0,b,2,ChatGPT,36,0,36,Conversation log\n\
                    19440192.5,a,8,GPT-4,1779,123,1902,API log\n";
        let good = read(text, ReadOptions::default()).expect("a good trace");
        assert_eq!((good.detected.format, arrivals(&good)), (Format::BurstGpt, vec![0.0, 82.5]));
        assert!(good.notes[0].starts_with("1 rows with no output"), "{:?}", good.notes);
        assert_eq!(good.log.sessions, [0, 0]);
        let all =
            read(text, ReadOptions { keep_failed: true, ..ReadOptions::default() }).expect("a good trace");
        assert_eq!(all.log.trace.requests.len(), 3);
    }

    #[test]
    fn any_csv_is_read_by_its_names_or_by_what_is_said() {
        let text =
            "id;arrival_ms;tokens in;tokens out;user\n1;1700000000500;10;2;x\n2;1700000000000;11;3;y\n";
        let read_it = read(text, ReadOptions::default()).expect("a good trace");
        assert_eq!(arrivals(&read_it), [0.0, 0.5]);
        assert!(read_it.notes[0].contains("time is `arrival_ms`"), "{:?}", read_it.notes);
        assert_eq!(read_it.log.trace.tenants.len(), 2);
        let columns = Columns::parse("time=1,input=2,output=3").expect("good columns");
        let options =
            ReadOptions { columns, time_unit: Some(TimeUnit::Milliseconds), ..ReadOptions::default() };
        let bare = read("0,5,5\n1500,6,6\n", options).expect("a good trace");
        assert_eq!(arrivals(&bare), [0.0, 1.5]);
        let text = "time,prompt,max_tokens\n0,\"0123456789abcdef, and more\",4\n1,\"0123456789abcdef\",4\n";
        let texts = read(text, ReadOptions::default()).expect("a good trace");
        let [a, b] = &texts.log.trace.requests[..] else { panic!("two requests") };
        assert_eq!((a.prompt.len(), a.prompt.items(), b.prompt.items()), (26, &[0][..], &[0][..]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_column() {
        let head = "time,input_tokens,output_tokens\n0,1,1\n";
        for (row, field, part) in [
            ("x,1,1", Some("time"), "`x`"),
            ("nan,1,1", Some("time"), "a number"),
            ("1e308,1,1", None, "too long"),
            ("2024-01-01,1,1", Some("time"), "a date where the others are numbers"),
            ("1,-1,1", Some("input_tokens"), "`-1`"),
            ("1,1,1.5", Some("output_tokens"), "`1.5`"),
            ("1,1", None, "2 cells"),
            ("1,\"1,1", Some("input_tokens"), "not closed"),
        ] {
            let error = read(&format!("{head}{row}\n"), ReadOptions::default()).expect_err(row);
            assert_eq!((error.line, error.field.as_deref()), (3, field), "{row}: {error}");
            assert!(error.problem.contains(part), "{row}: {error}");
        }
        let skipping = ReadOptions { skip_bad_lines: true, ..ReadOptions::default() };
        let read_it =
            read(&format!("{head}x,1,1\n1e308,1,1\n2,2,2\n"), skipping).expect("bad lines are passed over");
        assert_eq!((read_it.skipped, read_it.log.trace.requests.len(), read_it.problems.len()), (2, 2, 2));
        let none = read("a,b\n1,2\n", ReadOptions::default()).expect_err("no such columns");
        assert!(
            none.problem.contains("no column for the time") && none.problem.contains("`a`, `b`"),
            "{none}"
        );
    }
}
