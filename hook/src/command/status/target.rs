//! The one budget that a word stands for: what `limit` changes and `explain` looks at.
//!
//! The word is one that `status` shows. Containers whose ledger cannot be read and runs that have used no GPU yet count
//! too. A word that several go by is refused with their names: nothing is guessed.

use super::name::{of_container, short_id};
use super::view::{Container, LedgerView, Row, Status};
use super::{MOST_ROWS, Machine, gather};
use crate::container::ledgers::{BY_HOOK, Name};
use crate::container::records::{self, Record};
use crate::node::proc::Process;
use crate::sys;
use gpucap_plan::Node;
use std::collections::BTreeSet;
use std::path::Path;

/// A budget, and a process of it if the word was the number of one.
#[derive(Debug)]
pub(crate) struct Target {
    ledger: LedgerView,
    process: Option<Process>,
}

impl Target {
    /// The container or run that goes by this word, or of which a process does. `None`: none does.
    ///
    /// # Errors
    /// Several do: their names.
    pub(crate) fn find(node: &Node, word: &str) -> Result<Option<Self>, String> {
        let records = records::all(&records::directory(node));
        let Status { mut ledgers, unused, .. } = gather(node, &Machine::new(MOST_ROWS));
        for record in records {
            let is_it =
                |it: &LedgerView| it.container.as_ref().is_some_and(|it| it.record == record);
            if !ledgers.iter().any(is_it) {
                let ledger = LedgerView::new(record.path_of(BY_HOOK), vec![]);
                ledgers.push(ledger.of_container(Container::of(record, None)));
            }
        }
        // Any user can make an empty file of such a name.
        let unused = unused.into_iter().map(|path| LedgerView::new(path, vec![]));
        let is_own = |it: &LedgerView| Name::of(&it.path).is_some_and(|it| it.uid() == sys::uid());
        let is_typed = |it: &LedgerView| it.path.to_str() == Some(word);
        ledgers.extend(unused.filter(|it| it.maker().is_some() || is_own(it) || is_typed(it)));
        Self::among(ledgers, word, &shares_mounts)
    }

    /// The same among these; `holds` knows whether a container has a process of this machine's number.
    fn among(
        ledgers: Vec<LedgerView>,
        word: &str,
        holds: &dyn Fn(&Record, Process) -> bool,
    ) -> Result<Option<Self>, String> {
        let pid: Option<u32> = word.parse().ok();
        let is_exact =
            |it: &LedgerView| it.container.as_ref().is_some_and(|it| it.record.container == word);
        let processes =
            |it: &LedgerView| pid.map_or_else(BTreeSet::new, |pid| it.processes_of(pid, holds));
        // An id may be the beginning of another.
        let (exact, others): (Vec<_>, Vec<_>) = ledgers.into_iter().partition(is_exact);
        let mut found = exact;
        if found.is_empty() {
            let is_meant = |it: &LedgerView| it.is_called(word) || !processes(it).is_empty();
            found = others.into_iter().filter(is_meant).collect();
        }
        // Any user can make a ledger under the number of any process: of runs, the one whose first process that is.
        let is_made = |it: &LedgerView| it.maker().is_some();
        let are_runs = found.iter().all(|it| it.container.is_none());
        if are_runs && found.iter().filter(|it| is_made(it)).count() == 1 {
            found.retain(is_made);
        }
        match <[LedgerView; 1]>::try_from(found) {
            Ok([ledger]) => {
                let by_name = ledger.is_called(word);
                let process = (!by_name).then(|| only(processes(&ledger)));
                Ok(Some(Self { process: process.transpose()?, ledger }))
            }
            Err(none) if none.is_empty() => Ok(None),
            Err(several) => {
                let names: Vec<String> = several.iter().map(full_name).collect();
                Err(format!("it may be any of these: {}", names.join(", ")))
            }
        }
    }

    /// The name by which `status` shows it.
    pub(crate) fn label(&self) -> String {
        self.ledger.label()
    }

    /// The ledger, if it is what `gpucap run` started.
    pub(crate) fn ledger_of_run(&self) -> Option<&Path> {
        let is_run = matches!(Name::of(&self.ledger.path), Some(Name::Run { .. }));
        (self.ledger.container.is_none() && is_run).then_some(&*self.ledger.path)
    }

    /// What the hook wrote down of it; `None` of what is no container.
    pub(crate) fn into_record(self) -> Option<Record> {
        self.ledger.container.map(|container| container.record)
    }

    /// The process that was meant; else the first one of the container or run, or the only one that uses a GPU.
    ///
    /// # Errors
    /// There is none to be seen, or there are several.
    pub(crate) fn process(&self) -> Result<Process, String> {
        if let Some(process) = self.process {
            return Ok(process);
        }
        if let Some(container) = &self.ledger.container {
            return Ok(Process(container.record.pid));
        }
        match self.ledger.maker() {
            Some(pid) => Ok(Process(pid)),
            None => only(here(self.ledger.devices.iter().flat_map(|device| &device.processes))),
        }
    }

    /// How many of its processes use a GPU, but for this one.
    pub(crate) fn others(&self, process: Process) -> usize {
        let rows = self.ledger.devices.iter().flat_map(|device| &device.processes);
        let pids: BTreeSet<u32> =
            rows.filter(|row| row.here != Some(process)).map(|row| row.pid).collect();
        pids.len()
    }
}

