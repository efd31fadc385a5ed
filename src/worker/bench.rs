//! The job that measures TinyGPT on the reader's machine.

use super::Told;
use crate::cost::calibrate::calibrate;
use crate::engine::SharedModel;

/// Measures under the worker's own clock, and tells how far it has come.
pub(super) fn measure(model: &SharedModel, tell: &dyn Fn(&Told)) {
    let found = calibrate(model, &mut super::run::seconds, &mut |done, of| {
        tell(&Told::Measured { done: done as u32, of: of as u32 });
    });
    tell(&Told::Calibrated(Box::new(found)));
}
