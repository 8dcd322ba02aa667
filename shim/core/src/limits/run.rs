//! The file of a `gpucap run`: the limits that it started with, and the page by which they change while it runs.
//!
//! ```text
//! PLACE/gpucap-UID-runs/NAME      where PLACE/NAME is the ledger of the run
//! 0       a live page
//! 4096    a limits file, from which the variables of the run were made
//! ```
//!
//! A run has no mount that its processes cannot write. It is held by the variables of its environment, which its user has
//! set, and this file is that user's too. It counts like the limits file of a container: a process that sets a variable
//! to something else only lowers, and what the page says replaces what the run was started with. A GPU that the file does
//! not name is not limited by it.

use super::Limits;
use super::file::LimitsFile;
use super::file::error::FileError;
use super::live::LivePage;

/// Where the text begins.
pub const TEXT: usize = size_of::<LivePage>();
/// A longer file is not ours: the limits of as many GPUs as a page has room for take half of it.
pub const MOST_BYTES: usize = TEXT + 16 * 1024;

/// As which user a process sees itself, and each file of a user without a number in its user namespace: so no file is
/// known to be its own. The kernel's default (`/proc/sys/kernel/overflowuid`).
const UNKNOWN_USER: u32 = 65_534;

/// The directory of these files beside a ledger, and the name in it; `None` if the ledger is not one of a run of this
/// user, or it is not known who that is.
#[must_use]
pub fn place(ledger: &str, uid: u32) -> Option<(String, &str)> {
    let (place, name) = ledger.rsplit_once('/')?;
    let is_run = uid != UNKNOWN_USER && name.starts_with(&format!("gpucap-{uid}-run-"));
    is_run.then(|| (format!("{place}/gpucap-{uid}-runs"), name))
}

/// The limits with which a run started, as they stand behind its page.
///
/// # Errors
/// The text is no limits file of this version: what is wrong, as it follows the path of the file.
pub fn limits(text: &[u8]) -> Result<LimitsFile, String> {
    LimitsFile::parse(text).map_err(|FileError { why, held }| {
        format!("{why}: {held}; only gpucap run of the same version may write it")
    })
}

impl Limits {
    /// These limits below those that a run was started with, which stand behind its page.
    ///
    /// # Errors
    /// The text is no limits file of this version: what is wrong, as it follows the path of the file.
    pub fn of_run(&self, text: &[u8]) -> Result<Self, String> {
        Ok(self.below(limits(text)?))
    }