impl LedgerView {
    /// The process of this number of this machine, if it is one of these; numbers of a container's own say nothing here,
    /// since each container has a process 1. A container writes its ledger itself: of what that names, only processes
    /// count that the container has.
    fn processes_of(&self, pid: u32, holds: &dyn Fn(&Record, Process) -> bool) -> BTreeSet<u32> {
        let mut found = here(self.processes_called(pid));
        found.retain(|&it| it == pid);
        match &self.container {
            Some(Container { record, .. }) => {
                found.insert(pid);
                found.retain(|&pid| holds(record, Process(pid)));
            }
            None if found.is_empty() && self.maker() == Some(pid) => _ = found.insert(pid),
            None => {}
        }
        found
    }
}

/// Whether a process is in a container: it sees the files that the first one sees.
fn shares_mounts(record: &Record, process: Process) -> bool {
    let first = Process(record.pid).namespace("mnt");
    process.0 == record.pid
        || first.is_some()
            && first != Process::own().namespace("mnt")
            && first == process.namespace("mnt")
}

/// The numbers by which this machine knows these processes.
fn here<'a>(rows: impl Iterator<Item = &'a Row>) -> BTreeSet<u32> {
    rows.filter_map(|row| row.here).map(|process| process.0).collect()
}

fn only(processes: BTreeSet<u32>) -> Result<Process, String> {
    match Vec::from_iter(processes)[..] {
        [one] => Ok(Process(one)),
        [] => Err("none of its processes is to be seen here".into()),
        ref several => {
            let pids: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(format!("it has several processes, give one: --pid {}", pids.join(", --pid ")))
        }
    }
}

/// What identifies it among others.
fn full_name(ledger: &LedgerView) -> String {
    match &ledger.container {
        Some(Container { record, .. }) if record.names.is_some() => {
            format!("{} ({})", ledger.label(), short_id(&record.container))
        }
        Some(Container { record, .. }) => of_container(record),
        None => ledger.path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::{container, status};
    use super::*;

    fn ledgers() -> Vec<LedgerView> {
        let of = |id: &str, names| {
            LedgerView::new("/x".into(), vec![]).of_container(container(id, names, vec![]))
        };
        let mut ledgers = status().ledgers;
        ledgers.extend([
            of("5242ab", None),
            of("4f6c", None),
            of("4f6c11", Some(["default", "train", "main"])),
            of("77ab", Some(["default", "train", "side"])),
            of("90cd", Some(["web", "train", "main"])),
        ]);
        ledgers
    }

    /// The name of what is found, and the process that was meant. Process 31 is in the last container.
    fn found(word: &str) -> Result<Option<(String, Option<u32>)>, String> {
        let holds =
            |record: &Record, process: Process| record.container == "90cd" && process.0 == 31;
        let target = Target::among(ledgers(), word, &holds)?;
        Ok(target.map(|it| (it.label(), it.process.map(|process| process.0))))
    }

    #[test]
    fn a_container_goes_by_its_id_its_beginning_or_its_names() {
        for (word, label) in [
            ("77ab", "default/train/side"),
            ("77", "default/train/side"),
            ("4f6c", "4f6c"),
            ("4f6c1", "default/train/main"),
            ("web/train", "web/train/main"),
            ("default/train/side", "default/train/side"),
            ("side", "default/train/side"),
        ] {
            assert_eq!(found(word), Ok(Some((label.into(), None))), "{word}");
        }
    }

    #[test]
    fn a_run_goes_by_its_name_its_file_or_a_process() {
        let run = "user-0/run-4242".to_owned();
        for word in ["run-4242", &run, "/dev/shm/gpucap-0-run-4026531836-4242-88"] {
            assert_eq!(found(word), Ok(Some((run.clone(), None))), "{word}");
        }
        assert_eq!(found("4242"), Ok(None), "5242 here: 4242 is its number in a container");
        assert_eq!(found("31"), Ok(Some(("web/train/main".into(), Some(31)))));
    }

    #[test]
    fn a_container_that_claims_a_process_of_another_is_not_meant() {
        let found = |has: u32| {
            let mut claims = super::super::text::tests::raised().ledgers;
            claims.extend(ledgers().split_off(5));
            let holds = move |_: &Record, process: Process| process.0 == has;
            let target = Target::among(claims, "4242", &holds)?;
            Ok::<_, String>(target.and_then(|it| it.process))
        };
        assert_eq!(
            found(1),
            Ok(None),
            "its ledger has 4242, which is 5242 here, and is not its own"
        );
        assert!(found(4242).is_err_and(|why| why.contains("any of these")), "both have it");
        assert_eq!(found(5242), Ok(None), "it has 5242, which is 4242 in it alone");
    }

    #[test]
    fn a_word_that_several_go_by_names_them() {
        let why = |word: &str| found(word).expect_err(word);
        let both = "it may be any of these: default/train/main (4f6c11), default/train/side (77ab)";
        assert_eq!(why("default/train"), both);
        assert_eq!(why("main"), both.replace("default/train/side (77ab)", "web/train/main (90cd)"));
        assert_eq!(why("4f"), "it may be any of these: 4f6c, default/train/main (4f6c11)");
        // The beginning of an id, and a process of the run.
        assert_eq!(
            why("5242"),
            "it may be any of these: /dev/shm/gpucap-0-run-4026531836-4242-88, 5242ab"
        );
    }

    #[test]
    fn a_word_that_none_goes_by_finds_none() {
        for word in [
            "",
            "x",
            "train",
            "default",
            "default/",
            "default/train/",
            "default/train/main/x",
            "shared",
        ] {
            assert_eq!(found(word), Ok(None), "{word}");
        }
    }
}
