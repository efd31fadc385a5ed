//! Which column of a CSV is what: guessed from the names, or said.

use super::item::shown;

/// What a column can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// When the request arrived.
    Time,
    /// Tokens of the prompt.
    Input,
    /// Tokens of the output.
    Output,
    /// The prompt's text: its bytes are its tokens.
    Prompt,
    /// Which requests belong together.
    Session,
    /// Whose it is.
    Tenant,
}

impl Role {
    /// Every role: its name, and names of columns that are it. Names are compared without case, blanks and signs; of
    /// several that fit, the one that is first here.
    pub const ALL: [(&'static str, Role, &'static [&'static str]); 6] = [
        (
            "time",
            Role::Time,
            &[
                "timestamp",
                "arrival",
                "arrivaltime",
                "arrivedat",
                "time",
                "created",
                "createdat",
                "requesttime",
                "starttime",
                "start",
                "datetime",
                "date",
                "ts",
                "t",
            ],
        ),
        (
            "input",
            Role::Input,
            &[
                "contexttokens",
                "requesttokens",
                "inputtokens",
                "prompttokens",
                "inputlength",
                "promptlength",
                "inputlen",
                "promptlen",
                "numprefilltokens",
                "prefilltokens",
                "tokensin",
                "input",
                "in",
            ],
        ),
        (
            "output",
            Role::Output,
            &[
                "generatedtokens",
                "responsetokens",
                "outputtokens",
                "completiontokens",
                "outputlength",
                "responselength",
                "outputlen",
                "numdecodetokens",
                "decodetokens",
                "tokensout",
                "maxtokens",
                "output",
                "out",
            ],
        ),
        ("prompt", Role::Prompt, &["prompt", "text", "query", "content"]),
        ("session", Role::Session, &["sessionid", "session", "conversationid", "chatid"]),
        ("tenant", Role::Tenant, &["tenant", "tenantid", "customer", "user", "userid"]),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Role::ALL[self as usize].0
    }
}

/// A column, by its name or its number from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// As the header has it.
    Name(String),
    /// Counted from 1.
    Number(usize),
}

/// What is said of columns; the rest is guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(Vec<(Role, Column)>);

impl Columns {
    /// Reads `ROLE=COLUMN,…`, a column by its name or its number.
    pub fn parse(text: &str) -> Result<Columns, String> {
        let mut columns = Columns::default();
        for part in text.split(',') {
            let names = Role::ALL.map(|row| row.0).join(", ");
            let (role, column) = part.split_once('=').ok_or_else(|| {
                format!("found `{}`; it is ROLE=COLUMN,… as time=when,input=3 (roles: {names})", shown(part))
            })?;
            let role = Role::ALL.into_iter().find(|row| row.0 == role.trim()).map(|row| row.1);
            let role = role.ok_or_else(|| format!("found `{}`; a column is one of {names}", shown(part)))?;
            let column = column.trim();
            let column = match column.parse() {
                Ok(0) => return Err(format!("found `{}`; columns count from 1", shown(part))),
                Ok(number) => Column::Number(number),
                Err(_) if column.is_empty() => {
                    return Err(format!("found `{}`; the column is missing", shown(part)));
                }
                Err(_) => Column::Name(column.to_owned()),
            };
            if columns.get(role).is_some() {
                return Err(format!("`{}` is there twice; once is enough", role.name()));
            }
            columns.0.push((role, column));
        }
        Ok(columns)
    }

    /// The same, column by column.
    pub fn set(&mut self, role: Role, column: Column) {
        self.0.retain(|(own, _)| *own != role);
        self.0.push((role, column));
    }

    /// What is said of a role.
    pub fn get(&self, role: Role) -> Option<&Column> {
        self.0.iter().find(|(own, _)| *own == role).map(|(_, column)| column)
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all that is said is by number: then a file need have no header.
    pub fn only_numbers(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(_, column)| matches!(column, Column::Number(_)))
    }
}

/// A header: the names of the columns and what is between them.
pub struct Header {
    pub names: Vec<String>,
    pub delimiter: u8,
}

/// Columns at most.
const MAX_COLUMNS: usize = 1000;

impl Header {
    /// Reads a line as one. What is between the columns is the sign that it has most of (of a draw, the comma).
    pub fn read(line: &str) -> Header {
        let count = |sign: u8| line.bytes().filter(|&b| b == sign).count();
        let delimiter = [b'\t', b';', b','].into_iter().max_by_key(|&sign| count(sign)).unwrap_or(b',');
        let names =
            cells(line, delimiter).take(MAX_COLUMNS).map_while(Result::ok).map(|c| c.trim().to_owned());
        Header { names: names.collect(), delimiter }
    }

    /// What is between columns, in words.
    pub fn delimiter_name(&self) -> &'static str {
        match self.delimiter {
            b'\t' => "tabs",
            b';' => "semicolons",
            _ => "commas",
        }
    }

