//! The chart and the section on cold starts, mounted in a browser.
#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
use web_sys::{Element, HtmlCanvasElement, HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use warmroute::coldstart::{Bandwidth, Parameters, Precision, Settings, seconds_text};
use warmroute::plot::svg::UNITS;
use warmroute::plot::{Axis, Chart, Format, Role, Series};
use warmroute::policy::PolicyKind;
use warmroute::ui::sections::cold_start::ColdStart;
use warmroute::ui::widgets::plot::{Plot, PlotProps};

wasm_bindgen_test_configure!(run_in_browser);

fn document() -> web_sys::Document {
    web_sys::window().expect("a window").document().expect("a document")
}

/// A `div` of a width in the page.
fn place(style: &str) -> Element {
    let div = document().create_element("div").expect("a div");
    div.set_attribute("style", style).expect("an attribute");
    document().body().expect("a body").append_child(&div).expect("it is attached");
    div
}

/// Lets observers, effects and timers run.
async fn settle() {
    for _ in 0..3 {
        let pause = js_sys::Promise::new(&mut |resolve, _| {
            let window = web_sys::window().expect("a window");
            window.set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, 50).expect("a timer");
        });
        JsFuture::from(pause).await.expect("a timer does not fail");
    }
}

fn find<T: JsCast>(root: &Element, selector: &str) -> T {
    let found = root.query_selector(selector).expect("a selector").unwrap_or_else(|| panic!("{selector}"));
    found.dyn_into().unwrap_or_else(|_| panic!("{selector} is something else"))
}

fn text(root: &Element, selector: &str) -> String {
    find::<Element>(root, selector).text_content().unwrap_or_default()
}

fn chart(peak: f64) -> Rc<Chart> {
    let policy = PolicyKind::PrefixAffinity;
    Rc::new(Chart {
        title: "Goodput over time".into(),
        x: Axis::new("Simulated time", "s", Format::Number),
        y: Axis::new("Goodput", "requests/s", Format::Number),
        series: vec![Series {
            name: policy.name().into(),
            role: Role::Policy(policy),
            points: (0..=10).map(|i| (f64::from(i), peak * f64::from(i % 4))).collect(),
            step: false,
            band: vec![],
        }],
        markers: vec![],
        discrete: false,
    })
}

fn key(target: &Element, key: &str) {
    let init = web_sys::KeyboardEventInit::new();
    init.set_key(key);
    init.set_bubbles(true);
    let event =
        web_sys::KeyboardEvent::new_with_keyboard_event_init_dict("keydown", &init).expect("an event");
    target.dispatch_event(&event).expect("it is dispatched");
}

#[wasm_bindgen_test]
async fn a_plot_follows_its_size_and_its_colours_are_classes() {
    let root = place("width:601px");
    let style = document().create_element("style").expect("an element");
    style.set_text_content(Some(
        ".plot { margin: 0 } .plot-surface { display: block; width: 100%; height: 200px }",
    ));
    root.append_child(&style).expect("it is attached");
    let inner = document().create_element("div").expect("a div");
    root.append_child(&inner).expect("it is attached");
    let label = "Goodput over time, rising and falling".into();
    let props = PlotProps { chart: chart(1.0), label, taken: None };
    let handle = yew::Renderer::<Plot>::with_root_and_props(inner, props).render();
    settle().await;
    let surface: Element = find(&root, "svg.plot-surface");
    assert_eq!(surface.get_attribute("role").as_deref(), Some("img"));
    assert_eq!(surface.get_attribute("aria-label").as_deref(), Some("Goodput over time, rising and falling"));
    let view = || surface.get_attribute("viewBox").unwrap_or_default();
    assert_eq!(view(), format!("0 0 {} {}", 601 * UNITS, 200 * UNITS));
    let line: Element = find(&root, "path.line.prefix-affinity");
    let points = line.get_attribute("d").unwrap_or_default();
    assert_eq!(points.matches(['M', 'L']).count(), 11, "{points}");
    assert_eq!(surface.query_selector_all("[style], [fill], [stroke]").expect("a selector").length(), 0);
    let canvas: HtmlCanvasElement = find(&root, ".drawn > canvas");
    let pixels = |css: u32| {
        (f64::from(css) * web_sys::window().expect("a window").device_pixel_ratio()).round() as u32
    };
    assert_eq!((canvas.width(), canvas.height()), (pixels(601), pixels(200)));
    let empty: HtmlCanvasElement =
        document().create_element("canvas").expect("a canvas").dyn_into().expect("it is one");
    empty.set_width(canvas.width());
    empty.set_height(canvas.height());
    assert!(
        canvas.to_data_url().expect("it is read") != empty.to_data_url().expect("it is read"),
        "drawn on"
    );

    root.set_attribute("style", "width:400px").expect("an attribute");
    // The picture for paper follows what has stood for half a second.
    let wanted = format!("0 0 {} {}", 400 * UNITS, 200 * UNITS);
    for _ in 0..200 {
        if view() == wanted {
            break;
        }
        settle().await;
    }
    assert_eq!(view(), wanted);
    assert!(surface.is_connected(), "the surface is still the same");
    handle.destroy();
    root.remove();
}

