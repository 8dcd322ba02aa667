//! What a container owes when it ends, for the one that starts in its place.
//!
//! A container that is started again gets a new ledger, in which nothing is owed. Otherwise one that runs one long kernel at each
//! start, or has more than its limit in another way, would have all of the GPU. So the page of a container that has ended is
//! read before it is removed, and the next one in its place, which an engine names, is held back for that
//! ([`gpucap_core::page::held`]).
//!
//! ```text
//! <run_dir>/pages/debts/
//!   PID-START -> PLACE      the place of the container with this first process, as long as it has a page
//!   PLACE.owed              what those that were in this place owe: a GPU, and until when, in ns since 1970; one a line
//! ```
//!
//! The container has written its own page, so what that says is bounded by [`MOST_HELD_NS`], and concerns its own place alone.

use super::held::{self, Owed};
use crate::sys::at::{self, OFlags};
use crate::sys::{self, Map};
use gpucap_core::page::excess::MOST_HELD_NS;
use gpucap_core::page::held::{FARTHEST_NS, MOST_DEBTS};
use gpucap_core::page::{LEAST_DEBT_NS, UsagePage};
use gpucap_core::uuid::{DeviceName, Uuid};
use std::ffi::CStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "debts";
const ENDING: &str = ".owed";
const UNFINISHED: &str = ".new";
/// It is written at once, or its writer was killed.
const MOST_UNFINISHED: Duration = Duration::from_secs(60);

/// The debts of containers that have ended.
#[derive(Debug)]
pub(super) struct Debts(PathBuf);

impl Debts {
    /// Those beside the pages of this directory.
    pub(super) fn beside(pages: &Path) -> Self {
        Self(pages.join(NAME))
    }

