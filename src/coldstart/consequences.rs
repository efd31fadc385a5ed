//! What a transfer time means for whoever runs the fleet: arithmetic on the same number.

use super::{Precision, Settings, WeightsTransfer, rate_text, seconds_text};
use crate::units::significant;

/// One thing that follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequence {
    /// It in a few words.
    pub title: &'static str,
    /// It with the numbers of the current settings.
    pub text: String,
}

/// The time to first token that [`scale_to_zero`] holds a transfer against, in seconds.
const OBJECTIVE: f64 = 1.0;

/// What follows from the current settings.
pub fn consequences(settings: &Settings) -> [Consequence; 3] {
    let transfer = settings.transfer();
    [
        Consequence { title: "Whoever waits for the load to rise is late", text: late(&transfer) },
        Consequence {
            title: "Scaling to zero spends the first reader's patience",
            text: scale_to_zero(&transfer),
        },
        Consequence { title: "Fewer bits bring a lost replica back sooner", text: recovery(&transfer) },
    ]
}

fn late(transfer: &WeightsTransfer) -> String {
    let seconds = transfer.seconds();
    // At one request a second more than the fleet can take, one a second is left over.
    let left_over = match seconds {
        s if s < 1.0 => "less than one is".to_owned(),
        s if s < 2.0 => "one is".to_owned(),
        s => format!("{:.0} are", s.floor()),
    };
    format!(
        "A scaler that acts on what it measures begins when there is already too much, and then the weights \
         take {}. For every request a second that the fleet cannot serve, {left_over} left over by the time \
         they are there. To see the rise earlier shortens the wait before the transfer, never the transfer: \
         the rest is spare capacity, paid for in advance.",
        seconds_text(seconds)
    )
}

fn scale_to_zero(transfer: &WeightsTransfer) -> String {
    let seconds = transfer.seconds();
    let size = transfer.size_text();
    if seconds <= OBJECTIVE {
        return format!(
            "With no replica up, the next request waits for all {size} before its first token: {}. A TTFT \
             objective of 1 s survives that, with {} left for everything that this figure leaves out, and \
             what is left out is usually far longer.",
            seconds_text(seconds),
            seconds_text(OBJECTIVE - seconds)
        );
    }
    format!(
        "With no replica up, the next request waits for all {size} before its first token: {}, which is {} \
         times a TTFT objective of 1 s. Only a path faster than {} would keep it, and that with nothing \
         else to do.",
        seconds_text(seconds),
        significant(seconds / OBJECTIVE, 3),
        rate_text(transfer.bandwidth_for(OBJECTIVE))
    )
}

fn recovery(transfer: &WeightsTransfer) -> String {
    let wide = transfer.at(Precision::Bf16).seconds();
    let narrow = transfer.at(Precision::Int4).seconds();
    format!(
        "When a replica dies, its share of the load sits on the others until its weights are somewhere else: \
         {} as bf16, {} as int4 (scales not counted). That is {} less of running short: it takes a quarter of the \
         time whatever the model and the path: a reason to quantise that has nothing to do with memory.",
        seconds_text(wide),
        seconds_text(narrow),
        seconds_text(wide - narrow)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coldstart::{Bandwidth, Model, Parameters, Path};

    #[test]
    fn the_numbers_are_those_of_the_settings() {
        let [late, zero, recovery] = consequences(&Settings::default());
        assert!(late.text.contains("take 4.59 s") && late.text.contains("4 are left over"), "{}", late.text);
        assert!(zero.text.contains("4.59 times") && zero.text.contains("16.1 GB/s"), "{}", zero.text);
        assert!(recovery.text.contains("4.59 s as bf16, 1.15 s as int4"), "{}", recovery.text);
        assert!(recovery.text.contains("3.44 s less"), "{}", recovery.text);
    }

    #[test]
    fn a_model_that_fits_the_objective_is_told_so() {
        let tiny = Settings {
            parameters: Parameters::Of(Model::TinyGpt),
            bandwidth: Bandwidth::Of(Path::Pcie),
            ..Settings::default()
        };
        let [late, zero, _] = consequences(&tiny);
        assert!(late.text.contains("less than one is left over"), "{}", late.text);
        assert!(zero.text.contains("survives") && zero.text.contains("1.00 s left"), "{}", zero.text);
    }
}
