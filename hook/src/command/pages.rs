//! `gpucap completions SHELL` and `gpucap man DIRECTORY`: what a shell and `man` know of the command.
//!
//! Both are made of the words of the command line themselves, so they cannot say anything else than `--help` does. A
//! release has them made already.

use crate::command::help::{self, EXAMPLES, EXIT_STATUS, VARIABLES};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::terminal::output;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man as ManPage;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

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
    let mut line = line.disable_help_subcommand(true);
    line.build();
    let variables = line.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    fs::create_dir_all(directory)
        .and_then(|()| write_pages(&line, &variables, directory))
        .map_err(|why| Error::File { path: directory.clone(), why })?;
    Ok(Exit::OK)
}

/// The commands whose pages list the variables of the library, which they set or judge.
const WITH_VARIABLES: [&str; 3] = ["gpucap", "gpucap-run", "gpucap-explain"];

/// The pages of a command and of those below it. `variables` is a text with a paragraph of that name.
fn write_pages(command: &Command, variables: &str, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, variables, directory)?;
    }
    let page = ManPage::new(command.clone())
        .source(concat!("gpucap ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut file = File::create(directory.join(page.get_filename()))?;
    page.render_title(&mut file)?;
    page.render_name_section(&mut file)?;
    page.render_synopsis_section(&mut file)?;
    page.render_description_section(&mut file)?;
    page.render_options_section(&mut file)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        page.render_subcommands_section(&mut file)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    sections(name, &help, variables).to_writer(&mut file)
}

/// What stands behind the options, in the sections and the order of man-pages(7).
fn sections(name: &str, help: &str, variables: &str) -> Roff {
    let mut roff = Roff::default();
    for paragraph in help::paragraphs(help, EXIT_STATUS) {
        roff.control("SH", ["EXIT STATUS"]).text([roman(paragraph)]);
    }
    roff.control("SH", ["ENVIRONMENT"]);
    let colors: [Inline; 2] = [bold("NO_COLOR"), roman(": if it is set, --color auto is never.")];
    roff.text(colors);
    if WITH_VARIABLES.contains(&name) {
        help::paragraphs(variables, VARIABLES).for_each(|paragraph| verbatim(&mut roff, paragraph));
    }
    for (at, paragraph) in help::paragraphs(help, "").enumerate() {
        roff.control(if at == 0 { "SH" } else { "PP" }, (at == 0).then_some("NOTES"));
        roff.text([roman(paragraph)]);
    }
    for paragraph in help::paragraphs(help, EXAMPLES) {
        roff.control("SH", ["EXAMPLES"]);
        verbatim(&mut roff, paragraph);
    }
    roff
}

/// Lines that stay lines.
fn verbatim(roff: &mut Roff, text: &str) {
    roff.control("PP", []).control("EX", []);
    let lines = text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("EE", []);
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
            let completes_programs = text.contains("no option:_cmdambivalent");
            assert!(completes_programs || *shell != Shell::Zsh, "{text}");
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
            let text = page(&format!("gpucap-{name}.1"));
            for section in ["\"EXIT STATUS\"", "ENVIRONMENT", "EXAMPLES"] {
                assert!(text.contains(&format!("\n.SH {section}\n")), "{name} {section}");
            }
            assert!(!text.contains("EXTRA"), "{name}");
        }
        let run = page("gpucap-run.1");
        assert!(run.contains("\n.EX\ngpucap run ") && run.contains("\nGPU_MEM_LIMIT\n"), "{run}");
        fs::remove_dir_all(directory).expect("removed");
    }
}
