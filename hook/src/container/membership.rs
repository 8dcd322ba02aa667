//! Which container of the hook a process belongs to, by what the kernel says of it.
//!
//! A report that the node publishes of a process lowers what containers with a compute limit are charged. So a process of
//! such a container must never look like one of none, whatever it does. It belongs to a container if it, or a process
//! that it descends from, is in the container's pid or mount namespace, in its cgroup or one below, or is its first
//! process: an unprivileged process can leave its mount namespace, and no process the others. Beyond that no process
//! counts as one of none if the usage pages of containers are mounted where it is, and in doubt none does. What
//! is read are files of the kernel: no process can keep their reader waiting.

use crate::container::pages;
use crate::container::records::Record;
use crate::node::proc::Process;
use gpucap_core::page;
use std::fs;

/// The containers that the hook has seen, those that have ended included: a process may outlive the first one.
#[derive(Debug, Default)]
pub(crate) struct Containers(Vec<Container>);

/// What its processes have in common.
#[derive(Debug, Eq, PartialEq)]
struct Container {
    id: String,
    key: String,
    pid: u32,
    start_time: u64,
    pid_namespace: Option<u64>,
    mount_namespace: Option<u64>,
    cgroups: Vec<(String, String)>,
    /// Not those of who started it, whose other processes are none of the container's.
    has_own_cgroups: bool,
    has_share: bool,
    /// It has a record: it has not been deleted.
    is_listed: bool,
}

/// Whose a process is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Owner {
    /// A container of the hook, by the key of its record if it is known which, and whether it has a compute limit, or may have.
    Container { key: Option<String>, has_share: bool },
    /// None of the hook's.
    Other,
    /// Unknown.
    Unknown,
}

/// How many containers are remembered.
const MOST: usize = 4096;
/// A process that descends from more is of unknown owner.
const MOST_ANCESTORS: usize = 256;

impl Containers {
    /// Adds the containers of these records.
    pub(crate) fn note(&mut self, records: &[Record]) {
        self.0.iter_mut().for_each(|it| it.is_listed = false);
        for record in records {
            let is_it =
                |it: &&mut Container| (it.pid, it.start_time) == (record.pid, record.start_time);
            if let Some(known) = self.0.iter_mut().find(is_it) {
                known.is_listed = true;
                continue;
            }
            let first = Process(record.pid);
            let known = Container {
                id: record.container.clone(),
                key: record.key(),
                pid: record.pid,
                start_time: record.start_time,
                pid_namespace: foreign(first, "pid"),
                mount_namespace: foreign(first, "mnt"),
                cgroups: cgroups(first).unwrap_or_default(),
                has_own_cgroups: first.parent().and_then(cgroups) != cgroups(first),
                // Of one whose limits are unknown too.
                has_share: record.limits().is_none_or(|limits| pages::are_needed(&limits)),
                is_listed: true,
            };
            // What was read is of no other process.
            if record.check().is_ok() {
                self.0.push(known);
            }
        }
        let beyond = self.0.len().saturating_sub(MOST);
        self.0.drain(..beyond);
    }

    /// Returns whose a process is.
    pub(crate) fn owner(&self, process: Process) -> Owner {
        match self.find_owner(process) {
            Some(owner) => owner,
            None => Owner::Unknown,
        }
    }

    fn find_owner(&self, process: Process) -> Option<Owner> {
        let mut marks = Marks::default();
        let mut next = process;
        for _ in 0..MOST_ANCESTORS {
            if next.0 <= 1 {
                if let Some(owner) = marks.owner() {
                    return Some(owner);
                }
                let sees_pages = has_pages(&process.mounts().ok()?);
                return (!sees_pages).then_some(Owner::Other);
            }
            let (parent, start_time) = (next.parent()?, next.stat().ok()??.start_time);
            let [pid_namespace, mount_namespace] = ["pid", "mnt"].map(|kind| next.namespace(kind));
            let (pid_namespace, mount_namespace) = (pid_namespace?, mount_namespace?);
            let cgroups = cgroups(next)?;
            for of in &self.0 {
                let depth =
                    of.cgroups.iter().filter(|of| cgroups.iter().any(|it| is_below(it, of)));
                if let Some(depth) = depth.map(|(_, path)| path.len()).max() {
                    marks.cgroups.push((depth, of));
                }
                if of.pid_namespace == Some(pid_namespace) {
                    marks.pid_namespaces.push(of);
                }
                if of.mount_namespace == Some(mount_namespace) {
                    marks.mount_namespaces.push(of);
                }
                if (of.pid, of.start_time) == (next.0, start_time) {
                    marks.first.get_or_insert(of);
                }
            }
            next = parent;
        }
        None
    }
}

/// What a process, and those that it descends from, have in common with containers.
#[derive(Default)]
struct Marks<'c> {
    /// With the length of the container's path.
    cgroups: Vec<(usize, &'c Container)>,
    /// The nearest that it descends from.
    first: Option<&'c Container>,
    mount_namespaces: Vec<&'c Container>,
    pid_namespaces: Vec<&'c Container>,
}