#[wasm_bindgen_test]
async fn the_arrow_keys_read_values() {
    let root = place("width:600px");
    let props = PlotProps { chart: chart(0.5), label: "Goodput".into(), taken: None };
    let handle = yew::Renderer::<Plot>::with_root_and_props(root.clone(), props).render();
    settle().await;
    let surface: Element = find(&root, "svg.plot-surface");
    for name in ["Home", "ArrowRight", "ArrowRight", "ArrowRight"] {
        key(&surface, name);
        settle().await;
    }
    assert_eq!(text(&root, ".plot-readout"), "Simulated time 3.00 s: prefix-affinity 1.50 requests/s");
    let cross = || find::<Element>(&root, ".plot-cross").get_attribute("d").unwrap_or_default();
    assert!(cross().starts_with('M'), "{}", cross());
    assert!(surface.is_connected(), "the surface is still the same");
    key(&surface, "Escape");
    settle().await;
    assert_eq!(cross(), "");
    handle.destroy();
    root.remove();
}

/// The section with an owner that keeps its settings, as the app does.
#[component]
fn Owner() -> Html {
    let settings = use_state_eq(|| Settings {
        parameters: Parameters::parse("8e9").expect("a number"),
        precision: Precision::Bf16,
        bandwidth: Bandwidth::parse("4GB/s").expect("a rate"),
    });
    let on_change = {
        let settings = settings.setter();
        Callback::from(move |changed: Settings| {
            LAST.with(|last| *last.borrow_mut() = Some(changed));
            settings.set(changed);
        })
    };
    html! { <ColdStart settings={*settings} {on_change} /> }
}

thread_local! {
    static LAST: RefCell<Option<Settings>> = const { RefCell::new(None) };
}

fn fire(target: &Element, event: &str) {
    let init = web_sys::EventInit::new();
    init.set_bubbles(true);
    let event = web_sys::Event::new_with_event_init_dict(event, &init).expect("an event");
    target.dispatch_event(&event).expect("it is dispatched");
}

#[wasm_bindgen_test]
async fn the_section_shows_what_the_core_says() {
    let root = place("width:800px");
    let handle = yew::Renderer::<Owner>::with_root(root.clone()).render();
    settle().await;
    assert_eq!(text(&root, ".cold-seconds"), "4.00 s");
    assert_eq!(text(&root, ".cold-formula"), "8 × 10⁹ parameters × 2 bytes ÷ 4 GB/s = 4.00 s");
    assert_eq!(text(&root, "td[aria-current=true]"), "4.00 s");
    assert!(text(&root, ".cold-consequences").contains("4.00 times"));
    assert!(find::<Element>(&root, "table caption").text_content().is_some());

    // A named model from the list.
    let list: HtmlSelectElement = find(&root, "#cold-parameters");
    list.set_value("llama-3.1-70b");
    fire(&list, "change");
    settle().await;
    let chosen = LAST.with(|last| *last.borrow()).expect("a change was told");
    assert_eq!(chosen.parameters.text(), "llama-3.1-70b");
    assert_eq!(text(&root, ".cold-seconds"), seconds_text(chosen.transfer().seconds()));

    // What cannot be is refused beside the field, and the last valid value stays.
    let field: HtmlInputElement = find(&root, "#cold-bandwidth-number");
    field.set_value("3.5");
    fire(&field, "input");
    settle().await;
    assert!(text(&root, ".cold-error").contains("found `3.5`"), "{}", text(&root, ".cold-error"));
    assert_eq!(text(&root, ".cold-seconds"), seconds_text(chosen.transfer().seconds()));
    field.set_value("7GB/s");
    fire(&field, "input");
    settle().await;
    assert!(root.query_selector(".cold-error").expect("a selector").is_none());
    assert!(text(&root, ".cold-formula").contains("÷ 7 GB/s"));
    assert_eq!(field.value(), "7GB/s", "what is typed is not rewritten");
    handle.destroy();
    root.remove();
}
