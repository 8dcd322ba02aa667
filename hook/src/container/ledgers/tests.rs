//! Whose a ledger is by its name, and which ones are removed.

use super::*;

#[test]
fn a_name_says_whose_ledger_it_is() {
    let shared = Name::Shared { uid: 1000, mount_namespace: 4_026_531_841 };
    assert_eq!(Name::parse("gpucap-1000-4026531841"), Some(shared));
    let run = Name::Run { uid: 0, pid_namespace: 4_026_531_836, pid: 42, start_time: 7 };
    assert_eq!(Name::parse("gpucap-0-run-4026531836-42-7"), Some(run));
    assert_eq!(Name::of(&run.path()), Some(run));
}

#[test]
fn nothing_else_is_a_name() {
    for file in [
        "gpucap-stub-0",
        "gpucap-0-pages",
        "gpucap-0",
        "gpucap-0-x",
        "gpucap-01-2",
        "gpucap-+1-2",
        "gpucap-0-run-1-2",
        "gpucap-0-run-1-2-3-4",
        "gpucap-0-run-1-2-03",
        "xgpucap-0-1",
        "",
    ] {
        assert_eq!(Name::parse(file), None, "{file}");
    }
    assert_eq!(Name::of(Path::new("/tmp/gpucap-0-1")), None);
}

#[test]
fn a_ledger_is_configured_as_the_library_reads_it() {
    let path = |value: &str| configured(Some(OsStr::new(value)));
    assert_eq!(path(" /a/b\n"), Some("/a/b".into()));
    assert_eq!([path(""), path(" "), path("a/b"), configured(None)], [const { None }; 4]);
}

#[test]
fn no_user_hides_the_ledgers_of_another_one() {
    let path = |uid: u32, number: usize| PathBuf::from(format!("gpucap-{uid}-{number}"));
    let of = |uid: u32, count| (0..count).map(move |number| (uid, path(uid, number)));
    let found = || of(500, 3000).chain(of(7, 2)).chain(of(9, 1));
    let (all, beyond) = first_of(found(), 9);
    assert_eq!((all.len(), beyond), (MOST, 3003 - MOST));
    assert_eq!(all.first(), Some(&path(9, 0)));
    assert!([path(7, 0), path(7, 1)].iter().all(|it| all.contains(it)));
    let (all, _) = first_of(found(), 500);
    assert!(!all.contains(&path(9, 0)), "one's own come first");
}

#[test]
fn what_is_beside_a_ledger_goes_when_that_has_gone() {
    let directory = std::env::temp_dir().join(format!("gpucap-sweep-{}", std::process::id()));
    let uid = sys::uid();
    let [pages, runs] =
        ["pages", "runs"].map(|kind| directory.join(format!("gpucap-{uid}-{kind}")));
    let elsewhere = directory.join("elsewhere");
    for made in [&directory, &pages, &runs, &elsewhere] {
        fs::create_dir(made).expect("a directory");
    }
    fs::write(directory.join("gpucap-0-1"), "").expect("a ledger");
    for kept in [&pages, &runs] {
        fs::write(kept.join("gpucap-0-1"), "").expect("a file");
    }
    for gone in [&pages, &runs, &elsewhere] {
        fs::write(gone.join("gone"), "").expect("a file");
    }
    sweep_beside(&directory, uid);
    for kept in [&pages, &runs] {
        let left = fs::read_dir(kept).expect("still there").flatten();
        assert_eq!(left.map(|file| file.file_name()).collect::<Vec<_>>(), ["gpucap-0-1"]);
    }
    fs::remove_dir_all(&pages).expect("removed");
    std::os::unix::fs::symlink(&elsewhere, &pages).expect("a link");
    sweep_beside(&directory, uid);
    assert!(elsewhere.join("gone").exists(), "what a link leads to");
    fs::remove_dir_all(directory).expect("removed");
}

#[test]
fn only_a_maker_that_is_known_to_have_ended_has_ended() {
    let own = Process::own();
    let Ok(Name::Run { uid, pid_namespace, pid, start_time }) = Name::of_run(5, own) else {
        panic!("/proc is needed");
    };
    let name = |pid_namespace, start_time| Name::Run { uid, pid_namespace, pid, start_time };
    let ended = |name, uid| maker_has_ended(name, uid, &PidNamespaces::default());
    assert!(!ended(name(pid_namespace, start_time), 5), "it is this process");
    assert!(ended(name(pid_namespace, start_time + 1), 5), "another had its pid");
    assert!(!ended(name(pid_namespace, start_time + 1), 6), "another user's");
    let is_known = PidNamespaces::default().has_none_in(1);
    assert_eq!(ended(name(1, start_time + 1), 5), is_known, "another namespace's");
    assert!(!ended(Name::Shared { uid: 5, mount_namespace: 1 }, 5));
}
