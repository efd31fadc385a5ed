//! The state as yew wants it: a pointer that is compared by address.

use std::ops::Deref;
use std::rc::Rc;

use yew::Reducible;

use super::state::{Action, State};

/// The page's state, shared.
#[derive(Clone, Debug)]
pub struct Shared(pub Rc<State>);

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Shared {
    type Target = State;
    fn deref(&self) -> &State {
        &self.0
    }
}

impl Reducible for Shared {
    type Action = Action;
    fn reduce(self: Rc<Shared>, action: Action) -> Rc<Shared> {
        let next = Rc::clone(&self.0).reduce(action);
        if Rc::ptr_eq(&next, &self.0) { self } else { Rc::new(Shared(next)) }
    }
}
