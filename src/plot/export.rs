//! A chart to be taken along: its points as CSV and as JSON, a table to be read, and a picture that stands alone.

use core::fmt::Write;

use super::svg::{UNITS, style, svg};
use super::{Axis, Chart, Format, finite};

/// The size of a picture that is taken along, in CSS pixels: the same on every screen.
pub const SIZE: (u32, u32) = (720, 400);

/// A table to be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What stands above each column.
    pub heads: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
    /// How many places have a value; more than there are rows where some are left out.
    pub all: usize,
}

/// An axis's unit in a file: fractions are written as such, whatever the chart says in percent.
fn unit(axis: &Axis) -> &str {
    match axis.format {
        Format::Percent if axis.unit.is_empty() => "fraction",
        _ => &axis.unit,
    }
}

fn label(axis: &Axis) -> String {
    Axis { unit: unit(axis).to_owned(), ..axis.clone() }.label()
}

/// A text as one field of CSV.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A number as both files write it: the shortest text that reads back to it, or nothing.
fn number(value: f64) -> Option<String> {
    value.is_finite().then(|| value.to_string())
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            _ if letter < ' ' => out += &format!("\\u{:04x}", u32::from(letter)),
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

impl Chart {
    /// Whether any line says how far it spreads.
    fn spreads(&self) -> bool {
        self.series.iter().any(|series| !series.band.is_empty())
    }

    /// Each point: its series' place, what it stands over, and its numbers (y, and where there are spreads the low and the
    /// high end).
    fn each(&self, mut told: impl FnMut(usize, f64, &[f64])) {
        let many = if self.spreads() { 3 } else { 1 };
        for (at, series) in self.series.iter().enumerate() {
            for &(x, y) in &series.points {
                let band = series.band.iter().find(|band| band.0 == x);
                let (low, high) = band.map_or((f64::NAN, f64::NAN), |&(_, low, high)| (low, high));
                told(at, x, &[y, low, high][..many]);
            }
        }
    }

    /// The name at a place of an axis of names.
    fn named(&self, x: f64) -> Option<String> {
        (!self.x.names.is_empty()).then(|| self.x.value_text(x))
    }

    /// A row a point, with the units in the heading; what is undefined is empty.
    pub fn csv(&self) -> String {
        let mut heads = vec!["series".to_owned(), label(&self.x), label(&self.y)];
        if self.spreads() {
            heads.extend(["10th percentile", "90th percentile"].map(str::to_owned));
        }
        let mut text = heads.iter().map(|head| field(head)).collect::<Vec<_>>().join(",") + "\n";
        self.each(|at, x, numbers| {
            let place = self.named(x).or_else(|| number(x)).unwrap_or_default();
            text += &format!("{},{}", field(&self.series[at].name), field(&place));
            for value in numbers {
                text.push(',');
                text += &number(*value).unwrap_or_default();
            }
            text.push('\n');
        });
        text
    }

    /// The same as an object: what the axes measure, and the points; what is undefined is null.
    pub fn json(&self, name: &str) -> String {
        let axis =
            |axis: &Axis| format!("{{\"title\": {}, \"unit\": {}}}", quoted(&axis.title), quoted(unit(axis)));
        let mut text = format!(
            "{{\n  \"figure\": {},\n  \"x\": {},\n  \"y\": {},\n  \"points\": [",
            quoted(name),
            axis(&self.x),
            axis(&self.y)
        );
        let mut between = "";
        self.each(|at, x, numbers| {
            let place = self.named(x).map(|name| quoted(&name)).or_else(|| number(x));
            text += &format!(
                "{between}\n    {{\"series\": {}, \"x\": {}",
                quoted(&self.series[at].name),
                place.as_deref().unwrap_or("null")
            );
            for (key, value) in ["y", "p10", "p90"].iter().zip(numbers) {
                text += &format!(", \"{key}\": {}", number(*value).as_deref().unwrap_or("null"));
            }
            text.push('}');
            between = ",";
        });
        text + "\n  ]\n}\n"
    }

    /// A row a place where some line has a point, at most `most`, and a column a line: what a pointer would read there.
    pub fn table(&self, most: usize) -> Table {
        let mut heads = vec![self.x.label()];
        heads.extend(self.series.iter().map(|series| series.name.clone()));
        let rows = self.stops(most).into_iter().map(|x| {
            let place = self.x.value_text(x);
            let values =
                self.at(x).into_iter().map(|(_, y)| y.map_or_else(|| "–".into(), |y| self.y.value_text(y)));
            core::iter::once(place).chain(values).collect()
        });
        let rows = rows.collect();
        let mut places: Vec<f64> =
            self.series.iter().flat_map(|s| s.points.iter().filter(|p| finite(p))).map(|p| p.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        Table { heads, rows, all: places.len() }
    }

    /// A file of SVG, with a name and its colours inside, on an opaque background.
    pub fn picture(&self, name: &str) -> String {
        let (width, height) = SIZE;
        let mut text = String::new();
        let name = name.replace('&', "&amp;").replace('<', "&lt;");
        write!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" \
             role=\"img\">\n<title>{name}</title>\n<style>{}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{}\n</svg>\n",
            width * UNITS,
            height * UNITS,
            style(),
            svg(self, SIZE)
        )
        .expect("a text takes all that is written");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Role, Series};
    use crate::policy::PolicyKind;

    fn chart(band: Vec<(f64, f64, f64)>, names: &[&str]) -> Chart {
        let policy = PolicyKind::LeastTokens;
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Chart {
            x: Axis { names, ..Axis::new("rate", "1/s", Format::Number) },
            y: Axis::new("reuse, all", "", Format::Percent),
            series: vec![Series {
                name: policy.name().into(),
                role: Role::Policy(policy),
                points: vec![(0.0, 0.1), (1.0, f64::NAN), (2.0, 1.0 / 3.0)],
                step: false,
                band,
            }],
            discrete: true,
            ..Chart::default()
        }
    }

    #[test]
    fn rows_have_units_gaps_and_every_digit() {
        let text = chart(vec![], &[]).csv();
        assert_eq!(
            text,
            "series,rate (1/s),\"reuse, all (fraction)\"\nleast-tokens,0,0.1\nleast-tokens,1,\nleast-tokens,2,0.3333333333333333\n"
        );
        let spread = chart(vec![(0.0, 0.0, 0.2)], &["a", "b", "c,d"]).csv();
        assert!(spread.contains(",10th percentile,90th percentile\nleast-tokens,a,0.1,0,0.2\n"), "{spread}");
        assert!(spread.ends_with("least-tokens,\"c,d\",0.3333333333333333,,\n"), "{spread}");
    }

    #[test]
    fn json_says_the_same_as_csv() {
        let own = chart(vec![(0.0, 0.0, 0.2)], &[]);
        let read: serde_json::Value = serde_json::from_str(&own.json("a \"b\"\n")).expect("it is JSON");
        assert_eq!(read["figure"], "a \"b\"\n");
        assert_eq!(read["y"]["unit"], "fraction");
        let points = read["points"].as_array().expect("a list");
        assert_eq!(points.len(), own.csv().lines().count() - 1);
        assert_eq!(
            points[0],
            serde_json::json!({"series": "least-tokens", "x": 0, "y": 0.1, "p10": 0, "p90": 0.2})
        );
        assert!(points[1]["y"].is_null());
        assert_eq!(points[2]["y"], 1.0 / 3.0);
        let named: serde_json::Value =
            serde_json::from_str(&chart(vec![], &["a", "b", "c"]).json("x")).expect("it is JSON");
        assert_eq!(named["points"][2]["x"], "c");
    }

    #[test]
    fn a_table_reads_as_the_chart_does() {
        let table = chart(vec![], &[]).table(200);
        assert_eq!(table.heads, ["rate (1/s)", "least-tokens"]);
        assert_eq!(table.rows, [["0 1/s", "10.0 %"], ["2.00 1/s", "33.3 %"]]);
        assert_eq!(table.all, 2);
        assert_eq!(chart(vec![], &[]).table(1).rows.len(), 1);
    }

    #[test]
    fn a_picture_stands_alone() {
        let picture = chart(vec![], &[]).picture("Reuse <all>");
        assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\""), "{picture}");
        assert!(picture.contains("<title>Reuse &lt;all></title>"));
        for class in ["ink", "muted", "grid", "least-tokens"] {
            assert!(picture.contains(&format!(".{class}{{color:#")), "{class}: {picture}");
            assert!(picture.contains(&format!("class=\"{class}")), "{class}: {picture}");
        }
        assert_eq!(picture.matches("<text").count(), picture.matches("</text>").count());
    }
}
