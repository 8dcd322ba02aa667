//! Both renderings of one picture.

use super::*;
use crate::command::status::json;
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::Entry;
use gpucap_core::units::{Amount, Bytes};
use gpucap_core::uuid::Uuid;
use std::path::PathBuf;

const GIB: u64 = 1 << 30;

/// Holds a context; what it holds beyond that is plainly allocated.
fn row(pid: u32, used: u64, cap: u64, state: State, command: Option<&str>) -> Row {
    let mut kinds = [0; Kind::ALL.len()];
    kinds[0] = used - (256 << 20);
    kinds[5] = 256 << 20;
    let command = command.map(str::to_owned);
    Row {
        pid,
        state,
        command,
        since_s: 130,
        cap,
        used,
        peak: used,
        refusals: 1,
        time: Time::default(),
        kinds,
    }
}

fn status() -> Status {
    let device = Device {
        uuid: Uuid([1; 16]),
        used: 3 * GIB / 2,
        peak: 2 * GIB,
        refusals: 3,
        time: Time::default(),
        waited_ns: 0,
        owed_for_ns: 0,
        core: None,
        processes: vec![
            row(4242, 5 * GIB / 4, 2 * GIB, State::Alive, Some("python train.py")),
            row(7, GIB / 4, 2 * GIB, State::Unknown, None),
        ],
        ended: 1,
        ended_bytes: GIB,
    };
    let path = PathBuf::from("/dev/shm/gpucap-0-run-4026531836-4242-88");
    Status {
        books: vec![Book { path, record: None, devices: vec![device] }],
        unused: vec!["/dev/shm/gpucap-0-run-4026531836-4243-89".into()],
        unreadable: vec![("/dev/shm/gpucap-1-2".into(), "permission denied".into())],
    }
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
     7   2 min    256 MiB   context 256 MiB                (in another pid namespace)

1 run of gpucap has not used a GPU yet.

/dev/shm/gpucap-1-2: permission denied
";
    assert_eq!(render(&status(), Paint::default()), expected);
}

#[test]
fn where_time_is_limited_people_and_programs_see_it() {
    let mut status = status();
    let device = &mut status.books[0].devices[0];
    device.time = Time { permille: 312, busy_ns: 75_900_000_000, launches: 12_345 };
    device.processes[0].time = Time { permille: 300, busy_ns: 1, launches: 12_000 };
    (device.waited_ns, device.owed_for_ns) = (3_000_000_000, 11_000_001);
    device.core = "30%".parse().ok();
    let text = render(&status, Paint::default());
    let line = "\n  31.2% of its time (30% given)   75 s busy   3 s waited   12,345 launches   paid off in 12 ms\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("   PID   SINCE    TIME      HOLDS   OF IT"), "{text}");
    assert!(text.contains("  4242   2 min   30.0%   1.25 GiB   alloc 1 GiB"), "{text}");
    assert!(text.contains("     7   2 min    0.0%    256 MiB   context"), "{text}");
    let value: serde_json::Value = serde_json::from_str(&json::render(&status)).expect("JSON");
    let device = &value["ledgers"][0]["devices"][0];
    let expected = serde_json::json!({
        "core_percent": 30.0, "share_percent": 31.2, "busy_ns": 75_900_000_000u64, "launches": 12_345,
        "waited_ns": 3_000_000_000u64, "owed_for_ns": 11_000_001,
    });
    assert_eq!(device["time"], expected);
    let expected = serde_json::json!({"share_percent": 30.0, "busy_ns": 1, "launches": 12_000});
    assert_eq!(device["processes"][0]["time"], expected);
}

/// A container in which nobody has used a GPU yet.
fn container() -> Status {
    let entry = |key: &str| Entry::new(key.parse().expect("a GPU"));
    let named = "GPU-01010101-0101-0101-0101-010101010101";
    let limits = LimitsFile {
        entries: vec![
            Entry {
                memory: Amount::Bytes(Bytes(GIB)).into(),
                core: "30%".parse().ok(),
                ..entry(named)
            },
            entry("*"),
        ],
        ..LimitsFile::default()
    };
    let record = Record {
        container: "4f6c".into(),
        pid: 42,
        start_time: 1,
        pod: Some("default/train".into()),
        name: Some("main".into()),
        limits: limits.write(),
    };
    let book = Book { path: record.ledger_path(), record: Some(record), devices: vec![] };
    Status { books: vec![book], ..Status::default() }
}

#[test]
fn of_a_container_people_see_whose_it_is_and_what_it_was_given() {
    let expected = "\
Container 4f6c default/train main   /proc/42/root/.gpucap/ledger
  GPU-01010101-0101-0101-0101-010101010101: memory 1GiB, 30% of its time
  *: memory not capped

  no GPU in use
";
    assert_eq!(render(&container(), Paint::default()), expected);
}

#[test]
fn of_a_container_programs_see_the_same() {
    let value: serde_json::Value = serde_json::from_str(&json::render(&container())).expect("JSON");
    let ledger = &value["ledgers"][0];
    assert_eq!(ledger["kind"], "container");
    assert_eq!(
        (&ledger["container"]["id"], &ledger["container"]["pid"]),
        (&"4f6c".into(), &42.into())
    );
    assert_eq!(ledger["container"]["pod"], "default/train");
    assert!(ledger["container"]["limits"].as_str().is_some_and(|it| it.contains("mem=1073741824")));
}

#[test]
fn nothing_to_see_is_said_plainly() {
    let text = render(&Status::default(), Paint::default());
    assert_eq!(text, "No process is under a cap, as far as this user can see.\n");
}

#[test]
fn a_bar_is_full_only_at_the_cap() {
    let bar = |used, cap| bar(used, cap, Paint::default());
    assert_eq!(bar(0, 100), "[--------------------]");
    assert_eq!(bar(1, 100), "[#-------------------]");
    assert_eq!(bar(99, 100), "[###################-]");
    assert_eq!(bar(100, 100), "[####################]");
    assert_eq!(bar(u64::MAX, 1), "[####################]");
}

#[test]
fn programs_see_json_of_this_form() {
    let value: serde_json::Value = serde_json::from_str(&json::render(&status())).expect("JSON");
    let device = &value["ledgers"][0]["devices"][0];
    let process = &device["processes"][0];
    assert_eq!(value["version"], 1);
    assert_eq!(value["ledgers"][0]["kind"], "run");
    assert_eq!(value["unused"][0], "/dev/shm/gpucap-0-run-4026531836-4243-89");
    assert_eq!(value["unreadable"][0]["why"], "permission denied");
    assert_eq!(device["uuid"], "01010101-0101-0101-0101-010101010101");
    assert_eq!(device["cap_bytes"], 2 * GIB);
    assert_eq!(device["used_bytes"], 3 * GIB / 2);
    assert_eq!(device["ended"]["bytes"], GIB);
    assert_eq!(process["pid"], 4242);
    assert_eq!(process["state"], "alive");
    assert_eq!(process["command"], "python train.py");
    assert_eq!(process["by_kind"]["alloc"], GIB);
    assert_eq!(process["by_kind"]["context"], GIB / 4);
    assert_eq!(device["processes"][1]["command"], serde_json::Value::Null);
}
