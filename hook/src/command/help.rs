//! The form of the help: the commands of `gpucap` in groups, and the parts of the text behind the options.
//!
//! `--help` and the manual pages are made of the same texts. A text has paragraphs; the first word of one names its
//! part: [`EXAMPLES`], [`EXIT_STATUS`], [`VARIABLES`], or none of them for a note.

use clap::Command;
use clap::builder::styling::Styles;
use std::fmt::Write;

/// Begins the paragraph with the examples, one a line.
pub(super) const EXAMPLES: &str = "Examples:";
/// Begins the paragraph with the exit status.
pub(super) const EXIT_STATUS: &str = "Exit status:";
/// Begins the paragraph with the environment variables.
pub(super) const VARIABLES: &str = "Variables:";

/// Each command that a person sees, below the heading of its group.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Run and look:", &["run", "status", "top", "explain", "limit", "metrics", "demo"]),
    ("Containers on a node:", &["check", "configure", "calibrate", "gc"]),
    ("For engines:", &["runtime", "nri", "cdi"]),
    ("Shell:", &["completions", "man"]),
];

/// The help's template for a command with these subcommands.
pub(super) fn template(commands: &Command) -> String {
    let styles = Styles::styled();
    let (head, name) = (styles.get_header(), styles.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{head}{heading}{head:#}");
        for command in names.iter().filter_map(|name| commands.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            let aliases = match aliases.join(", ") {
                none if none.is_empty() => none,
                some => format!(" [aliases: {some}]"),
            };
            let _ = writeln!(text, "  {name}{:<11}{name:#}  {about}{aliases}", command.get_name());
        }
    }
    let _ = write!(text, "\n{head}Options:{head:#}\n{{options}}{{after-help}}");
    text
}

/// The paragraphs of a text that begin with this word; with an empty one, those that begin with none of them.
pub(super) fn paragraphs<'a>(text: &'a str, part: &'a str) -> impl Iterator<Item = &'a str> {
    let named = [EXAMPLES, EXIT_STATUS, VARIABLES];
    text.split("\n\n").filter_map(move |paragraph| {
        if part.is_empty() {
            return (!named.iter().any(|name| paragraph.starts_with(name))).then_some(paragraph);
        }
        paragraph.strip_prefix(part).map(str::trim_start)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn each_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let line = Line::command();
        let seen = line.get_subcommands().filter(|command| !command.is_hide_set());
        let mut seen: Vec<&str> = seen.map(Command::get_name).collect();
        grouped.sort_unstable();
        seen.sort_unstable();
        assert_eq!(grouped, seen);
    }

    #[test]
    fn a_text_has_parts() {
        let text = "A note.\nMore.\n\nExit status: 0.\n\nExamples:\n  gpucap a\n  gpucap b";
        let part = |name| paragraphs(text, name).collect::<Vec<_>>();
        assert_eq!(part(""), ["A note.\nMore."]);
        assert_eq!(part(EXIT_STATUS), ["0."]);
        assert_eq!(part(EXAMPLES), ["gpucap a\n  gpucap b"]);
        assert_eq!(part(VARIABLES), Vec::<&str>::new());
    }
}
