//! The exit codes of the command, as `include/gpucap.h` publishes them.
//!
//! One table; a test holds it against the header, which is where each code is explained. Nothing else in the command
//! ends the process or names a code by its number.

use std::process::ExitCode;

/// An exit code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Exit(u8);

macro_rules! codes {
    ($($name:ident = $code:literal;)*) => {
        impl Exit {
            $(pub(crate) const $name: Self = Self($code);)*
        }

        #[cfg(test)]
        const CODES: &[(&str, u8)] = &[$((stringify!($name), $code)),*];
    };
}

codes! {
    OK = 0;
    FAILED = 1;
    USAGE = 2;
    NOT_LIMITED = 3;
    BROKEN = 4;
    UNKNOWN_STAGE = 5;
    REFUSED = 6;
    NOT_RUN = 125;
    NOT_EXECUTABLE = 126;
    NOT_FOUND = 127;
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_header_says_the_same() {
        let header = include_str!("../../include/gpucap.h");
        let published: Vec<(&str, u8)> = header
            .lines()
            .filter_map(|line| line.strip_prefix("#define GPUCAP_EXIT_")?.split_once(' '))
            .map(|(name, code)| (called(name), code.parse().expect("a code")))
            .collect();
        assert_eq!(published, super::CODES);
    }

    /// The header keeps a name that programs are compiled with.
    fn called(published: &str) -> &str {
        if published == "NOT_CAPPED" { "NOT_LIMITED" } else { published }
    }
}
