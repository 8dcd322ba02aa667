//! Text and JSON of one picture, and the manual's page about them.

use super::*;
use crate::command::status::{held::tests::of_time_alone, json, unlisted::Unlisted, view::Time};
use crate::container::native_limit::NativeLimitSet;
use crate::container::records::Record;
use crate::node::proc::Process;
use crate::terminal::lines::WIDTH;
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Label};
use gpucap_core::limits::live::LiveEntry;
use gpucap_core::units::{Amount, Bytes};
use gpucap_core::uuid::Uuid;
use gpucap_plan::NativeLimit;
use serde_json::{Value, json as value};
use std::collections::BTreeMap;
use std::path::PathBuf;

const GIB: u64 = 1 << 30;
const MANUAL: &str = include_str!("../../../../docs/src/status.md");

/// Holds a context; what it holds beyond that is plainly allocated.
fn row(pid: u32, used: u64, limit: u64, state: State, command: Option<&str>) -> Row {
    let mut kinds = [0; Kind::ALL.len()];
    kinds[0] = used - (256 << 20);
    kinds[5] = 256 << 20;
    let command = command.map(str::to_owned);
    Row {
        pid,
        here: (state == State::Alive).then_some(Process(pid + 1000)),
        state,
        command,
        since_s: 130,
        limit,
        used,
        peak: used,
        refusals: 1,
        time: Time::default(),
        kinds,
    }
}

pub(crate) fn status() -> Status {
    let device = Device {
        uuid: Uuid([1; 16]),
        used: 3 * GIB / 2,
        peak: 2 * GIB,
        refusals: 3,
        time: Time::default(),
        last_worked_ns: None,
        sampled: None,
        waited_ns: 0,
        borrowed_ns: 250_000_000,
        owed_for_ns: 0,
        kinds: [GIB, 0, 0, 0, 0, GIB / 2, 0, 0, 0],
        effective: None,
        processes: vec![
            row(4242, 5 * GIB / 4, 2 * GIB, State::Alive, Some("python train.py")),
            row(7, GIB / 4, 2 * GIB, State::Unknown, None),
        ],
        unlisted: Unlisted::default(),
        ended: 1,
        ended_bytes: GIB,
    };
    let path = PathBuf::from("/dev/shm/gpucap-0-run-4026531836-4242-88");
    Status {
        containers: Some(0),
        ledgers: vec![LedgerView::new(path, vec![device])],
        unused: vec!["/dev/shm/gpucap-0-run-4026531836-4243-89".into()],
        unreadable: vec![("/dev/shm/gpucap-1-2".into(), "permission denied".into())],
        ..Status::default()
    }
}

/// A share of time is limited on it, and used.
fn timed(device: &mut Device) {
    device.time = Time { permille: 312, busy_ns: 75_900_000_000, launches: 12_345 };
    device.processes[0].time = Time { permille: 300, busy_ns: 1, launches: 12_000 };
    device.last_worked_ns = Some(1_790_000_000_400_000_000);
    (device.waited_ns, device.owed_for_ns) = (3_000_000_000, 11_000_001);
}

/// What a container may use of a GPU: 1 GiB and 30 %, unless the host has said something since.
fn effective(gpu: &str, page: Option<&LiveEntry>) -> EffectiveLimit {
    let memory = Amount::Bytes(Bytes(GIB)).into();
    let entry = Entry::new(gpu.parse().expect("a GPU"));
    EffectiveLimit::of(&Entry { memory, core: "30%".parse().ok(), ..entry }, page)
}

const GPU: &str = "GPU-01010101-0101-0101-0101-010101010101";

