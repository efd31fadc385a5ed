//! The chapter around the race: one section a file, each with a figure that makes its point untouched and a few
//! things to change. What figures show is counted by [`figures`](crate::ui::figures) when it is looked at.

mod affinity;
mod bet;
mod blocks;
mod costs;
mod hot;
mod loads;
mod problem;
mod reading;
mod scatter;
mod seeds;
mod takeaways;

pub use affinity::Affinity;
pub use bet::Bet;
pub use blocks::PrefixBlocks;
pub use costs::Costs;
pub use hot::HotPrefix;
pub use loads::Loads;
pub use problem::Problem;
pub use reading::Reading;
pub use scatter::Scatter;
pub use seeds::Seeds;
pub use takeaways::Takeaways;

use gloo_timers::callback::Timeout;
use yew::prelude::*;

/// What a figure's model does not have, folded away beside it.
fn leaves_out(text: &str) -> Html {
    html! {
        <details class="quiet leaves-out"><summary>{ "What this figure leaves out" }</summary><p>{ text.to_owned() }</p></details>
    }
}

/// "3 times as much", with as many digits as tell something.
fn times(factor: f64) -> String {
    if factor >= 10.0 { format!("{factor:.0}") } else { format!("{factor:.1}") }
}

/// A number with what it counts.
fn count(n: u32, what: &str) -> String {
    format!("{} {what}{}", crate::policy::grouped(n.into()), if n == 1 { "" } else { "s" })
}

/// Sets a state to what a slider says.
fn set<T: 'static>(state: &UseStateHandle<T>, of: impl Fn(u32) -> T + 'static) -> Callback<u32> {
    let setter = state.setter();
    Callback::from(move |place| setter.set(of(place)))
}

/// What comes of each of `of` runs so far, one after the other, so that the page is never long at them; from the first
/// again where what they depend on changes.
#[hook]
fn use_one_by_one<K, T, F>(key: K, of: usize, start: bool, one: F) -> Vec<T>
where
    K: Clone + PartialEq + 'static,
    T: Clone + 'static,
    F: Fn(&K, usize) -> T + 'static,
{
    let done = use_state(|| (key.clone(), Vec::new()));
    let so_far = if done.0 == key { done.1.clone() } else { Vec::new() };
    {
        let so_far = so_far.clone();
        use_effect_with((key, start, so_far.len()), move |(key, start, len)| {
            let at = *len;
            let timer = (*start && at < of).then(|| {
                let key = key.clone();
                Timeout::new(10, move || {
                    let mut all = so_far;
                    all.push(one(&key, at));
                    done.set((key, all));
                })
            });
            move || drop(timer)
        });
    }
    so_far
}
