//! `gpucap completions SHELL` and `gpucap man DIRECTORY`: what a shell and `man` know of the command.
//!
//! Both are made of the words of the command line themselves, so they cannot say anything else than `--help` does. A
//! release has them made already.

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::terminal::output;
use clap::Command;
use clap_complete::Shell;
use std::fs;
use std::path::PathBuf;

const COMPLETIONS: &str = "\
A release has them in share/, where shells look for them.

Exit status: 0.

Examples:
  source <(gpucap completions bash)";

const MAN: &str = "\
One page for each command. A release has them in share/man, where `man` looks if gpucap is in PATH.

Exit status: 0, or 1 if a page cannot be written.

Examples:
  gpucap man share/man/man1";

/// The words behind `gpucap completions`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// The words behind `gpucap man`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MAN)]
pub(crate) struct Man {
    /// The directory that gets the pages
    directory: PathBuf,
}

/// Prints what the shell is to read.
pub(crate) fn complete(options: &Completions, mut line: Command) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut line, "gpucap", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::OK)
}

/// Writes the pages.
pub(crate) fn describe(options: &Man, line: Command) -> Result<Exit> {
    let Man { directory } = options;
    // `gpucap help` says what the pages say.
    let line = line.disable_help_subcommand(true);
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(line, directory))
        .map_err(|why| Error::File { path: directory.clone(), why })?;
    Ok(Exit::OK)
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::*;
    use clap::{CommandFactory, ValueEnum};

    /// The commands that a person sees.
    fn names() -> Vec<String> {
        let line = Line::command();
        let seen = line.get_subcommands().filter(|command| !command.is_hide_set());
        seen.map(|command| command.get_name().to_owned()).collect()
    }

    #[test]
    fn each_shell_completes_each_command() {
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Line::command(), "gpucap", &mut text);
            let text = String::from_utf8(text).expect("text");
            let untold: Vec<_> = names().into_iter().filter(|name| !text.contains(name)).collect();
            assert_eq!(untold, Vec::<String>::new(), "{shell}");
        }
    }

    #[test]
    fn each_command_has_a_page() {
        let directory = std::env::temp_dir().join(format!("gpucap-man-{}", std::process::id()));
        let options = Man { directory: directory.join("man1") };
        describe(&options, Line::command()).expect("pages");
        let page = |name: &str| fs::read_to_string(options.directory.join(name)).expect("a page");
        let whole = page("gpucap.1");
        for name in names() {
            assert!(page(&format!("gpucap-{name}.1")).contains(".SH NAME"), "{name}");
            assert!(whole.contains(&format!("gpucap\\-{name}(1)")), "{name}");
        }
        assert!(page("gpucap-run.1").contains("25%"));
        fs::remove_dir_all(directory).expect("removed");
    }
}