/// A container of a pod, in which no process has used a GPU yet.
pub(crate) fn container(
    id: &str,
    names: Option<[&str; 3]>,
    effective: Vec<EffectiveLimit>,
) -> Container {
    let names = names.map(|names| {
        let [namespace, pod, container] = names.map(str::to_owned);
        Names { namespace, pod, container }
    });
    let limits = LimitsFile { source: Label::new("annotation"), ..LimitsFile::default() };
    let record = Record {
        container: id.into(),
        place: id.into(),
        pid: 42,
        start_time: 1,
        names,
        limits: Some(limits.write()),
        native_limits: None,
        slices: Default::default(),
        pod_uids: Vec::new(),
        waiting: None,
    };
    Container { effective, ..Container::of(record, None) }
}

fn ledger(container: Container, devices: Vec<Device>) -> LedgerView {
    let path = container.record.path_of(BY_HOOK);
    LedgerView::new(path, devices).of_container(container)
}

/// The one of the manual: the host has raised what it was given.
pub(crate) fn raised() -> Status {
    let page = LiveEntry::default();
    page.set_memory(Some(2 * GIB));
    page.set_core("60%".parse().ok());
    let mut device = status().ledgers.remove(0).devices.remove(0);
    timed(&mut device);
    let id = format!("4f6c1e2d3a4b{}", "0".repeat(52));
    let mut container =
        container(&id, Some(["default", "train", "main"]), vec![effective(GPU, Some(&page))]);
    let native_limit = NativeLimit { gpu: GPU.parse().expect("a GPU"), bytes: GIB };
    container.record.native_limits =
        Some(NativeLimitSet { cgroup: "/sys/fs/cgroup/a".into(), limits: vec![native_limit] });
    Status {
        containers: Some(1),
        ledgers: vec![ledger(container, vec![device])],
        ..Status::default()
    }
}

/// What people see in 80 columns, without colours.
fn people(status: &Status) -> String {
    style::plain(&render(status, WIDTH))
}

fn parsed(status: &Status) -> Value {
    serde_json::from_str(&json::render(status)).expect("JSON")
}

/// A part of the manual's page.
pub(crate) fn section(name: &str) -> &str {
    let behind = MANUAL.split_once(&format!("<!-- {name}: ")).expect(name).1;
    let behind = behind.split_once("-->\n").expect(name).1;
    behind.split_once(&format!("<!-- end of {name} -->")).expect(name).0
}

