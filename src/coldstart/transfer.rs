//! Pure transfer time: bytes of weights ÷ bandwidth.

use serde::Serialize;

use super::{Model, Parameters, Precision, Settings, bytes_text, count_text, rate_text, seconds_text};
use crate::units::{Bytes, BytesPerSecond};

/// The stage of a cold start in which the weights arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightsTransfer {
    /// How many parameters.
    pub parameters: u64,
    /// The type of each.
    pub precision: Precision,
    /// How fast they come.
    pub bandwidth: BytesPerSecond,
}

impl WeightsTransfer {
    /// The bytes of the weights alone.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.parameters as f64 * self.precision.bytes_per_parameter())
    }

    /// How long they take, in seconds: a floor.
    pub fn seconds(&self) -> f64 {
        self.bytes().seconds_at(self.bandwidth)
    }

    /// The bandwidth at which they would take so many seconds.
    pub fn bandwidth_for(&self, seconds: f64) -> BytesPerSecond {
        BytesPerSecond(self.bytes().0 / seconds)
    }

    /// The same transfer of another type.
    pub fn at(&self, precision: Precision) -> WeightsTransfer {
        WeightsTransfer { precision, ..*self }
    }

    /// The calculation with its numbers.
    pub fn formula(&self) -> String {
        let each = self.precision.bytes_per_parameter();
        format!(
            "{} parameters × {each} {} ÷ {} = {}",
            count_text(self.parameters as f64),
            if each == 2.0 || each == 4.0 { "bytes" } else { "byte" },
            rate_text(self.bandwidth),
            seconds_text(self.seconds())
        )
    }

    /// The size in words: `16.1 GB`.
    pub fn size_text(&self) -> String {
        bytes_text(self.bytes())
    }
}

/// One model at one precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The precision's name.
    pub precision: &'static str,
    /// Bytes of weights.
    pub bytes: f64,
    /// Seconds that they take.
    pub seconds: f64,
}

/// One model at every precision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The model's name in sentences, or the number that was given.
    pub model: String,
    /// Its parameters.
    pub parameters: u64,
    /// One cell a precision, in the order of [`Precision::ALL`].
    pub cells: Vec<Cell>,
}

impl Row {
    /// The cell of a precision.
    pub fn cell(&self, precision: Precision) -> &Cell {
        self.cells.iter().find(|c| c.precision == precision.name()).expect("a row has every precision")
    }
}

/// Every model at every precision over one bandwidth. A number of parameters that is no model's
/// comes first, in a row of its own.
pub fn rows(settings: &Settings) -> Vec<Row> {
    let own = match settings.parameters {
        Parameters::Number(_) => Some(settings.parameters),
        Parameters::Of(_) => None,
    };
    let models = Model::ALL.map(Parameters::Of);
    own.into_iter()
        .chain(models)
        .map(|parameters| Row {
            model: parameters.to_string(),
            parameters: parameters.count(),
            cells: Precision::ALL
                .map(|precision| {
                    let transfer = Settings { parameters, precision, ..*settings }.transfer();
                    Cell {
                        precision: precision.name(),
                        bytes: transfer.bytes().0,
                        seconds: transfer.seconds(),
                    }
                })
                .to_vec(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coldstart::{Bandwidth, Path};

    fn transfer(parameters: u64, precision: Precision, bandwidth: f64) -> WeightsTransfer {
        WeightsTransfer { parameters, precision, bandwidth: BytesPerSecond(bandwidth) }
    }

    #[test]
    fn hand_worked_times() {
        // 8 × 10⁹ × 2 bytes = 16 GB; at 4 GB/s that is 4 s.
        assert_eq!(transfer(8_000_000_000, Precision::Bf16, 4e9).seconds(), 4.0);
        // 70 × 10⁹ × 1 byte at 3.5 GB/s.
        assert_eq!(transfer(70_000_000_000, Precision::Int8, 3.5e9).seconds(), 20.0);
        // 8,030,261,248 × 2 = 16,060,522,496 bytes; ÷ 3.5 × 10⁹ = 4.5887…
        let llama = Settings::default().transfer();
        assert_eq!(llama.bytes(), Bytes(16_060_522_496.0));
        assert!((llama.seconds() - 4.588_720_713).abs() < 1e-9);
        // 405,853,388,800 × 2 ÷ 1.05 × 10⁹ = 773.05… s, nearly 13 minutes.
        assert!((transfer(405_853_388_800, Precision::Fp16, 1.05e9).seconds() - 773.054_073).abs() < 1e-6);
    }

    #[test]
    fn int4_is_exactly_a_quarter_of_sixteen_bits() {
        for model in Model::ALL {
            for path in Path::ALL {
                let bf16 = transfer(model.parameters(), Precision::Bf16, path.rate().0);
                let int4 = bf16.at(Precision::Int4);
                assert_eq!(4.0 * int4.bytes().0, bf16.bytes().0);
                assert_eq!(4.0 * int4.seconds(), bf16.seconds());
                assert_eq!(bf16.at(Precision::Fp16).seconds(), bf16.seconds());
            }
        }
    }

    #[test]
    fn the_formula_has_its_numbers_in_it() {
        let llama = Settings::default().transfer();
        assert_eq!(llama.formula(), "8.03 × 10⁹ parameters × 2 bytes ÷ 3.5 GB/s = 4.59 s");
        assert_eq!(
            transfer(5_838_080, Precision::Int4, 64e9).formula(),
            "5.84 × 10⁶ parameters × 0.5 byte ÷ 64 GB/s = 45.6 µs"
        );
        assert_eq!(llama.size_text(), "16.1 GB");
        assert!((llama.bandwidth_for(2.0).0 - 8_030_261_248.0).abs() < 1e-3);
    }

    #[test]
    fn the_table_has_the_chosen_setting_in_it() {
        let mut settings = Settings { bandwidth: Bandwidth::Of(Path::ObjectStore), ..Settings::default() };
        let table = rows(&settings);
        assert_eq!((table.len(), table[0].cells.len()), (4, 6));
        assert_eq!(table[0].cell(settings.precision).seconds, settings.transfer().seconds());
        settings.parameters = Parameters::Number(13_000_000_000);
        let table = rows(&settings);
        assert_eq!((table.len(), table[0].model.as_str()), (5, "13 × 10⁹ parameters"));
        assert_eq!(table[0].cell(settings.precision).seconds, settings.transfer().seconds());
    }
}
