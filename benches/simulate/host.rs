//! What a benchmark asks of the machine that it runs on: a clock, files, a place to print.

#[cfg(not(target_arch = "wasm32"))]
pub use native::*;
#[cfg(target_arch = "wasm32")]
pub use web::*;

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::path::PathBuf;

    /// Seconds that this thread has run; where the system does not say, that have passed.
    pub fn processor_seconds() -> f64 {
        let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        nanoseconds.map_or_else(elapsed, |ns| ns / 1e9)
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark's stop-watch")]
    fn elapsed() -> f64 {
        use std::sync::OnceLock;
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
    }

    /// The most memory that the process has held, in MB.
    pub fn peak_megabytes() -> Option<f64> {
        let text = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1000.0)
    }

    /// A public trace by its file's name.
    pub fn read_trace(name: &str) -> Option<String> {
        let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/traces"));
        let folder = std::env::var_os("WARMROUTE_TRACES").map_or(beside, PathBuf::from);
        std::fs::read_to_string(folder.join(name)).ok()
    }

    /// What was asked for on the command line.
    pub fn arguments() -> Vec<String> {
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect()
    }

    pub fn print(line: &str) {
        println!("{line}");
    }
}

#[cfg(target_arch = "wasm32")]
mod web {
    use js_sys::{Array, Function, Reflect, global};
    use wasm_bindgen::JsValue;

    fn get(of: &JsValue, name: &str) -> Option<JsValue> {
        Reflect::get(of, &name.into()).ok().filter(|value| !value.is_undefined() && !value.is_null())
    }

    fn call(of: &JsValue, name: &str, arguments: &[JsValue]) -> Option<JsValue> {
        let arguments: Array = arguments.iter().collect();
        Reflect::apply(&Function::from(get(of, name)?), of, &arguments).ok()
    }

    /// Seconds that the process has run (node), or that have passed.
    pub fn processor_seconds() -> f64 {
        let used = get(&global(), "process").and_then(|process| call(&process, "cpuUsage", &[]));
        let microseconds = used.and_then(|used| get(&used, "user")?.as_f64());
        microseconds.map_or_else(|| js_sys::Date::now() / 1e3, |us| us / 1e6)
    }

    /// The memory of the module, in MB.
    pub fn peak_megabytes() -> Option<f64> {
        let buffer = get(&wasm_bindgen::memory(), "buffer")?;
        Some(get(&buffer, "byteLength")?.as_f64()? / 1e6)
    }

    /// A public trace by its file's name (node).
    pub fn read_trace(name: &str) -> Option<String> {
        let process = get(&global(), "process")?;
        let folder = get(&get(&process, "env")?, "WARMROUTE_TRACES")?.as_string()?;
        let files = call(&process, "getBuiltinModule", &["fs".into()])?;
        call(&files, "readFileSync", &[format!("{folder}/{name}").into(), "utf8".into()])?.as_string()
    }

    /// What was asked for on node's command line.
    pub fn arguments() -> Vec<String> {
        let arguments = get(&global(), "process").and_then(|process| get(&process, "argv"));
        arguments.map_or_else(Vec::new, |list| {
            Array::from(&list).iter().skip(2).filter_map(|arg| arg.as_string()).collect()
        })
    }

    pub fn print(line: &str) {
        if let Some(console) = get(&global(), "console") {
            call(&console, "log", &[line.into()]);
        }
    }
}