    /// Notes the place of the container whose page this link names. Returns what is owed there.
    pub(super) fn enter(&self, link: &str, place: &str) -> io::Result<Owed> {
        super::store::make_directory(&self.0, 0o700)?;
        match symlink(place, self.0.join(link)) {
            // A hook has been here for this container before.
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        Ok(self.of(place))
    }

    /// Forgets the place of a container that does not start.
    pub(super) fn leave(&self, link: &str) {
        drop(fs::remove_file(self.0.join(link)));
    }

    /// Keeps what a container owes whose page is about to be removed.
    pub(super) fn keep(&self, link: &str, all: &File, page: &CStr) -> io::Result<()> {
        let place = match fs::read_link(self.0.join(link)) {
            Ok(place) => place,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(why),
        };
        if let Some(place) = place.to_str() {
            let mut owed = self.of(place);
            add(&mut owed, owed_by(all, page).into_iter());
            if !owed.is_empty() {
                self.write(place, &owed)?;
            }
        }
        fs::remove_file(self.0.join(link))
    }

    /// Removes what is not owed any more, and links without a page.
    pub(super) fn tidy(&self, has_page: impl Fn(&str) -> bool) {
        let is_old = |entry: &DirEntry| {
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > MOST_UNFINISHED))
        };
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            let is_left = match name.strip_suffix(ENDING) {
                Some(place) => self.of(place).is_empty(),
                None if name.ends_with(UNFINISHED) => is_old(&entry),
                None => !has_page(name),
            };
            if is_left {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// What is owed in this place.
    fn of(&self, place: &str) -> Owed {
        let text = fs::read_to_string(self.file(place)).unwrap_or_default();
        let line = |line: &str| {
            let (gpu, until) = line.split_once(' ')?;
            Some((gpu.parse::<DeviceName>().ok()?.uuid, until.parse().ok()?))
        };
        let most = sys::unix_ns().saturating_add(FARTHEST_NS);
        due(text.lines().filter_map(line).filter(|(_, until)| *until <= most)).collect()
    }

    fn write(&self, place: &str, owed: &Owed) -> io::Result<()> {
        let line = |(gpu, until): (&Uuid, &u64)| format!("{} {until}\n", gpu.gpu());
        let text: String = owed.iter().map(line).collect();
        let file = self.file(place);
        let new = file.with_added_extension(&UNFINISHED[1..]);
        fs::write(&new, text)?;
        fs::rename(new, file)
    }

    fn file(&self, place: &str) -> PathBuf {
        self.0.join(format!("{place}{ENDING}"))
    }
}

/// What the container of this page owes: what the node holds it back for comes first, as it has not said that itself.
fn owed_by(all: &File, page: &CStr) -> Owed {
    let now = sys::unix_ns();
    let held = held::copy(all, page);
    let held: Vec<_> = held.map(|held| held.get().held(now).collect()).unwrap_or_default();
    let held = held.into_iter().map(|(gpu, left_ns)| (gpu, now.saturating_add(left_ns)));
    // Not blocking: a process that is not there any more may have passed on a lease.
    let own = at::open(all, page, OFlags::RDONLY | OFlags::NONBLOCK, 0);
    let own = own.and_then(|file| Map::<UsagePage>::copy(&file));
    let own = own.ok().filter(|own| own.get().is_known());
    let own: Vec<_> = own.map(|own| own.get().debts().collect()).unwrap_or_default();
    let mut owed = Owed::new();
    add(&mut owed, due(held.chain(own)));
    owed
}

/// Adds these, as far as there is room for them.
fn add(owed: &mut Owed, more: impl Iterator<Item = (Uuid, u64)>) {
    for (gpu, until) in more {
        if owed.len() < MOST_DEBTS || owed.contains_key(&gpu) {
            let known = owed.entry(gpu).or_default();
            *known = until.max(*known);
        }
    }
}

/// What of this is worth waiting for, and no longer than anything is.
fn due(owed: impl Iterator<Item = (Uuid, u64)>) -> impl Iterator<Item = (Uuid, u64)> {
    let now = sys::unix_ns();
    let most = now.saturating_add(MOST_HELD_NS);
    let owed = owed.map(move |(gpu, until)| (gpu, until.min(most)));
    owed.filter(move |(_, until)| *until >= now.saturating_add(LEAST_DEBT_NS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::unix_ns;
    use std::ffi::CString;
    use std::os::unix::fs::FileExt;

    const SECOND: u64 = 1_000_000_000;

    fn uuid(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    /// Pages of containers, in a directory of this test.
    fn place(name: &str) -> (PathBuf, File) {
        let pages = std::env::temp_dir().join(format!("gpucap-{name}-{}", std::process::id()));
        fs::create_dir_all(pages.join("all")).expect("a directory");
        let all = File::open(pages.join("all")).expect("open");
        (pages, all)
    }

    /// The pages of a container: it is held back for what was owed before, and its processes have named these debts.
    fn page(all: &File, name: &str, owed: &Owed, debts: &[(u8, u64)]) -> CString {
        let name = CString::new(name).expect("a name");
        held::make(all, &name, owed).expect("a held page");
        let file = at::open(all, &name, OFlags::RDWR | OFlags::CREATE, 0o666).expect("a file");
        at::allocate(&file, UsagePage::SIZE).expect("room");
        Map::<UsagePage>::writable(&file).expect("mapped").get().format();
        for (place, (gpu, until)) in debts.iter().enumerate() {
            let place = place as u64;
            file.write_all_at(&[*gpu; 16], 64 + 16 * place).expect("written");
            file.write_all_at(&until.to_le_bytes(), 1088 + 8 * place).expect("written");
        }
        name
    }

    #[test]
    fn what_a_container_owes_at_its_end_is_owed_by_the_next_one_in_its_place() {
        let (pages, all) = place("owed");
        let (debts, now) = (Debts::beside(&pages), unix_ns());
        assert_eq!(debts.enter("7-1", "pod@main").expect("entered"), Owed::new());
        assert_eq!(debts.enter("7-1", "pod@main").expect("entered again"), Owed::new());
        debts.enter("8-1", "pod@other").expect("entered");
        let at = |seconds: u64| now + seconds * SECOND;
        // The second is past, the third not worth a word, the fourth farther off than any.
        let words = [(1, at(50)), (2, now - 1), (3, now + SECOND / 30), (4, at(9000))];
        let name = page(&all, "a", &Owed::from([(uuid(1), at(90)), (uuid(5), at(40))]), &words);
        debts.keep("7-1", &all, &name).expect("kept");
        let owed = debts.enter("9-1", "pod@main").expect("entered");
        assert_eq!(owed.keys().copied().collect::<Vec<_>>(), [1, 4, 5].map(uuid));
        let near = |gpu, seconds| owed[&uuid(gpu)].abs_diff(at(seconds)) < 5 * SECOND;
        assert!(near(1, 90) && near(4, 600) && near(5, 40), "{owed:?}");
        assert_eq!(debts.enter("10-1", "pod@other").expect("entered"), Owed::new());
        // Its page is gone already: nothing is lost that another one owed.
        debts.keep("9-1", &all, c"missing").expect("kept");
        assert_eq!(debts.enter("11-1", "pod@main").expect("entered").len(), 3);
        fs::remove_dir_all(pages).expect("removed");
    }

    /// Nor is there more than an entry for each GPU that a page has room for.
    #[test]
    fn any_word_of_a_container_is_harmless() {
        let (pages, all) = place("named");
        let (debts, far) = (Debts::beside(&pages), unix_ns() + 300 * SECOND);
        debts.enter("7-1", "c1").expect("entered");
        let words: Vec<_> = (1..=64).map(|gpu| (gpu, far)).collect();
        let held = Owed::from([(uuid(200), far)]);
        debts.keep("7-1", &all, &page(&all, "a", &held, &words)).expect("kept");
        let owed = debts.enter("8-1", "c1").expect("entered");
        assert!(owed.len() == MOST_DEBTS && owed.contains_key(&uuid(200)), "{owed:?}");
        // Shorter, and no page.
        let garbage = page(&all, "b", &Owed::new(), &[(9, far)]);
        fs::write(pages.join("all/b"), [7; 1600]).expect("written");
        debts.enter("9-1", "c2").expect("entered");
        debts.keep("9-1", &all, &garbage).expect("kept");
        assert_eq!(debts.enter("10-1", "c2").expect("entered"), Owed::new());
        fs::remove_dir_all(pages).expect("removed");
    }

    #[test]
    fn what_is_not_owed_any_more_is_removed() {
        let (pages, _all) = place("tidy");
        let debts = Debts::beside(&pages);
        let file = |name: &str| pages.join(NAME).join(name);
        for (owner, name) in [("7-1", "stays"), ("8-1", "goes")] {
            debts.enter(owner, name).expect("entered");
        }
        let gpu = uuid(1).gpu();
        fs::write(file("stays.owed"), format!("{gpu} {}\n", unix_ns() + 60 * SECOND)).expect("");
        // Of a clock that was set back since.
        fs::write(file("goes.owed"), format!("{gpu} {}\n", unix_ns() + 900 * SECOND)).expect("");
        fs::write(file("young.owed.new"), "").expect("written");
        let old = File::create(file("old.owed.new")).expect("made");
        old.set_modified(std::time::UNIX_EPOCH).expect("set");
        debts.tidy(|owner| owner == "7-1");
        let names = ["7-1", "8-1", "stays.owed", "goes.owed", "young.owed.new", "old.owed.new"];
        let is_there = names.map(|name| file(name).symlink_metadata().is_ok());
        assert_eq!(is_there, [true, false, true, false, true, false]);
        fs::remove_dir_all(pages).expect("removed");
    }
}
