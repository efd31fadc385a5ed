//! How many bytes a parameter takes.

use core::fmt;

/// The type that weights are stored in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats, the half-precision kind.
    Fp16,
    /// 16-bit floats with the range of 32-bit ones.
    #[default]
    Bf16,
    /// 8-bit floats.
    Fp8,
    /// 8-bit whole numbers.
    Int8,
    /// 4-bit whole numbers, two in a byte. The scales that every group of them has (a few percent
    /// more) are not counted.
    Int4,
}

impl Precision {
    /// Every precision, from the widest to the narrowest.
    pub const ALL: [Precision; 6] =
        [Precision::Fp32, Precision::Fp16, Precision::Bf16, Precision::Fp8, Precision::Int8, Precision::Int4];

    /// One precision of each size, with a heading that names all of that size.
    pub const SIZES: [(Precision, &'static str); 4] = [
        (Precision::Fp32, "fp32"),
        (Precision::Bf16, "fp16, bf16"),
        (Precision::Int8, "fp8, int8"),
        (Precision::Int4, "int4"),
    ];

    /// Its name on the command line, on the page and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Fp32 => "fp32",
            Precision::Fp16 => "fp16",
            Precision::Bf16 => "bf16",
            Precision::Fp8 => "fp8",
            Precision::Int8 => "int8",
            Precision::Int4 => "int4",
        }
    }

    /// Bytes that one parameter takes. For [`Precision::Int4`] without its scales.
    pub fn bytes_per_parameter(self) -> f64 {
        match self {
            Precision::Fp32 => 4.0,
            Precision::Fp16 | Precision::Bf16 => 2.0,
            Precision::Fp8 | Precision::Int8 => 1.0,
            Precision::Int4 => 0.5,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_cover_every_precision_once() {
        let named: Vec<&str> = Precision::SIZES.iter().flat_map(|(_, names)| names.split(", ")).collect();
        assert_eq!(named, Precision::ALL.map(Precision::name));
        for (precision, names) in Precision::SIZES {
            for name in names.split(", ") {
                let same = Precision::ALL.into_iter().find(|p| p.name() == name).expect("it is listed");
                assert_eq!(same.bytes_per_parameter(), precision.bytes_per_parameter());
            }
        }
    }
}
