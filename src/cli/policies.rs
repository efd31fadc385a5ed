//! `warmroute policies`: which routing policies there are, and what each can be tuned by.

use std::ffi::OsString;

use lexopt::prelude::*;

use super::{UsageError, help};
use crate::params::nearest;
use crate::policy::PolicyKind;

/// The policy of a name, or what is nearest to it.
pub fn named(name: &str) -> Result<PolicyKind, UsageError> {
    PolicyKind::from_name(name).ok_or_else(|| {
        let near = nearest(name, PolicyKind::every().map(PolicyKind::name))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        UsageError(format!("`{name}` is no policy; `warmroute policies` lists them{near}"))
    })
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut parser = lexopt::Parser::from_args(args);
    let mut chosen = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::policies()),
            Value(name) => chosen.push(named(&name.string()?)?),
            other => return Err(other.unexpected().into()),
        }
    }
    if chosen.is_empty() {
        let line = |policy: PolicyKind| format!("{:<20} {}\n", policy.name(), policy.summary());
        return Ok(PolicyKind::every().map(line).collect());
    }
    Ok(chosen.into_iter().map(help::policy).collect::<Vec<_>>().join("\n"))
}
