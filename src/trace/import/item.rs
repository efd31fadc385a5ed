//! JSON as traces need it: a line's values, small where they are lists of ids, and with no key there twice.
//!
//! serde's own `Value` takes 32 bytes for each number of a list, and the last of two equal keys silently. Here a list
//! of ids takes four bytes an id, a line has at most [`MAX_VALUES`] other values, and a key that is there twice is
//! refused. Nesting ends where serde's recursion limit is (128).

use core::cell::Cell;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Values, beside the ids in lists, that a line has at most.
pub const MAX_VALUES: usize = 1 << 20;

/// Characters of a value that a message shows.
const SHOWN: usize = 60;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Null,
    Bool(bool),
    Whole(u64),
    Negative(i64),
    Real(f64),
    Text(String),
    /// A list of whole numbers below 2³², and the empty list.
    Ids(Vec<u32>),
    /// Any other list.
    List(Vec<Item>),
    Object(Fields),
}

/// An object's keys and values, in their order; no key is there twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(pub Vec<(String, Item)>);

impl Fields {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, item)| item)
    }

    /// The same, where null is as good as nothing.
    pub fn known(&self, key: &str) -> Option<&Item> {
        self.get(key).filter(|item| **item != Item::Null)
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
}

impl Item {
    /// Reads a text that is one value. The error has no place: the caller names the line.
    pub fn parse(text: &str) -> Result<Item, serde_json::Error> {
        let left = Cell::new(MAX_VALUES);
        let mut parser = serde_json::Deserializer::from_str(text);
        let item = Seed(&left).deserialize(&mut parser)?;
        parser.end()?;
        Ok(item)
    }

    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Item::Null => "null",
            Item::Bool(_) => "a truth value",
            Item::Whole(_) | Item::Negative(_) | Item::Real(_) => "a number",
            Item::Text(_) => "a text",
            Item::Ids(_) | Item::List(_) => "a list",
            Item::Object(_) => "an object",
        }
    }

    /// A number of any kind.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Item::Whole(n) => Some(n as f64),
            Item::Negative(n) => Some(n as f64),
            Item::Real(x) => Some(x),
            _ => None,
        }
    }

    /// A whole number that is not negative, however it is written (`16.0` is 16).
    pub fn whole(&self) -> Option<u64> {
        match *self {
            Item::Whole(n) => Some(n),
            Item::Real(x) if (0.0..=9_007_199_254_740_992.0).contains(&x) && x == libm::trunc(x) => {
                Some(x as u64)
            }
            _ => None,
        }
    }

    /// A whole number of either sign.
    pub fn integer(&self) -> Option<i64> {
        match *self {
            Item::Whole(n) => i64::try_from(n).ok(),
            Item::Negative(n) => Some(n),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self) -> Option<&str> {
        if let Item::Text(text) = self { Some(text) } else { None }
    }

    /// The values of a list, in turn.
    pub fn list(&self) -> Option<ListItems<'_>> {
        match self {
            Item::Ids(ids) => Some(ListItems::Ids(ids.iter())),
            Item::List(items) => Some(ListItems::Items(items.iter())),
            _ => None,
        }
    }

    fn write(&self, out: &mut String) {
        if out.len() > 4 * SHOWN {
            return;
        }
        match self {
            Item::Null => out.push_str("null"),
            Item::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Item::Whole(n) => out.push_str(&n.to_string()),
            Item::Negative(n) => out.push_str(&n.to_string()),
            Item::Real(x) => out.push_str(&written(*x)),
            Item::Text(text) => {
                let start: String = text.chars().take(2 * SHOWN).collect();
                out.push_str(&serde_json::to_string(&start).expect("a text is JSON"));
            }
            Item::Ids(_) | Item::List(_) => {
                out.push('[');
                for (at, item) in self.list().expect("both are lists").take(2 * SHOWN).enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Item::Object(fields) => {
                out.push('{');
                for (at, (key, item)) in fields.0.iter().take(SHOWN).enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    Item::Text(key.clone()).write(out);
                    out.push_str(": ");
                    item.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// As JSON, shortened.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&shown(&text))
    }
}

/// A text as a message shows it: shortened, and with nothing in it that a terminal would obey.
pub fn shown(text: &str) -> String {
    let mut out: String =
        text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// A number as a message shows it: very large ones with an exponent.
pub fn written(x: f64) -> String {
    if x.abs() < 1e18 { x.to_string() } else { format!("{x:e}") }
}

/// See [`Item::list`].
pub enum ListItems<'a> {
    Ids(core::slice::Iter<'a, u32>),
    Items(core::slice::Iter<'a, Item>),
}

impl Iterator for ListItems<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        match self {
            ListItems::Ids(ids) => ids.next().map(|&id| Item::Whole(id.into())),
            ListItems::Items(items) => items.next().cloned(),
        }
    }
}

/// Reads one value, and takes it off what the line may still have.
#[derive(Clone, Copy)]
struct Seed<'a>(&'a Cell<usize>);

impl Seed<'_> {
    fn spend<E: serde::de::Error>(self) -> Result<(), E> {
        let left = self.0.get().checked_sub(1);
        left.map(|left| self.0.set(left))
            .ok_or_else(|| E::custom(format!("more than {MAX_VALUES} values in a line")))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Item;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Item, E> {
        Ok(Item::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Item, E> {
        Ok(Item::Bool(b))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Item, E> {
        Ok(Item::Whole(n))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Item, E> {
        Ok(u64::try_from(n).map_or(Item::Negative(n), Item::Whole))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Item, E> {
        Ok(Item::Real(x))
    }

    fn visit_str<E>(self, text: &str) -> Result<Item, E> {
        Ok(Item::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
        let mut ids: Vec<u32> = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            match &item {
                Item::Whole(n) if *n <= u32::MAX.into() => ids.push(*n as u32),
                _ => {
                    // No list of ids after all: what it had so far are values like any other.
                    for _ in 0..=ids.len() {
                        self.spend()?;
                    }
                    let mut list: Vec<Item> = ids.into_iter().map(|id| Item::Whole(id.into())).collect();
                    list.push(item);
                    while let Some(item) = items.next_element_seed(self)? {
                        self.spend()?;
                        list.push(item);
                    }
                    return Ok(Item::List(list));
                }
            }
        }
        Ok(Item::Ids(ids))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut fields: Vec<(String, Item)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            self.spend()?;
            fields.push((key, map.next_value_seed(self)?));
        }
        let mut keys: Vec<&str> = fields.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(A::Error::custom(format!("the key `{}` is there twice", shown(pair[0]))));
        }
        Ok(Item::Object(Fields(fields)))
    }
}

/// A JSON error without its own "at line 1": the trace's line is named by the caller.
pub fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ids_are_small_and_others_are_whole() {
        let Ok(Item::Object(fields)) =
            Item::parse("{\"a\": [1, 2], \"b\": [1, -2], \"c\": [4294967296], \"d\": []}")
        else {
            panic!("an object")
        };
        assert_eq!(fields.get("a"), Some(&Item::Ids(vec![1, 2])));
        assert_eq!(fields.get("b"), Some(&Item::List(vec![Item::Whole(1), Item::Negative(-2)])));
        assert_eq!(fields.get("c"), Some(&Item::List(vec![Item::Whole(1 << 32)])));
        assert_eq!(fields.get("d"), Some(&Item::Ids(vec![])));
    }

    #[test]
    fn what_cannot_be_taken_is_said() {
        let problem = |text: &str| without_place(&Item::parse(text).expect_err(text));
        assert!(problem("{\"a\": 1, \"b\": {\"x\": 1, \"x\": 2}}").contains("`x` is there twice"));
        assert!(problem(&"[".repeat(100_000)).contains("recursion limit"));
        assert!(
            problem(&format!("[{}0]", "-1,".repeat(MAX_VALUES + 1))).contains("more than 1048576 values")
        );
        assert!(problem("{\"a\": 1} x").contains("trailing"));
        assert!(problem("{\"a\": 1e999}").contains("out of range"));
    }

    #[test]
    fn a_message_shows_the_beginning_and_no_control_characters() {
        let long = Item::Text("x".repeat(1_000_000)).to_string();
        assert!(long.chars().count() == 61 && long.ends_with('…'), "{long}");
        assert_eq!(shown("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(Item::parse("[1, {\"a\": null}]").expect("JSON").to_string(), "[1, {\"a\": null}]");
    }
}
