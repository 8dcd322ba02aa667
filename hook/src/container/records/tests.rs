//! How long records last, and what a slice has.

use super::*;

fn record(start_time: u64) -> Record {
    Record {
        container: "4f6c.a_b".into(),
        pid: Process::own().0,
        start_time,
        place: "u1@main".into(),
        names: Some(Names {
            namespace: "default".into(),
            pod: "train".into(),
            container: "main".into(),
        }),
        limits: Some(LimitsFile::default().write()),
        native_limits: None,
        slices: Slices::default(),
        pod_uids: Vec::new(),
        waiting: None,
    }
}

#[test]
fn a_slice_has_one_container_at_a_time() {
    let path = std::env::temp_dir().join(format!("gpucap-slices-{}", std::process::id()));
    let records = Records::open(&path).expect("a directory");
    // Two containers that live: this process, and the one that started it.
    let of = |pid: u32, slices: &[&str]| {
        let stat = Process(pid).stat().expect("/proc").expect("a stat");
        let slices = Slices::of_record(&json!({"slices": slices}));
        Record { container: format!("c{pid}"), pid, slices, ..record(stat.start_time) }
    };
    let (own, parent) = (Process::own().0, std::os::unix::process::parent_id());
    let occupy = |record: &Record| records.occupy(&path, record).expect("written");
    let free = Claimed::After(Vec::new());
    assert_eq!(occupy(&of(own, &["a", "b"])), free);
    assert_eq!(occupy(&of(own, &["a", "b"])), free, "its own");
    assert_eq!(occupy(&of(parent, &["c", "b"])), Claimed::By(format!("c{own}")));
    assert_eq!(all(&path), [of(own, &["a", "b"])], "the refused one leaves nothing");
    assert_eq!(occupy(&of(parent, &["c"])), free);
    let over = Record { start_time: 1, ..of(own, &["d"]) };
    records.write(&over).expect("written");
    assert_eq!(occupy(&of(parent, &["d"])), free, "its container has ended");
    fs::remove_dir_all(path).expect("removed");
}

#[test]
fn a_container_is_replaced_by_a_later_one_of_its_name_and_pod() {
    let earlier = Record { pod_uids: vec!["u1".into()], ..record(1) };
    let later = Record { start_time: 2, ..earlier.clone() };
    assert!(earlier.is_replaced_by(&later));
    assert!(!later.is_replaced_by(&earlier) && !earlier.is_replaced_by(&earlier));
    for uids in [&[][..], &["u2"], &["u1", "u2"]] {
        let pod_uids = uids.iter().map(ToString::to_string).collect();
        assert!(!earlier.is_replaced_by(&Record { pod_uids, ..later.clone() }));
    }
    let named = |change: fn(&mut Names)| {
        let mut other = later.clone();
        other.names.iter_mut().for_each(change);
        other
    };
    assert!(!earlier.is_replaced_by(&named(|it| it.namespace = "other".into())));
    assert!(!earlier.is_replaced_by(&named(|it| it.pod = "other".into())));
    assert!(!earlier.is_replaced_by(&named(|it| it.container = "other".into())));
    let [earlier, later] = [earlier, later].map(|it| Record { names: None, ..it });
    assert!(!earlier.is_replaced_by(&later), "no pod");
}

#[test]
fn a_record_lasts_as_long_as_its_process() {
    let path = std::env::temp_dir().join(format!("gpucap-records-{}", std::process::id()));
    let records = Records::open(&path).expect("a directory");
    let start_time = Process::own().stat().expect("/proc").expect("a stat").start_time;
    let (living, over) = (record(start_time), record(start_time + 1));
    records.write(&living).expect("written");
    records.write(&living).expect("written again");
    records.write(&over).expect("written");
    fs::write(path.join("x@1-0.json.new"), "").expect("a partial file");
    fs::write(path.join("README"), "").expect("no record");
    assert_eq!(all(&path), std::slice::from_ref(&living));
    assert_eq!(sweep(&path), 2);
    assert_eq!(sweep(&path), 0);
    assert_eq!(all(&path), [living]);
    assert!(path.join("README").exists());
    fs::remove_dir_all(path).expect("removed");
}

#[test]
fn only_a_plain_word_is_part_of_a_name() {
    assert!(is_id("4f6c") && is_id("cri-containerd:4f.6_c+x"));
    for text in ["", ".", "..", ".x", "a/b", "a@b", "a b", "\u{e9}", &"x".repeat(201)] {
        assert!(!is_id(text), "{text}");
    }
    assert_eq!(owner("a-b@1-2.json"), Some(("a-b", 1, 2)));
    assert_eq!(owner("a@b@1-2.json"), None);
}

#[test]
fn an_unreadable_part_of_a_record_hides_no_slice() {
    let path = std::env::temp_dir().join(format!("gpucap-parts-{}", std::process::id()));
    let records = Records::open(&path).expect("a directory");
    let of = |pid: u32| {
        let stat = Process(pid).stat().expect("/proc").expect("a stat");
        let slices = Slices::of_record(&json!({"slices": ["a"]}));
        Record { container: format!("c{pid}"), pid, slices, ..record(stat.start_time) }
    };
    let (holder, own) = (of(std::os::unix::process::parent_id()), of(Process::own().0));
    let file = path.join(holder.file());
    for part in [json!({"version": 1, "limits": 5}), json!({"version": 1}), json!({"version": 9})] {
        let mut part = part;
        holder.slices.write(&mut part);
        fs::write(&file, part.to_string()).expect("written");
        let claimed = records.occupy(&path, &own).expect("read");
        assert_eq!(claimed, Claimed::By(holder.container.clone()), "{part}");
        assert_eq!(all(&path).first().and_then(Record::limits), None, "{part}");
    }
    for text in ["", "{", "\u{fffd}"] {
        fs::write(&file, text).expect("written");
        let why = records.occupy(&path, &own).expect_err("it may have any slice").to_string();
        assert!(why.starts_with(&file.display().to_string()), "{why}");
        assert!(!path.join(own.file()).exists(), "the refused one leaves nothing");
        assert_eq!(all(&path), [], "nor is it shown");
    }
    fs::remove_file(&file).and_then(|()| fs::create_dir(&file)).expect("no file");
    records.occupy(&path, &own).expect_err("it cannot be read");
    fs::remove_dir(&file).expect("removed");
    assert_eq!(records.occupy(&path, &own).expect("read"), Claimed::After(Vec::new()));
    fs::remove_dir_all(path).expect("removed");
}
