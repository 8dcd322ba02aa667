//! The names by which `status` shows a budget, and the words by which it is found again: by `status`, `limit` and
//! `explain` alike.
//!
//! A name is one word, which a person copies. Pure: what a process is called here was asked for when it was read.

use super::view::{LedgerView, Row, Status};
use crate::container::ledgers::{BY_HOOK, Name};
use crate::container::records::Record;
use crate::node::proc::printable;
use gpucap_plan::Names;
use std::path::Path;

impl LedgerView {
    /// The word that stands for it: `NAMESPACE/POD/CONTAINER` or the id of a container, `user-UID/run-PID` of a run,
    /// `user-UID/shared` of the processes that share a ledger, else the file.
    pub(crate) fn label(&self) -> String {
        let of_file = || match of_file(&self.path) {
            Some([user, own]) => format!("{user}/{own}"),
            None if self.path == Path::new(BY_HOOK) => "this container".into(),
            None => self.path.display().to_string(),
        };
        let label = self.container.as_ref().map_or_else(of_file, |it| of_container(&it.record));
        // A container's author chooses the names that an engine passes on.
        printable(label.as_bytes())
    }

    /// Whether the budget itself goes by this word.
    pub(crate) fn is_called(&self, word: &str) -> bool {
        let in_pod = |record: &Record| record.names.as_ref().is_some_and(|it| it.container == word);
        match &self.container {
            Some(container) => container.record.is_called(word) || in_pod(&container.record),
            None => {
                let own = of_file(&self.path).is_some_and(|[_, own]| own == word && own != SHARED);
                own || self.label() == word || self.path.to_str() == Some(word)
            }
        }
    }

    /// The processes that go by this number, as the container or as this machine numbers them.
    pub(crate) fn processes_called(&self, pid: u32) -> impl Iterator<Item = &Row> {
        let is_it = move |row: &&Row| row.pid == pid || row.here.is_some_and(|here| here.0 == pid);
        self.devices.iter().flat_map(|device| &device.processes).filter(is_it)
    }
}

impl Status {
    /// Gives containers of one id the keys of their records in place of that: two engines may have given it to both.
    pub(crate) fn tell_apart(&mut self) {
        let containers = || self.ledgers.iter().filter_map(|ledger| ledger.container.as_ref());
        let ids = containers().map(|it| it.record.container.as_str());
        let count = |id: &str| ids.clone().filter(|other| *other == id).count();
        let is_shared = containers().map(|it| count(&it.record.container) > 1);
        let is_shared: Vec<bool> = is_shared.collect();
        let containers = self.ledgers.iter_mut().filter_map(|ledger| ledger.container.as_mut());
        for (container, _) in containers.zip(is_shared).filter(|(_, is_shared)| *is_shared) {
            container.record.container = container.record.key();
        }
    }
}

const SHARED: &str = "shared";

/// The user and the rest of the name of a ledger that no hook has made.
fn of_file(path: &Path) -> Option<[String; 2]> {
    let (uid, own) = match Name::of(path)? {
        Name::Run { uid, pid, .. } => (uid, format!("run-{pid}")),
        Name::Shared { uid, .. } => (uid, SHARED.to_owned()),
    };
    Some([format!("user-{uid}"), own])
}

/// The name of a container: that in Kubernetes, or its id.
pub(crate) fn of_container(record: &Record) -> String {
    match &record.names {
        Some(Names { namespace, pod, container }) => format!("{namespace}/{pod}/{container}"),
        None => short_id(&record.container).to_owned(),
    }
}

/// Engines show as much of their ids of 64 digits.
pub(crate) fn short_id(id: &str) -> &str {
    let is_digest = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest { id.get(..12).unwrap_or(id) } else { id }
}
