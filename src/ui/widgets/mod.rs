//! The small parts that sections are made of; one component a file.

mod blocks;
mod canvas;
mod column;
mod field;
mod figure_tools;
mod live;
pub mod lives;
mod mark;
mod matrix;
pub mod plot;
mod replica;
mod said;
mod surroundings;
mod transport;
mod why;

pub use blocks::Blocks;
pub use column::Column;
pub use field::Field;
pub use figure_tools::{FIGURE, Taken};
pub use live::Live;
pub use lives::Lives;
pub use mark::Mark;
pub use matrix::Matrix;
pub use plot::Plot;
pub use replica::{ChipButton, Replica};
pub use said::{Said, use_said};
pub use transport::Transport;
pub use why::Why;
