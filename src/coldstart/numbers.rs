//! Quantities as texts: read from what people write, and written to three significant digits.

use crate::units::{Bytes, BytesPerSecond, significant};

/// Three significant digits without zeros at the end: 3.5, 64, 0.5.
fn trimmed(x: f64) -> String {
    crate::units::trimmed(x, 3)
}

/// A count as a multiple of a power of ten: `8.03 × 10⁹`; small ones as they are.
pub fn count_text(count: f64) -> String {
    if count < 1e4 {
        return trimmed(count);
    }
    let text = format!("{count:.2e}");
    let (mantissa, exponent) = text.split_once('e').expect("scientific notation has an exponent");
    let exponent: u32 = exponent.parse().expect("large numbers have a positive exponent");
    // In steps of a thousand: millions, 10⁹, 10¹².
    let shift = exponent % 3;
    let mantissa: f64 = mantissa.parse().expect("a mantissa is a number");
    let scale = [1.0, 10.0, 100.0][shift as usize];
    let digits = (exponent - shift).to_string();
    let raised: String =
        digits.bytes().filter_map(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(usize::from(digit - b'0'))).collect();
    format!("{} × 10{raised}", trimmed(mantissa * scale))
}

/// Picks the largest unit that is not above the value.
fn with_unit(x: f64, units: &[(f64, &str)]) -> String {
    let fits = units.iter().find(|(size, _)| x >= *size * 0.9995);
    let (size, unit) = fits.or(units.last()).expect("there is a unit");
    format!("{} {unit}", trimmed(x / size))
}

/// Bytes in decimal units: `16.1 GB`.
pub fn bytes_text(bytes: Bytes) -> String {
    with_unit(bytes.0, &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")])
}

/// A rate in decimal units: `3.5 GB/s`.
pub fn rate_text(rate: BytesPerSecond) -> String {
    with_unit(rate.0, &[(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "bytes/s")])
}

/// A time to three significant digits, its unit the second unless it is far below one: `4.59 s`,
/// `3.34 ms`.
pub fn seconds_text(seconds: f64) -> String {
    let (size, unit) = match seconds {
        s if s >= 0.0995 || s == 0.0 => (1.0, "s"),
        s if s >= 1e-4 => (1e-3, "ms"),
        _ => (1e-6, "µs"),
    };
    format!("{} {unit}", significant(seconds / size, 3))
}

/// Reads a number with one of some suffixes, each with what it multiplies by.
pub(super) fn read(text: &str, suffixes: &[(&str, f64)]) -> Option<f64> {
    let (number, scale) = suffixes
        .iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)))
        .unwrap_or((text, 1.0));
    let number = number.trim_end();
    // Only digits start or end a number here: no "inf", no "nan".
    let plain = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    number.parse::<f64>().ok().filter(|n| plain && n.is_finite()).map(|n| n * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_as_people_write_them() {
        assert_eq!(count_text(8_030_261_248.0), "8.03 × 10⁹");
        assert_eq!(count_text(405_853_388_800.0), "406 × 10⁹");
        assert_eq!(count_text(5_838_080.0), "5.84 × 10⁶");
        assert_eq!(count_text(2e13), "20 × 10¹²");
        assert_eq!(count_text(1.0), "1");
        assert_eq!(bytes_text(Bytes(16_060_522_496.0)), "16.1 GB");
        assert_eq!(bytes_text(Bytes(0.5)), "0.5 bytes");
        assert_eq!(rate_text(BytesPerSecond(3.5e9)), "3.5 GB/s");
        assert_eq!(rate_text(BytesPerSecond(999_999_999.0)), "1 GB/s");
        assert_eq!(seconds_text(4.588_7), "4.59 s");
        assert_eq!(seconds_text(0.003_336), "3.34 ms");
        assert_eq!(seconds_text(9.1e-8), "0.0910 µs");
    }

    #[test]
    fn numbers_are_read_with_their_suffix() {
        let units = [("GB/s", 1e9), ("B", 1e9)];
        assert_eq!(read("3.5GB/s", &units), Some(3.5e9));
        assert_eq!(read("3.5 GB/s", &units), Some(3.5e9));
        assert_eq!(read("8e9", &units), Some(8e9));
        for bad in ["", "GB/s", "inf", "nan", "-1", "3.5 GiB/s", "1e999"] {
            assert_eq!(read(bad, &units), None, "{bad}");
        }
    }
}
