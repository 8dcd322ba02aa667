//! How long pages last, and what takes their place.

use super::store::{bytes, cut_back, remove, without_categories};
use super::*;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// A directory in which no file system is mounted.
fn place(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("gpucap-{name}-{}", std::process::id()));
    fs::create_dir_all(path.join(ALL)).expect("a directory");
    path
}

/// A tmpfs rounds its own size up, and each file in it: a container has its page, its shares, and a
/// held file.
#[test]
fn all_containers_have_room_with_pages_of_any_size() {
    // Of pages of 4, 16 and 64 KiB: what 69,632 bytes take, and one for each of the others.
    for (kib, files) in [(4, 17 + 2), (16, 5 + 2), (64, 2 + 2)] {
        assert_eq!(bytes(kib << 10), 860 * files * (kib << 10), "{kib} KiB");
    }
}

#[test]
fn a_page_lasts_as_long_as_the_process_that_its_link_names() {
    let path = place("pages");
    let own = Process::own();
    let start_time = own.stat().expect("/proc").expect("a stat").start_time;
    let [living, over, missing] = [0, 1, 2].map(|more| format!("{}-{}", own.0, start_time + more));
    for (link, page) in [(&living, "a"), (&over, "b"), (&missing, "c")] {
        symlink(Path::new(ALL).join(page), path.join(link)).expect("a link");
    }
    for page in ["a", "a.share", "b", "b.share", "b.held"] {
        fs::write(path.join(ALL).join(page), "").expect("a page");
    }
    fs::write(path.join("README"), "").expect("no link");
    assert_eq!(sweep(&path), 2);
    assert_eq!(sweep(&path), 0);
    assert!(path.join(&living).exists() && path.join(ALL).join("a").exists());
    let left = ["a.share", "b", "b.share", "b.held"].map(|file| path.join(ALL).join(file).exists());
    assert_eq!(left, [true, false, false, false]);
    assert!(path.join("README").exists());
    for gone in [&over, &missing] {
        assert!(path.join(gone).symlink_metadata().is_err(), "{gone}");
    }
    fs::remove_dir_all(path).expect("removed");
}

/// Its maker was killed before making the link, or a hook in another mount namespace removed only the link.
#[test]
fn a_page_that_no_link_names_is_taken_away() {
    let path = place("orphans");
    let [named, orphan] = [1_u128, 2].map(|number| Path::new(ALL).join(format!("{number:032x}")));
    let own = Process::own();
    let start_time = own.stat().expect("/proc").expect("a stat").start_time;
    symlink(&named, path.join(format!("{}-{start_time}", own.0))).expect("a link");
    let other = Path::new(ALL).join("not a page");
    let beside = |page: &Path, ending| page.with_added_extension(ending);
    let own = ["share", "held"].map(|ending| beside(&named, ending));
    let left = ["share", "held", "share.new", "held.new"].map(|ending| beside(&orphan, ending));
    let files = [&[named, other], &own[..], &[orphan], &left[..]].concat();
    for file in &files {
        fs::write(path.join(file), "").expect("a page");
    }
    assert_eq!(sweep(&path), 0);
    let left: Vec<bool> = files.iter().map(|file| path.join(file).exists()).collect();
    assert_eq!(left, [[true; 4].as_slice(), &[false; 5]].concat());
    fs::remove_dir_all(path).expect("removed");
}

#[test]
fn a_page_that_cannot_be_removed_keeps_its_link() {
    let path = place("stuck");
    let link = path.join(format!("{}-1", Process::own().0));
    symlink(Path::new(ALL).join("a"), &link).expect("a link");
    fs::create_dir(path.join(ALL).join("a")).expect("a directory");
    assert_eq!(sweep(&path), 0);
    assert!(link.symlink_metadata().is_ok());
    fs::remove_dir_all(path).expect("removed");
}

#[test]
fn only_what_has_more_than_a_page_is_cut_back() {
    let path = place("long");
    let all = path.join(ALL);
    let bytes = |more: i64| {
        vec![1; usize::try_from(UsagePage::SIZE.strict_add_signed(more)).expect("bytes")]
    };
    for (page, more) in [("short", -1), ("right", 0), ("long", 1)] {
        fs::write(all.join(page), bytes(more)).expect("a page");
    }
    cut_back(&all).expect("cut back");
    for (page, more) in [("short", -1), ("right", 0), ("long", 0)] {
        assert_eq!(fs::read(all.join(page)).expect("a page"), bytes(more), "{page}");
    }
    fs::remove_dir_all(path).expect("removed");
}

/// Its length does not show it.
#[test]
fn what_a_page_takes_beyond_its_end_is_cut_off() {
    let path = Path::new("/dev/shm").join(format!("gpucap-beyond-{}", std::process::id()));
    fs::create_dir(&path).expect("a directory");
    for length in [0, 10, UsagePage::SIZE] {
        let page = File::create(path.join("page")).expect("a page");
        page.set_len(length).expect("its length");
        let mut taking = Command::new("fallocate");
        taking.args(["--keep-size", "--length", "1MiB"]).arg(path.join("page"));
        assert!(taking.status().expect("util-linux").success());
        cut_back(&path).expect("cut back");
        let metadata = page.metadata().expect("its metadata");
        assert!(metadata.blocks() * 512 <= UsagePage::SIZE, "{length}: {metadata:?}");
        assert_eq!(metadata.len(), UsagePage::SIZE);
    }
    fs::remove_dir_all(path).expect("removed");
}

/// As often as a container starts, fills its page and ends.
#[test]
fn of_a_removed_page_that_is_open_elsewhere_no_more_than_a_page_is_left() {
    let path = Path::new("/dev/shm").join(format!("gpucap-removed-{}", std::process::id()));
    fs::create_dir(&path).expect("a directory");
    let page = File::create(path.join("page")).expect("a page");
    page.set_len(UsagePage::SIZE).expect("its length");
    let mut taking = Command::new("fallocate");
    taking.args(["--length", "1MiB"]).arg(path.join("page"));
    assert!(taking.status().expect("util-linux").success());
    let all = File::open(&path).expect("the directory");
    remove(&all, c"page").expect("removed");
    remove(&all, c"page").expect("it is not there");
    let metadata = page.metadata().expect("its metadata");
    assert!(metadata.nlink() == 0 && metadata.blocks() * 512 <= UsagePage::SIZE, "{metadata:?}");
    fs::remove_dir(path).expect("removed");
}

#[test]
fn a_shared_label_has_no_categories() {
    for (label, shared) in [
        ("system_u:object_r:container_file_t:s0:c12,c345", "system_u:object_r:container_file_t:s0"),
        ("system_u:object_r:container_file_t:s0", "system_u:object_r:container_file_t:s0"),
    ] {
        assert_eq!(without_categories(label), shared);
    }
}

#[test]
fn the_header_says_the_same() {
    let header = include_str!("../../../../include/gpucap.h");
    let said = |name: &str| {
        let start = format!("#define GPUCAP_PAGE_{name} ");
        let text = header.lines().find_map(|line| line.strip_prefix(&start)).expect("a number");
        let text = text.split(['u', ' ']).next().unwrap_or_default();
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.expect("a number")
    };
    assert_eq!((said("MAGIC"), said("VERSION")), (page::MAGIC, page::VERSION));
    assert_eq!((said("SIZE"), said("PLACES")), (UsagePage::SIZE, page::PLACES as u64));
}
