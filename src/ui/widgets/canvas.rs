//! Charts on canvases; there are none while the page is built.

use web_sys::HtmlCanvasElement;

use crate::plot::{Chart, Theme};

/// Draws a chart onto all of a canvas of so many CSS pixels, `scale` pixels each. Whether it could.
#[cfg(target_arch = "wasm32")]
pub fn paint(
    canvas: &HtmlCanvasElement,
    chart: &Chart,
    theme: &Theme,
    (width, height): (u32, u32),
    scale: f64,
) -> bool {
    use plotters::prelude::IntoDrawingArea;

    let pixels = |css: u32| (f64::from(css) * scale).round() as u32;
    // Also clears what was there.
    canvas.set_width(pixels(width));
    canvas.set_height(pixels(height));
    let Some(backend) = plotters_canvas::CanvasBackend::with_canvas_object(canvas.clone()) else {
        return false;
    };
    crate::plot::draw(&backend.into_drawing_area(), chart, theme, scale).is_ok()
}

/// While the page is built.
#[cfg(not(target_arch = "wasm32"))]
pub fn paint(_: &HtmlCanvasElement, _: &Chart, _: &Theme, _: (u32, u32), _: f64) -> bool {
    false
}