impl<'c> Marks<'c> {
    /// Whose the process is; `None` if it has nothing in common with any.
    fn owner(&self) -> Option<Owner> {
        let own = || self.cgroups.iter().filter(|(_, of)| of.has_own_cgroups);
        let deepest = own().map(|(depth, _)| *depth).max();
        let cgroups = own().filter(|(depth, _)| Some(*depth) == deepest);
        let cgroups: Vec<_> = cgroups.map(|(_, of)| *of).collect();
        let first: Vec<_> = self.first.into_iter().collect();
        let marks = [&cgroups, &first, &self.mount_namespaces, &self.pid_namespaces];
        let of_one = marks.into_iter().find_map(|of| only(of));
        let in_cgroup = self.cgroups.iter().map(|(_, of)| of);
        let any = marks.into_iter().flatten().chain(in_cgroup);
        let has_share =
            of_one.map_or_else(|| any.clone().any(|of| of.has_share), |of| of.has_share);
        any.clone().next()?;
        Some(Owner::Container { key: of_one.map(|of| of.key.clone()), has_share })
    }
}

/// The only container of these; of those that have not been deleted if there is one. Of several that have been, all with one
/// id, the latest.
fn only<'c>(of: &[&'c Container]) -> Option<&'c Container> {
    let alone = |of: &[&'c Container], is_same: fn(&Container, &Container) -> bool| {
        let (last, others) = of.split_last()?;
        others.iter().all(|other| is_same(other, last)).then_some(*last)
    };
    let listed: Vec<_> = of.iter().copied().filter(|of| of.is_listed).collect();
    if listed.is_empty() {
        alone(of, |one, other| one.id == other.id)
    } else {
        alone(&listed, |one, other| one.key == other.key)
    }
}

/// A namespace of a process, if it is not this process's.
fn foreign(process: Process, kind: &str) -> Option<u64> {
    process.namespace(kind).filter(|it| Process::own().namespace(kind) != Some(*it))
}

/// The cgroups of a process, each with its hierarchy; without those at the root, which all processes are below.
fn cgroups(process: Process) -> Option<Vec<(String, String)>> {
    let text = fs::read(process.path("cgroup")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let all = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_number, hierarchy, path) = (fields.next()?, fields.next()?, fields.next()?);
        Some((hierarchy.to_owned(), path.to_owned()))
    });
    Some(all.filter(|(_, path)| path != "/").collect())
}