    /// The same below limits that were read already.
    #[must_use]
    pub fn below(&self, run: LimitsFile) -> Self {
        let config = self.config.clone();
        Self { config, file: Some(run), is_run: true, ignored: Vec::new() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::file::{Entry, Key, MemoryLimit};
    use super::super::live::{LiveEntries, LiveEntry};
    use super::super::{DeviceFacts, Limits, LimitsFile};
    use super::place;
    use crate::config::{Config, Slices};
    use crate::units::{Amount, Share};
    use crate::uuid::Uuid;

    type Variables<'a> = &'a [(&'a str, &'a str)];

    fn set(variables: Variables<'_>) -> Limits {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| value.as_bytes().to_vec())
        };
        Limits::load(&lookup, None).expect("usable").expect("limits")
    }

    const FACTS: DeviceFacts = DeviceFacts {
        uuid: Uuid([1; 16]),
        parent: None,
        index: None,
        total_bytes: 80 << 30,
        slices: Slices::Seven,
    };

    fn memory(text: &str) -> MemoryLimit {
        text.parse().map(|bytes| Amount::Bytes(bytes).into()).expect("a size")
    }

    /// Memory in MiB and time of a process with these variables, in a run that was started with 2 GiB and 30 %.
    fn holds(variables: Variables<'_>, page: &LiveEntry) -> (Option<u64>, Option<String>) {
        let lookup = |name: &str| match name {
            "GPU_MEM_LIMIT" => Some(b"2Gi".to_vec()),
            "GPU_CORE_PCT" => Some(b"30".to_vec()),
            _ => None,
        };
        let asked = Config::from_lookup(&lookup).expect("usable");
        let entry = Entry {
            memory: memory("2Gi"),
            core: Share::from_percent(30),
            ..Entry::new(Key::Every)
        };
        let text = LimitsFile { asked, entries: vec![entry], ..LimitsFile::default() }.write();
        let changed = set(variables).of_run(text.as_bytes()).expect("a file");
        let resolved = changed.resolve_with(&FACTS, LiveEntries::one(page)).expect("resolved");
        (resolved.memory.map(|bytes| bytes >> 20), resolved.core.map(|core| core.to_string()))
    }

    #[test]
    fn what_the_page_says_replaces_what_the_run_was_started_with() {
        let page = LiveEntry::named(Key::Every);
        page.set_memory(Some(4 << 30));
        page.set_core(Share::from_percent(60));
        let inherited = [("GPU_MEM_LIMIT", "2GiB"), ("GPU_CORE_PCT", "30%")];
        assert_eq!(holds(&inherited, &page), (Some(4096), Some("60%".into())));
        let own = [("GPU_MEM_LIMIT", "1Gi"), ("GPU_CORE_PCT", "50")];
        assert_eq!(holds(&own, &page), (Some(1024), Some("50%".into())));
        let more = [("GPU_MEM_LIMIT", "8Gi"), ("GPU_CORE_PCT", "90")];
        assert_eq!(holds(&more, &page), (Some(4096), Some("60%".into())));
        let silent = LiveEntry::named(Key::Every);
        assert_eq!(holds(&more, &silent), (Some(2048), Some("30%".into())));
        assert_eq!(holds(&own, &silent), (Some(1024), Some("30%".into())));
        // The same values, set inside the run.
        let marked =
            [inherited[0], inherited[1], ("GPUCAP_OWN_LIMITS", "GPU_MEM_LIMIT,GPU_CORE_PCT")];
        assert_eq!(holds(&marked, &page), (Some(2048), Some("30%".into())));
        let low = [("GPU_CORE_PRIORITY", "low"), ("GPU_CORE_PCT", "30%")];
        assert_eq!(holds(&low, &page).1.as_deref(), Some("low (to 60%)"));
        assert_eq!(holds(&low, &silent).1.as_deref(), Some("low (to 30%)"));
        // Of one that was started with low priority, and is not any more.
        let own_low = [low[0], low[1], ("GPUCAP_OWN_LIMITS", "GPU_CORE_PRIORITY")];
        assert_eq!(holds(&own_low, &page).1.as_deref(), Some("low (to 60%)"));
        page.set_core(Share::from_percent(10));
        let bursts = [("GPU_CORE_PCT", "30%"), ("GPU_CORE_POLICY", "burst")];
        assert_eq!(holds(&bursts, &page).1.as_deref(), Some("10%"), "a policy of its own");
    }

    /// The file says nothing of time, and no node decides who lends.
    #[test]
    fn in_a_run_of_memory_alone_variables_of_time_mean_what_they_say() {
        let entry = Entry { memory: memory("2Gi"), ..Entry::new(Key::Every) };
        let file = LimitsFile { entries: vec![entry], ..LimitsFile::default() };
        for (variables, holds) in [
            (&[("GPU_CORE_PCT", "20"), ("GPU_CORE_POLICY", "burst")][..], "20% (to 100%)"),
            (&[("GPU_MEM_LIMIT", "2Gi"), ("GPU_CORE_PRIORITY", "low")], "low (to 100%)"),
            (&[("GPU_CORE_PCT", "20")], "20%"),
        ] {
            let resolved = set(variables).below(file.clone()).resolve(&FACTS).expect("resolved");
            assert_eq!(resolved.core.map(|it| it.to_string()).as_deref(), Some(holds));
            assert_eq!(resolved.memory, Some(2 << 30));
        }
    }

    #[test]
    fn only_a_run_of_this_user_has_such_a_file() {
        let run = "/dev/shm/gpucap-7-run-1-2-3";
        let found = Some(("/dev/shm/gpucap-7-runs".to_owned(), "gpucap-7-run-1-2-3"));
        assert_eq!(place(run, 7), found);
        assert_eq!(place(run, 8), None);
        assert_eq!(place("/dev/shm/gpucap-65534-run-1-2-3", 65_534), None, "any user's");
        for ledger in ["/dev/shm/gpucap-7-4026531841", "/tmp/own", "own", "/.gpucap/ledger", ""] {
            assert_eq!(place(ledger, 7), None, "{ledger}");
        }
    }
}
