//! The fields of `/proc/PID/stat` (proc(5)), as far as a ledger and the command need them.
//!
//! A slot of the ledger names its owner by [`Identity`]. Whether that owner still runs is decided here, for the shim
//! and for the command alike, from text that the caller has read. In doubt a process lives: a slot that is kept too
//! long wastes memory, one that is freed too early breaks the limit.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use crate::ledger::Identity;

/// `PROC_PID_INIT_INO` of Linux: the inode of the first pid namespace, by whose numbers the driver knows processes.
pub const FIRST_PID_NAMESPACE: u64 = 0xefff_fffc;

/// The fields of a process's or thread's `stat` that identify it, and what it does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stat {
    /// The letter of its state, such as `T` for stopped.
    pub state: u8,
    /// The pid of its parent.
    pub parent: u32,
    /// A zombie with no thread left: its memory on the card is free. (A leader that has ended while other threads run
    /// is a zombie too.)
    pub ended: bool,
    /// In clock ticks since boot; with the pid it identifies a process.
    pub start_time: u64,
    /// Where the stack begins: changes with `execve`, which pid and start time survive, and whenever the process says so
    /// (`PR_SET_MM_MAP`). 0 if the reader may not see it.
    pub start_of_stack: u64,
    /// Where its environment ends: 0 while it begins to execute a program, or if the reader may not see it. `None` if it has
    /// no memory: a thread of the kernel, or a process that has ended.
    pub end_of_environment: Option<u64>,
}

impl Stat {
    /// Reads the text of `/proc/PID/stat`. `None` if it is not such a text.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        // The second field is the program's name in parentheses and may hold anything: counting begins behind the last.
        let name_end = text.iter().rposition(|&byte| byte == b')')?;
        let rest = core::str::from_utf8(text.get(name_end..)?).ok()?.strip_prefix(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Fields are counted from 1 in proc(5); the first one behind the name is the third.
        let field = |number: usize| fields.get(number.saturating_sub(3)).copied();
        let number = |at: usize| field(at)?.parse::<u64>().ok();
        let state = *field(3)?.as_bytes().first()?;
        let is_zombie = matches!(state, b'Z' | b'X');
        Some(Self {
            state,
            parent: field(4)?.parse().ok()?,
            ended: is_zombie && number(20)? <= 1,
            start_time: number(22)?,
            start_of_stack: number(28)?,
            // Linux sets this end in `create_elf_tables` (fs/binfmt_elf.c).
            end_of_environment: (number(23)? != 0).then(|| number(51).unwrap_or(0)),
        })
    }

    /// Returns whether the process with this `stat` is the owner of a slot, and has not ended. The pid and its namespace are
    /// the caller's to compare.
    #[must_use]
    pub const fn runs(&self, owner: &Identity) -> bool {
        // Zero is unknown: no process starts with the machine.
        (owner.start_time == 0 || owner.start_time == self.start_time) && !self.ended
    }

    /// Returns whether that process may have executed another program since it claimed the slot. It may also have said that
    /// its stack begins elsewhere: only its mappings show which.
    #[must_use]
    pub const fn may_have_executed(&self, owner: &Identity) -> bool {
        // Zero is unknown: no stack is there.
        owner.image != 0 && self.start_of_stack != 0 && owner.image != self.start_of_stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// State and number of threads as given, parent 41, start time 7000, stack at 9000.
    fn text(name: &str, state: char, threads: u32) -> String {
        let before = "1 ".repeat(15);
        format!("42 ({name}) {state} 41 {before}{threads} 0 7000 1 1 1 1 1 9000 1 1\n")
    }

    /// One with this number of bytes of memory, and an environment that ends here.
    fn with_environment(memory: u32, end: u32) -> String {
        let (before, between) = ("1 ".repeat(15), "1 ".repeat(22));
        format!("42 (sh) R 41 {before}1 0 7000 {memory} 1 1 1 1 9000 {between}{end} 0\n")
    }

    const RUNS: Stat = Stat {
        state: b'S',
        parent: 41,
        ended: false,
        start_time: 7000,
        start_of_stack: 9000,
        end_of_environment: Some(0),
    };

    fn owner(start_time: u64, image: u64) -> Identity {
        Identity { pid_namespace: 1, pid: 42, start_time, image }
    }

    #[test]
    fn fields_are_found_behind_any_name() {
        for name in ["sh", "a b", ") Z 1 1", "((", ""] {
            let stat = Stat::parse(text(name, 'S', 3).as_bytes());
            assert_eq!(stat, Some(RUNS), "{name}");
        }
        let not_utf8 = [b"42 (\xff".as_slice(), &text("", 'S', 1).as_bytes()[4..]].concat();
        assert!(Stat::parse(&not_utf8).is_some());
    }

    #[test]
    fn only_a_process_with_memory_has_an_environment() {
        let end = |memory, end| {
            let text = with_environment(memory, end);
            Stat::parse(text.as_bytes()).expect("a stat").end_of_environment
        };
        assert_eq!((end(4096, 9100), end(4096, 0), end(0, 0)), (Some(9100), Some(0), None));
    }

    #[test]
    fn an_owner_whose_start_is_unknown_runs_as_long_as_the_process_does() {
        let stat = |state| Stat::parse(text("sh", state, 1).as_bytes()).expect("a stat");
        assert!(stat('S').runs(&owner(0, 9000)) && !stat('Z').runs(&owner(0, 9000)));
        assert!(!stat('S').runs(&owner(1, 9000)));
    }

    #[test]
    fn a_process_has_ended_when_its_last_thread_has() {
        let ended = |state, threads| {
            Stat::parse(text("sh", state, threads).as_bytes()).expect("a stat").ended
        };
        assert!(ended('Z', 1) && ended('X', 0));
        assert!(!ended('Z', 2) && !ended('S', 1) && !ended('T', 1));
    }

    #[test]
    fn another_text_is_no_stat() {
        for text in ["", "42", "42 (sh", "42 (sh)", "42 (sh) S 1 2 3", "42 (sh) S x"] {
            assert_eq!(Stat::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn an_owner_runs_until_it_ends() {
        assert!(RUNS.runs(&owner(7000, 9000)));
        assert!(!RUNS.runs(&owner(7001, 9000)), "the pid was given out again");
        assert!(RUNS.runs(&owner(7000, 9001)), "its stack says nothing about that");
        assert!(!Stat { ended: true, ..RUNS }.runs(&owner(7000, 9000)));
    }

    #[test]
    fn another_stack_may_mean_another_program() {
        assert!(!RUNS.may_have_executed(&owner(7000, 9000)));
        assert!(RUNS.may_have_executed(&owner(7000, 9001)));
        assert!(!RUNS.may_have_executed(&owner(7000, 0)), "in doubt");
        let unseen = Stat { start_of_stack: 0, ..RUNS };
        assert!(!unseen.may_have_executed(&owner(7000, 9001)), "in doubt");
    }
}