fn is_below((hierarchy, path): &(String, String), (of, above): &(String, String)) -> bool {
    let rest = path.strip_prefix(above.as_str()).filter(|_| hierarchy == of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a usage page is mounted, by the text of a mount table.
fn has_pages(mounts: &[u8]) -> bool {
    let place = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(<[u8]>::to_vec);
    let mut places = mounts.split(|byte| *byte == b'\n').filter_map(place);
    places
        .any(|place| [page::PATH, page::DIRECTORY].iter().any(|it| place.ends_with(it.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    fn known(process: Process) -> Container {
        Container {
            id: "c".into(),
            key: "c".into(),
            pid: process.0,
            start_time: process.stat().expect("/proc").expect("a stat").start_time,
            pid_namespace: None,
            mount_namespace: None,
            cgroups: vec![],
            has_own_cgroups: true,
            has_share: true,
            is_listed: true,
        }
    }

    fn of_it() -> Owner {
        Owner::Container { key: Some("c".into()), has_share: true }
    }

    fn sleeper(through: &[&str]) -> Child {
        let words = [through, &["sleep", "60"]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).spawn().expect("a process")
    }

    #[test]
    fn a_process_of_no_container_is_unattributed() {
        assert_eq!(Containers::default().owner(Process::own()), Owner::Other);
        let of_another =
            Containers(vec![Container { pid: 1, start_time: 1, ..known(Process::own()) }]);
        assert_eq!(of_another.owner(Process::own()), Owner::Other);
        assert_eq!(Containers::default().owner(Process(u32::MAX)), Owner::Unknown, "there is none");
    }

    /// Whatever namespaces and cgroups it has.
    #[test]
    fn a_process_that_descends_from_a_container_is_of_it() {
        let mut child = sleeper(&[]);
        let containers = Containers(vec![known(Process::own())]);
        assert_eq!(containers.owner(Process(child.id())), of_it());
        child.kill().and_then(|()| child.wait()).expect("ended");
        assert_eq!(containers.owner(Process(child.id())), Owner::Unknown, "it has ended");
    }

    #[test]
    fn a_process_in_one_of_a_containers_places_is_of_it() {
        let own = Process::own();
        let nowhere = || Container { pid: 1, start_time: 1, ..known(own) };
        assert_eq!(Containers(vec![nowhere()]).owner(own), Owner::Other);
        let mut places = vec![
            Container { pid_namespace: own.namespace("pid"), ..nowhere() },
            Container { mount_namespace: own.namespace("mnt"), ..nowhere() },
        ];
        // At the root of each hierarchy this process is in none.
        let cgroups = cgroups(own).expect("/proc");
        places.extend(cgroups.into_iter().map(|it| Container { cgroups: vec![it], ..nowhere() }));
        for place in places {
            assert_eq!(Containers(vec![place]).owner(own), of_it());
        }
    }

    /// In a pod that shares its pid namespace, or under a runtime that makes no cgroup.
    #[test]
    fn a_process_is_of_the_container_that_alone_has_something_in_common_with_it() {
        let own = Process::own();
        let (pid_namespace, cgroups) = (own.namespace("pid"), cgroups(own).expect("/proc"));
        let nowhere = |id: &str| Container {
            id: id.into(),
            key: id.into(),
            pid: 1,
            start_time: 1,
            ..known(own)
        };
        let shares =
            |id: &str| Container { pid_namespace, cgroups: cgroups.clone(), ..nowhere(id) };
        let first = Container { key: "first".into(), pid_namespace, ..known(own) };
        let of =
            |key: Option<&str>| Owner::Container { key: key.map(str::to_owned), has_share: true };
        let mut child = sleeper(&[]);
        let both = Containers(vec![shares("a"), first, shares("b")]);
        for process in [own, Process(child.id())] {
            assert_eq!(both.owner(process), of(Some("first")));
        }
        child.kill().and_then(|()| child.wait()).expect("ended");
        assert_eq!(Containers(vec![shares("a"), shares("b")]).owner(own), of(None));
        // One has been deleted; or the same one has been started again.
        let deleted = Container { is_listed: false, ..shares("b") };
        assert_eq!(Containers(vec![shares("a"), deleted]).owner(own), of(Some("a")));
        let again = || Container { is_listed: false, ..shares("a") };
        assert_eq!(Containers(vec![again(), shares("a")]).owner(own), of(Some("a")));
        assert_eq!(Containers(vec![again(), again()]).owner(own), of(Some("a")));
        // Two engines have given two containers one id.
        let other = Container { key: "another".into(), ..shares("a") };
        assert_eq!(Containers(vec![shares("a"), other]).owner(own), of(None));
        // One has a mount namespace of its own beside that.
        let inside = Container { mount_namespace: own.namespace("mnt"), ..shares("b") };
        assert_eq!(Containers(vec![shares("a"), inside]).owner(own), of(Some("b")));
        // Who started it is in its cgroup: another process there is not charged to it, and is not taken for one of none.
        let started = Container { has_own_cgroups: false, pid_namespace: None, ..shares("a") };
        if !started.cgroups.is_empty() {
            assert_eq!(Containers(vec![started]).owner(own), of(None));
        }
        // What may be of one with a limit is of none without.
        let free = Container { has_share: false, ..shares("a") };
        assert_eq!(Containers(vec![free, shares("b")]).owner(own), of(None));
    }

    #[test]
    fn a_process_is_of_the_container_whose_cgroup_is_farthest_down() {
        let of = |id: &str, path: &str| {
            let cgroups = vec![("memory".to_owned(), path.to_owned())];
            Container { key: id.into(), cgroups, ..known(Process::own()) }
        };
        let (outer, inner) = (of("outer", "/a"), of("inner", "/a/b"));
        let marks = Marks { cgroups: vec![(4, &inner), (2, &outer)], ..Marks::default() };
        assert!(
            matches!(marks.owner(), Some(Owner::Container { key: Some(key), .. }) if key == "inner")
        );
    }

    #[test]
    fn a_cgroup_is_below_another_by_whole_names() {
        let of = |path: &str| ("memory".to_owned(), path.to_owned());
        assert!(is_below(&of("/a/b"), &of("/a")) && is_below(&of("/a"), &of("/a")));
        assert!(!is_below(&of("/ab"), &of("/a")) && !is_below(&of("/a"), &of("/a/b")));
        assert!(!is_below(&of("/a"), &("cpu".to_owned(), "/a".to_owned())));
    }

    /// Any user may mount in a namespace of his own: 700 lines of 28 KiB here, where the kernel has room for 100,000.
    #[test]
    fn a_mount_table_without_end_is_not_read_to_its_end() {
        let long = "n=$(printf '%250s' x); for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do mkdir \"$n\" && cd \"$n\"; done";
        let many =
            "mkdir t; for i in $(seq 700); do mount -n --bind t t; done; echo made; exec sleep 60";
        let script = format!("mount -t tmpfs t /mnt && cd /mnt && {long}; {many}");
        let mut command = Command::new("unshare");
        command.args(["-Urm", "sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut said = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut said).expect("a line");
        let owner = Containers::default().owner(Process(child.id()));
        child.kill().and_then(|()| child.wait()).expect("ended");
        if said != "made\n" {
            return eprintln!("skipped: no namespace in which to mount");
        }
        assert_eq!(owner, Owner::Unknown);
    }

    /// Also if the container's root is below the process's.
    #[test]
    fn where_usage_pages_are_mounted_no_process_is_unattributed() {
        let line = |place: &str| format!("1 2 0:3 / {place} rw - tmpfs none rw\n").into_bytes();
        assert!(has_pages(&line("/.gpucap/page")) && has_pages(&line("/root/.gpucap/pages")));
        assert!(!has_pages(&line("/run/gpucap/pages/all")) && !has_pages(b""));
    }
}
