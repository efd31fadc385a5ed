//! The worker that runs jobs off the page's main thread.
fn main() {}
