//! The answer: limited, not limited and why, or broken. Pure.

use super::facts::{Facts, Seen};
use crate::node::elf::Loading;

/// Whether a process is limited.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It is.
    Limited,
    /// It is not.
    NotLimited(Why),
    /// Limits are set that cannot be used: it is allowed no GPU work.
    Broken(String),
}

/// Why a process is not limited.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// Nothing is set.
    NoLimit,
    /// Nothing asks the loader for the library.
    NotAsked,
    /// It is asked for, and not there.
    Missing,
    /// The kernel loads it alone.
    Static,
    /// Its loader is not glibc's.
    Foreign(String),
    /// Its loader ignores `LD_PRELOAD`.
    Secure,
    /// It was asked for, could be loaded, and is not: the program has unloaded or replaced it.
    NotLoaded,
}

impl Verdict {
    /// What follows from the facts.
    pub(super) fn of(facts: &Facts) -> Self {
        let out_of_reach = reach(facts);
        match (&facts.limits, out_of_reach) {
            (Ok(None), _) => Self::NotLimited(Why::NoLimit),
            (_, Some(why)) => Self::NotLimited(why),
            (Err(broken), None) => Self::Broken(broken.clone()),
            (Ok(Some(_)), None) => Self::Limited,
        }
    }
}

/// Why the library is not in the process; `None` if it is, or will be.
fn reach(facts: &Facts) -> Option<Why> {
    let asked = facts.asked_by.iter().any(|asking| asking.is_there);
    let absent = if asked {
        None
    } else if facts.asked_by.is_empty() {
        Some(Why::NotAsked)
    } else {
        Some(Why::Missing)
    };
    let Some(Seen { mapped, loading, secure, .. }) = &facts.process else { return absent };
    if mapped.is_some() {
        return None;
    }
    match loading {
        Loading::Static => Some(Why::Static),
        Loading::Foreign(loader) => Some(Why::Foreign(loader.clone())),
        _ if *secure => Some(Why::Secure),
        _ => absent.or(Some(Why::NotLoaded)),
    }
}

impl Why {
    /// In one sentence, with what can be done.
    pub(super) fn says(&self) -> String {
        match self {
            Self::NoLimit => "no limit is set, neither by a variable nor by a limits file".into(),
            Self::NotAsked => "limits are set, but nothing preloads libgpucap.so (start it with \
                               gpucap run, or name the library in LD_PRELOAD)"
                .into(),
            Self::Missing => "the file that is to be preloaded is not there".into(),
            Self::Static => {
                "the program is statically linked: nothing can be preloaded into it".into()
            }
            Self::Foreign(loader) => {
                format!("the program is loaded by {loader}; libgpucap.so needs glibc's loader")
            }
            Self::Secure => "the program runs with rights that its caller has not (set-user-id or \
                             file capabilities): its loader ignores LD_PRELOAD"
                .into(),
            Self::NotLoaded => "libgpucap.so is requested and not in the process".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Asking;
    use super::*;
    use gpucap_core::limits::Limits;

    fn facts(value: &str, is_there: Option<bool>, process: Option<Seen>) -> Facts {
        let lookup = |name: &str| (name == "GPU_MEM_LIMIT").then(|| value.as_bytes().to_vec());
        let asking =
            |is_there| Asking { list: "LD_PRELOAD", library: "/a/libgpucap.so".into(), is_there };
        Facts {
            process,
            limits: Limits::load(&lookup, None).map_err(|broken| broken.to_string()),
            has_file: false,
            effective: Vec::new(),
            asked_by: is_there.map(asking).into_iter().collect(),
            ledger: "/dev/shm/gpucap-0-1".into(),
            holds: Ok(Vec::new()),
        }
    }

    fn seen(mapped: bool, loading: Loading, secure: bool) -> Option<Seen> {
        let mapped = mapped.then(|| "/a/libgpucap.so".to_owned());
        Some(Seen { pid: 1, command: "a".into(), mapped, loading, secure })
    }

    #[test]
    fn the_answer_follows_from_the_facts() {
        let glibc = || Loading::Glibc("/lib64/ld-linux-x86-64.so.2".into());
        let musl = || Loading::Foreign("/lib/ld-musl-x86_64.so.1".into());
        let not = Verdict::NotLimited;
        for (value, is_there, process, expected) in [
            ("2Gi", Some(true), None, Verdict::Limited),
            ("2Gi", None, None, not(Why::NotAsked)),
            ("2Gi", Some(false), None, not(Why::Missing)),
            ("", Some(true), None, not(Why::NoLimit)),
            ("2Gi", Some(true), seen(true, glibc(), false), Verdict::Limited),
            ("2Gi", None, seen(true, glibc(), false), Verdict::Limited),
            ("", Some(true), seen(true, glibc(), false), not(Why::NoLimit)),
            ("2Gi", Some(true), seen(false, Loading::Static, false), not(Why::Static)),
            (
                "2Gi",
                Some(true),
                seen(false, musl(), false),
                not(Why::Foreign("/lib/ld-musl-x86_64.so.1".into())),
            ),
            ("2Gi", Some(true), seen(false, glibc(), true), not(Why::Secure)),
            ("2Gi", Some(true), seen(false, glibc(), false), not(Why::NotLoaded)),
            ("2Gi", None, seen(false, glibc(), false), not(Why::NotAsked)),
            ("abc", None, seen(false, glibc(), false), not(Why::NotAsked)),
        ] {
            let facts = facts(value, is_there, process);
            assert_eq!(Verdict::of(&facts), expected, "{value:?} {is_there:?}");
        }
        let broken = Verdict::of(&facts("abc", Some(true), None));
        assert!(matches!(broken, Verdict::Broken(_)), "{broken:?}");
    }
}
