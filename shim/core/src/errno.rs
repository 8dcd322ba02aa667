//! The numbers of failed system calls, in words.
//!
//! The library does not ask libc for them: `strerror` answers in the program's locale, may load its catalogue and allocates.
//! The words are glibc's, beginning in lower case; the hook has a test that compares them. The numbers are those of Linux
//! on x86-64 and arm64. Pure: `errno` itself is neither read nor changed here.

use core::fmt;

/// A number that a system call left in `errno`. Prints as `permission denied (errno 13)`, and as `errno 4095` where it
/// has no words here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Errno(pub i32);

/// What the calls of the library can fail with: opening, reading, sizing and mapping files.
const WORDS: &[(i32, &str)] = &[
    (1, "operation not permitted"),
    (2, "no such file or directory"),
    (3, "no such process"),
    (4, "interrupted system call"),
    (5, "input/output error"),
    (6, "no such device or address"),
    (9, "bad file descriptor"),
    (11, "resource temporarily unavailable"),
    (12, "cannot allocate memory"),
    (13, "permission denied"),
    (14, "bad address"),
    (16, "device or resource busy"),
    (17, "file exists"),
    (19, "no such device"),
    (20, "not a directory"),
    (21, "is a directory"),
    (22, "invalid argument"),
    (23, "too many open files in system"),
    (24, "too many open files"),
    (26, "text file busy"),
    (27, "file too large"),
    (28, "no space left on device"),
    (29, "illegal seek"),
    (30, "read-only file system"),
    (36, "file name too long"),
    (38, "function not implemented"),
    (40, "too many levels of symbolic links"),
    (71, "protocol error"),
    (75, "value too large for defined data type"),
    (95, "operation not supported"),
    (116, "stale file handle"),
    (122, "disk quota exceeded"),
];

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = self;
        match WORDS.iter().find(|(known, _)| known == number) {
            Some((_, words)) => write!(f, "{words} (errno {number})"),
            None => write!(f, "errno {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_stand_before_the_number() {
        assert_eq!(Errno(13).to_string(), "permission denied (errno 13)");
        assert_eq!(Errno(28).to_string(), "no space left on device (errno 28)");
        assert_eq!(Errno(4095).to_string(), "errno 4095");
    }
}