    /// The column of a name, as names are compared.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| plain(own) == name)
    }

    /// The column of a role: what is said of it, or the first of its names.
    pub fn find(&self, role: Role, columns: &Columns) -> Result<Option<usize>, String> {
        match columns.get(role) {
            Some(Column::Number(number)) if *number <= self.names.len() => Ok(Some(number - 1)),
            Some(Column::Number(number)) => {
                Err(format!("{} is column {number}, and there are {}", role.name(), self.names.len()))
            }
            Some(Column::Name(name)) => {
                let exact = self.names.iter().position(|own| own == name);
                let found = exact.or_else(|| self.position(&plain(name)));
                found.map(Some).ok_or_else(|| {
                    format!(
                        "{} is the column `{}`, and there are {}",
                        role.name(),
                        shown(name),
                        self.listed()
                    )
                })
            }
            None => {
                let guesses = Role::ALL[role as usize].2;
                let position = |guess: &&str| self.position(guess).or_else(|| self.with_unit(role, guess));
                Ok(guesses.iter().find_map(position))
            }
        }
    }

    /// A time's column that names its unit too: `arrival_ms`.
    fn with_unit(&self, role: Role, guess: &str) -> Option<usize> {
        let units = ["ms", "s", "us", "ns", "sec", "seconds", "milliseconds"];
        let named = |own: &String| plain(own).strip_prefix(guess).is_some_and(|rest| units.contains(&rest));
        if role == Role::Time { self.names.iter().position(named) } else { None }
    }

    /// The columns' names, in a message.
    pub fn listed(&self) -> String {
        let names: Vec<String> =
            self.names.iter().take(20).map(|name| format!("`{}`", shown(name))).collect();
        names.join(", ")
    }
}

/// A name without case, blanks and signs.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The cells of a line. One in quotes may hold the delimiter, and a quote written twice; it ends on its line.
pub fn cells(line: &str, delimiter: u8) -> impl Iterator<Item = Result<std::borrow::Cow<'_, str>, String>> {
    let mut rest = Some(line);
    core::iter::from_fn(move || {
        let text = rest?;
        let Some(quoted) = text.strip_prefix('"') else {
            let end = text.bytes().position(|b| b == delimiter);
            rest = end.map(|end| &text[end + 1..]);
            return Some(Ok(text[..end.unwrap_or(text.len())].into()));
        };
        let mut cell = String::new();
        let mut left = quoted;
        loop {
            let Some(end) = left.find('"') else {
                rest = None;
                return Some(Err(format!("a quote is not closed on its line: `{}`", shown(text))));
            };
            cell.push_str(&left[..end]);
            left = &left[end + 1..];
            match left.strip_prefix('"') {
                Some(more) => {
                    cell.push('"');
                    left = more;
                }
                None => break,
            }
        }
        rest = match left.as_bytes().first() {
            None => None,
            Some(&b) if b == delimiter => Some(&left[1..]),
            Some(_) => {
                let problem = format!("found `{}` after a closed quote", shown(left));
                rest = None;
                return Some(Err(problem));
            }
        };
        Some(Ok(cell.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<Vec<String>, String> {
        cells(line, b',').map(|cell| cell.map(|c| c.into_owned())).collect()
    }

    #[test]
    fn cells_in_quotes_hold_what_they_like() {
        let text = |cells: &[&str]| Ok(cells.iter().map(|c| (*c).to_owned()).collect());
        assert_eq!(split("a,,b"), text(&["a", "", "b"]));
        assert_eq!(split("\"a,\"\"b\"\"\",c,"), text(&["a,\"b\"", "c", ""]));
        assert!(split("\"a").expect_err("open").contains("not closed"));
        assert!(split("\"a\"b,c").expect_err("after").contains("after a closed quote"));
    }

    #[test]
    fn columns_are_guessed_unless_they_are_said() {
        let header = Header::read("id;arrival_ms;Prompt Tokens;output-tokens;user");
        let none = Columns::default();
        let find = |role| header.find(role, &none).expect("nothing is said");
        assert_eq!(
            [Role::Time, Role::Input, Role::Output, Role::Tenant].map(find),
            [Some(1), Some(2), Some(3), Some(4)]
        );
        assert_eq!(find(Role::Session), None);
        let said = Columns::parse("time=1, input = output-tokens").expect("good columns");
        assert_eq!(header.find(Role::Time, &said), Ok(Some(0)));
        assert_eq!(header.find(Role::Input, &said), Ok(Some(3)));
        let far = Columns::parse("time=9,input=nothing").expect("good columns");
        assert!(header.find(Role::Time, &far).expect_err("9").contains("there are 5"));
        assert!(header.find(Role::Input, &far).expect_err("no such").contains("`arrival_ms`"));
    }

    #[test]
    fn what_is_no_mapping_is_said() {
        for (text, part) in [
            ("", "ROLE=COLUMN"),
            ("time", "ROLE=COLUMN"),
            ("when=1", "one of time, input"),
            ("time=0", "count from 1"),
            ("time=", "missing"),
            ("time=1,time=2", "twice"),
        ] {
            let problem = Columns::parse(text).expect_err(text);
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