#[test]
fn people_see_a_table() {
    let expected = "\
Run of process 4242   /dev/shm/gpucap-0-run-4026531836-4242-88

  GPU-01010101-0101-0101-0101-010101010101
  [###############-----]   1.5 GiB of 2 GiB   peak 2 GiB   3 refused
  1 process has ended; 1 GiB returned

   PID   SINCE      HOLDS   OF IT                          COMMAND
  4242   2 min   1.25 GiB   alloc 1 GiB, context 256 MiB   python train.py
     7   2 min    256 MiB   context 256 MiB                (in another pid name…

1 run of gpucap has not used a GPU yet.

1 ledger of another user is not shown: permission denied.
";
    assert_eq!(people(&status()), expected);
}

#[test]
fn of_a_container_people_see_what_holds_now_as_the_manual_shows_it() {
    let text = people(&raised());
    assert_eq!(format!("```text\n{text}```\n"), section("example"));
}

#[test]
fn of_a_container_programs_see_what_holds_now_and_what_it_was_given() {
    let value = parsed(&raised());
    let container = &value["ledgers"][0]["container"];
    let names = value!({"namespace": "default", "pod": "train", "name": "main", "pid": 42});
    for (key, expected) in names.as_object().expect("an object") {
        assert_eq!(&container[key], expected);
    }
    let limit = value!({
        "gpu": GPU, "memory_bytes": 2 * GIB, "memory_percent": null, "core_percent": 60.0, "core_max_percent": 60.0,
        "at_start": {"memory_bytes": GIB, "memory_percent": null, "core_percent": 30.0, "core_max_percent": 30.0},
    });
    assert_eq!(container["limits"], value!([limit]));
    let device = &value["ledgers"][0]["devices"][0];
    assert_eq!(
        (&device["limit_bytes"], &device["cap_bytes"]),
        (&value!(2 * GIB), &value!(2 * GIB))
    );
    let expected = value!({
        "core_percent": 60.0, "core_max_percent": 60.0, "share_percent": 31.2, "busy_ns": 75_900_000_000u64,
        "launches": 12_345, "waited_ns": 3_000_000_000u64, "borrowed_ns": 250_000_000, "owed_for_ns": 11_000_001,
    });
    assert_eq!(device["time"], expected);
    let expected = value!({"share_percent": 30.0, "busy_ns": 1, "launches": 12_000});
    assert_eq!(device["processes"][0]["time"], expected);
}

#[test]
fn what_the_host_gives_counts_not_the_limit_of_an_earlier_request() {
    let mut status = raised();
    let device = &mut status.ledgers[0].devices[0];
    device.processes.iter_mut().for_each(|row| row.limit = GIB);
    let text = people(&status);
    assert!(text.contains("1.5 GiB of 2 GiB   peak"), "{text}");
    status.ledgers[0].devices[0].processes[0].limit = 2 * GIB;
    let text = people(&status);
    assert!(text.contains("processes under 1 GiB to 2 GiB"), "{text}");
}

#[test]
fn a_container_without_a_gpu_in_use_shows_what_it_may_use() {
    let limits = vec![
        effective(GPU, None),
        EffectiveLimit::of(&Entry::new("*".parse().expect("any")), None),
    ];
    let container = container("by-hand", None, limits);
    let status = Status {
        containers: Some(1),
        ledgers: vec![ledger(container, vec![])],
        ..Status::default()
    };
    let expected = "\
Container by-hand
  GPU-01010101-0101-0101-0101-010101010101: memory 1GiB   30% of its time
  *: memory not limited

  no GPU in use
";
    assert_eq!(people(&status), expected);
}

#[test]
fn containers_come_first_in_the_order_of_their_names() {
    let of = |id: &str, names| ledger(container(id, names, vec![]), vec![]);
    let mut status = status();
    status.ledgers.extend([
        of("a", None),
        of("b", Some(["web", "a", "x"])),
        of("c", Some(["default", "b", "y"])),
        of("d", Some(["default", "b", "x"])),
        of("e", Some(["default", "a", "z"])),
    ]);
    status.sort();
    let ids = status.ledgers.iter().map(|ledger| {
        ledger.container.as_ref().map_or("run", |container| container.record.container.as_str())
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["e", "d", "c", "b", "a", "run"]);
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    let mut status = raised();
    let device = &mut status.ledgers[0].devices[0];
    let most = u64::MAX / 1024;
    (device.used, device.peak, device.refusals) = (most, most, most);
    (device.time.launches, device.waited_ns, device.owed_for_ns) = (most, most, most);
    device.ended_bytes = most;
    device.processes[0].limit = most;
    device.processes[0].kinds = [most; Kind::ALL.len()];
    device.processes[0].command = Some("x".repeat(200));
    let long = "n".repeat(63);
    if let Some(container) = &mut status.ledgers[0].container {
        container.record.names =
            Some(Names { namespace: "s".repeat(14), pod: long.clone(), container: long });
    }
    let text = people(&status);
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > WIDTH).collect();
    assert_eq!(wide, Vec::<&str>::new());
    assert!(text.contains('…'), "{text}");
}

#[test]
fn a_command_is_known_by_its_program_and_words() {
    for (command, shown) in [
        ("/usr/bin/python3 /srv/train.py --lr 1e-3", "python3 /srv/train.py --lr 1e-3"),
        ("python3 /srv/train.py", "python3 /srv/train.py"),
        ("./a", "a"),
        ("/", ""),
        ("", ""),
    ] {
        assert_eq!(short(command), shown);
    }
}

#[test]
fn a_mig_instance_goes_by_its_own_name() {
    let mut device = raised().ledgers.remove(0).devices.remove(0);
    assert_eq!(device.name(), GPU);
    device.effective = Some(effective(&GPU.replace("GPU", "MIG"), None));
    assert_eq!(device.name(), GPU.replace("GPU", "MIG"));
    device.effective = None;
    assert_eq!(device.name(), GPU);
}

#[test]
fn nothing_to_see_is_said_plainly() {
    let text = people(&Status::default());
    assert_eq!(text, "No process with limits found, as far as this user can see.\n");
}

#[test]
fn a_bar_is_full_only_at_the_limit() {
    let bar = |used, limit| style::plain(&bar(used, limit));
    assert_eq!(bar(0, 100), "[--------------------]");
    assert_eq!(bar(1, 100), "[#-------------------]");
    assert_eq!(bar(99, 100), "[###################-]");
    assert_eq!(bar(100, 100), "[####################]");
    assert_eq!(bar(u64::MAX, 1), "[####################]");
}

#[test]
fn programs_see_json_of_this_form() {
    let value = parsed(&status());
    let device = &value["ledgers"][0]["devices"][0];
    let process = &device["processes"][0];
    assert_eq!(value["version"], 1);
    assert_eq!(value["ledgers"][0]["kind"], "run");
    assert_eq!(value["unused"][0], "/dev/shm/gpucap-0-run-4026531836-4243-89");
    assert_eq!(value["unreadable"][0]["why"], "permission denied");
    assert_eq!(device["uuid"], "01010101-0101-0101-0101-010101010101");
    assert_eq!(device["gpu"], GPU);
    assert_eq!((&device["limit_bytes"], &device["cap_bytes"]), (&Value::Null, &value!(2 * GIB)));
    assert_eq!(device["used_bytes"], 3 * GIB / 2);
    assert_eq!(device["ended"]["bytes"], GIB);
    assert_eq!(process["pid"], 4242);
    assert_eq!(process["state"], "alive");
    assert_eq!(process["command"], "python train.py");
    assert_eq!(process["by_kind"]["alloc"], GIB);
    assert_eq!(process["by_kind"]["context"], GIB / 4);
    assert_eq!(device["processes"][1]["command"], Value::Null);
    assert_eq!(parsed(&raised())["ledgers"][0]["kind"], "container");
}

/// Every name in a document, with the types of what it holds.
fn names(value: &Value, name: &str, found: &mut BTreeMap<String, Vec<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "flag",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(list) => {
            return list.iter().for_each(|it| names(it, &format!("{name}[]"), found));
        }
        Value::Object(map) => {
            for (key, inner) in map {
                let key = if name.ends_with("by_kind") { "*" } else { key };
                let dot = if name.is_empty() { "" } else { "." };
                names(inner, &format!("{name}{dot}{key}"), found);
            }
            "object"
        }
    };
    let kinds = found.entry(name.to_owned()).or_default();
    if !kinds.contains(&kind) {
        kinds.push(kind);
        kinds.sort_by_key(|kind| (*kind == "null", *kind));
    }
}

#[test]
fn the_manual_has_each_name_and_its_type() {
    let mut found = BTreeMap::new();
    let part = Entry {
        memory: Amount::OfDevice("25%".parse().expect("a part")).into(),
        ..Entry::new("*".parse().expect("any"))
    };
    let bare = container("x", None, vec![EffectiveLimit::of(&part, None)]);
    let bare = Status { ledgers: vec![ledger(bare, vec![])], ..Status::default() };
    let mut idle = status();
    idle.ledgers[0].devices[0].processes.clear();
    for status in [status(), raised(), bare, idle, of_time_alone()] {
        names(&parsed(&status), "", &mut found);
    }
    // Objects that are always there go without a line.
    let mut rendered: Vec<String> = found
        .iter()
        .filter(|(_, kinds)| **kinds != ["object"])
        .map(|(name, kinds)| format!("| `{name}` | {} |", kinds.join(" or ")))
        .collect();
    let rows = section("json").lines().filter(|line| line.starts_with("| `"));
    let mut documented: Vec<String> =
        rows.map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|") + "|").collect();
    documented.sort();
    rendered.sort();
    assert_eq!(documented, rendered);
}
