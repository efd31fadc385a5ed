//! A line of JSON lines at hand: its number, its fields, and refusals that name both.

use super::TraceError;
use super::item::{Fields, Item, shown, without_place};
use super::moment::Moment;

/// An object with the line that it is on.
pub struct Line<'a> {
    pub number: usize,
    pub fields: &'a Fields,
}

/// Reads a line as an object; `example` is what one looks like.
pub fn object(number: usize, text: &str, example: &str) -> Result<Fields, TraceError> {
    let refuse = |problem| Err(TraceError { line: number, field: None, problem });
    match Item::parse(text) {
        Ok(Item::Object(fields)) => Ok(fields),
        Ok(other) => {
            refuse(format!("not a request: found {}; it is a JSON object such as {example}", other.kind()))
        }
        Err(e) => refuse(format!("not a JSON object: {}; found `{}`", without_place(&e), shown(text))),
    }
}

/// What was found of a field, and what it should be.
pub fn found(item: Option<&Item>, wanted: &str) -> String {
    match item {
        Some(item) => format!("found {item}; it is {wanted}"),
        None => format!("missing; it is {wanted}"),
    }
}

impl Line<'_> {
    pub fn error(&self, field: Option<&str>, problem: String) -> TraceError {
        TraceError { line: self.number, field: field.map(shown), problem }
    }

    /// That a field is missing or not what is wanted.
    pub fn refuse(&self, field: &str, wanted: &str) -> TraceError {
        self.error(Some(field), found(self.fields.get(field), wanted))
    }

    /// A whole number below 2³² of a value of a field.
    pub fn below_2_32(&self, field: &str, item: Option<&Item>) -> Result<u32, TraceError> {
        let number = item.and_then(Item::whole).and_then(|n| u32::try_from(n).ok());
        number.ok_or_else(|| self.error(Some(field), found(item, "a whole number below 2^32")))
    }

    /// A field that is a whole number below 2³².
    pub fn whole(&self, field: &str) -> Result<u32, TraceError> {
        self.below_2_32(field, self.fields.get(field))
    }

    /// A field that is a number from 0 on.
    pub fn positive(&self, field: &str, wanted: &str) -> Result<f64, TraceError> {
        let number = self.fields.get(field).and_then(Item::number).filter(|t| *t >= 0.0);
        number.ok_or_else(|| self.refuse(field, wanted))
    }

    /// A field that is a time: a number, a string of one, or a date.
    pub fn moment(&self, field: &str) -> Result<Moment, TraceError> {
        self.moment_of(field, self.fields.get(field))
    }

    /// The same of a value of a field, wherever it is.
    pub fn moment_of(&self, field: &str, item: Option<&Item>) -> Result<Moment, TraceError> {
        let moment = match item {
            Some(Item::Text(text)) => Moment::parse(text),
            item => item.and_then(Item::number).map(Moment::Number),
        };
        moment.ok_or_else(|| self.error(Some(field), found(item, Moment::WANTED)))
    }

    /// A field that is a list of ids.
    pub fn ids(&self, field: &str, wanted: &str) -> Result<&[u32], TraceError> {
        match self.fields.get(field) {
            Some(Item::Ids(ids)) => Ok(ids),
            Some(Item::List(items)) => {
                let bad = items
                    .iter()
                    .enumerate()
                    .find(|(_, item)| item.whole().is_none_or(|n| n > u32::MAX.into()));
                Err(match bad {
                    Some((at, item)) => self.error(
                        Some(field),
                        format!("item {at} is {item}; an id is a whole number below 2^32"),
                    ),
                    None => self.refuse(field, "a list of whole numbers, written without a point"),
                })
            }
            _ => Err(self.refuse(field, wanted)),
        }
    }
}
