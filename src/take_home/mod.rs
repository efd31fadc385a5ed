//! A policy with its values as the configuration of the router it comes from: flags, YAML or environment,
//! with what is assumed in comments.
//!
//! Names of options are those of the versions that the policies' own files name; where an option could not
//! be read there, or a value has no counterpart, a comment says so.

mod kubernetes;
mod processes;

use crate::params::Config;
use crate::policy::PolicyKind;

/// A configuration and what router it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeHome {
    /// The router.
    pub router: &'static str,
    /// The text of a file or a command, with its comments.
    pub text: String,
}

/// The configuration of the real router; `None` where no router that we know has the rule.
pub fn take_home(config: &Config, policy: PolicyKind) -> Option<TakeHome> {
    use PolicyKind::*;
    let (router, body) = match policy {
        RoundRobin | Random | PowerOfTwo | SmgCacheAware | SmgPrefixHash | SmgLeastLoad => {
            ("SMG", processes::smg(config, policy))
        }
        SglangCacheAware => ("SGLang's gateway and vLLM's router", processes::sglang(config)),
        StackPrefixAware | SessionHash => ("vLLM production-stack", processes::stack(config, policy)),
        VllmKvAware => ("vLLM's router", processes::vllm_kv(config)),
        Dynamo => ("NVIDIA Dynamo", processes::dynamo(config)),
        RayPrefix => ("Ray Serve", processes::ray(config)),
        LiteLlm => ("LiteLLM", processes::litellm(config)),
        LeastRequests | AibrixPrefixCache | AibrixPreble => ("AIBrix", kubernetes::aibrix(config, policy)),
        LlmD => ("llm-d", kubernetes::llm_d(config)),
        Chwbl => ("KubeAI", kubernetes::kubeai(config)),
        LeastTokens | PrefixAffinity | LongestPrefix | ModuloHash | ConsistentHash | RendezvousHash
        | Preble | Mooncake => return None,
    };
    let text = format!(
        "# {} for {router}, as simulated with warmroute {}.\n{}{body}",
        policy.name(),
        env!("CARGO_PKG_VERSION"),
        assumptions(config)
    );
    Some(TakeHome { router, text })
}

/// What every one of them assumes.
fn assumptions(config: &Config) -> String {
    let late = match (config.signal_period, config.signal_own) {
        (0.0, _) => "loads were those of the moment".to_owned(),
        (period, false) => format!("loads were up to {period} s old"),
        (period, true) => format!("loads were up to {period} s old, with the router's own requests added"),
    };
    let routers = match config.routers {
        1 => "one router".to_owned(),
        n => format!("{n} routers, each with its own view"),
    };
    format!(
        "# Assumed: {} replicas, KV blocks of {} tokens, {routers}; {late}.\n",
        config.replicas, config.block_size
    )
}

/// A line of a comment for each that is there.
fn notes(notes: &[&str]) -> String {
    notes.iter().map(|note| format!("# {note}\n")).collect()
}

/// A command with an option a line.
fn command(program: &str, options: &[(&str, String)]) -> String {
    let mut text = program.to_owned();
    for (option, value) in options {
        text += &format!(" \\\n  {option}");
        if !value.is_empty() {
            text += &format!(" {value}");
        }
    }
    text + "\n"
}

/// Addresses to be replaced by the reader's.
fn workers(config: &Config) -> String {
    let shown = config.replicas.min(4);
    let mut names: Vec<String> = (0..shown).map(|at| format!("http://replica-{at}:8000")).collect();
    if config.replicas > shown {
        names.push(format!("http://replica-{}:8000", config.replicas - 1));
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::set;

    /// `BLESS=1 cargo test --lib take_home` writes the files anew.
    #[test]
    fn each_is_what_its_file_says() {
        let mut config = Config { replicas: 8, routers: 2, signal_period: 0.05, ..Config::default() };
        for (key, value) in [
            ("smg_cache_aware.balance_abs_threshold", "32"),
            ("llm_d.prefix_weight", "1.5"),
            ("dynamo.temperature", "0.25"),
            ("ray_prefix.imbalanced_threshold", "10"),
        ] {
            set(&mut config, key, value).unwrap_or_else(|e| panic!("{e}"));
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/take_home");
        let mut wrong = Vec::new();
        for policy in PolicyKind::every() {
            let Some(TakeHome { text, .. }) = take_home(&config, policy) else { continue };
            let file = format!("{folder}/{}.txt", policy.name());
            if std::env::var_os("BLESS").is_some() {
                std::fs::create_dir_all(folder).expect("it can be made");
                std::fs::write(&file, &text).expect("it can be written");
            }
            if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                wrong.push(policy.name());
            }
        }
        assert!(wrong.is_empty(), "{wrong:?} differ from their files in {folder}");
    }

    #[test]
    fn every_knob_of_an_exported_policy_is_told_or_its_absence_is() {
        let config = Config::default();
        for policy in PolicyKind::PRODUCTION {
            let Some(TakeHome { text, .. }) = take_home(&config, policy) else { continue };
            for (param, _) in crate::params::knobs_of(policy) {
                let value = param.get(&config);
                let name = param.key.split_once('.').map_or(param.key, |(_, name)| name);
                let text = text.to_lowercase();
                let told =
                    text.contains(&value) || text.contains(name) || text.contains(&name.replace('_', "-"));
                assert!(told, "{}: nothing of {}\n{text}", policy.name(), param.key);
            }
        }
    }
}
