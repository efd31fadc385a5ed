//! `warmroute export-config`: a policy with its values as the configuration of the router it comes from.

use std::ffi::OsString;

use lexopt::prelude::*;

use super::inputs::Inputs;
use super::{UsageError, help};
use crate::policy::PolicyKind;
use crate::take_home::take_home;

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut inputs = Inputs::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::export_config()),
            Long(flag) => {
                let flag = flag.to_owned();
                inputs.take_or_refuse(&flag, &mut parser, "export-config", &["help"])?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if !inputs.sets("policy") {
        return Err(UsageError("--policy says whose configuration is wanted; there is none".into()));
    }
    inputs.default_to("backend", "modelled");
    let config = inputs.config()?;
    let mut texts = Vec::new();
    for &policy in &config.policy {
        let Some(found) = take_home(&config, policy) else {
            let with = PolicyKind::every().filter(|&other| take_home(&config, other).is_some());
            let names: Vec<&str> = with.map(PolicyKind::name).collect();
            return Err(UsageError(format!(
                "--policy: no router that we know is configured to do what {} does; there are {}",
                policy.name(),
                names.join(", ")
            )));
        };
        texts.push(found.text);
    }
    Ok(texts.join("\n"))
}
