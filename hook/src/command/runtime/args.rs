//! The command line that an engine passes to a runtime, parsed as far as needed: the command, and the path of the
//! bundle.
//!
//! The words themselves are never changed. runc, crun and youki agree on the commands and on the options read here;
//! they take an option's value behind `=` or as the next word. An option that we do not know may be one or the other:
//! the command is the first word that is one of the known commands and not the value of a known option.

use super::file;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options before the command that take a value.
const GLOBAL: &[&str] =
    &["--root", "--log", "--log-format", "--log-level", "--criu", "--rootless", "--cgroup-manager"];
/// Options behind the command that take a value.
const LOCAL: &[&str] = &[
    "--bundle",
    "-b",
    "--config",
    "-f",
    "--console-socket",
    "--pid-file",
    "--pidfd-socket",
    "--preserve-fds",
    "--image-path",
    "--work-path",
    "--parent-path",
    "--manage-cgroups-mode",
    "--empty-ns",
    "--lsm-profile",
    "--lsm-mount-context",
    "--process",
    "-p",
    "--cwd",
    "--env",
    "-e",
    "--user",
    "-u",
    "--additional-gids",
    "-g",
    "--process-label",
    "--apparmor",
    "--cap",
    "-c",
    "--cgroup",
    "--rootless",
];
/// What runtimes are asked to do.
const COMMANDS: &[&str] = &[
    "checkpoint",
    "create",
    "delete",
    "events",
    "exec",
    "features",
    "help",
    "info",
    "init",
    "kill",
    "list",
    "pause",
    "ps",
    "restore",
    "resume",
    "run",
    "spec",
    "start",
    "state",
    "update",
    "version",
];

/// A command line for a runtime.
#[derive(Debug)]
pub(super) struct RuntimeArgs<'a> {
    line: &'a [OsString],
    /// Where the command stands.
    at: usize,
    /// What we must know of it.
    pub(super) command: Option<Command>,
}

/// A command before which something is to be done.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Command {
    /// A container is made: its id, its bundle, and the name of its `config.json` in there.
    Make { id: OsString, bundle: PathBuf, config: PathBuf },
    /// A program joins a container: the file that describes it.
    Exec { id: OsString, process: PathBuf },
}

impl<'a> RuntimeArgs<'a> {
    /// Reads the line.
    pub(super) fn of(line: &'a [OsString]) -> Self {
        let at = command(line);
        let behind = line.get(at + 1..).unwrap_or_default();
        let command = match line.get(at).and_then(|word| word.to_str()) {
            Some("create" | "run" | "restore") => Some(Command::Make {
                id: operand(behind).and_then(|at| behind.get(at)).cloned().unwrap_or_default(),
                bundle: value(behind, &["--bundle", "-b"]).unwrap_or_else(|| ".".into()).into(),
                // crun alone lets it have another name.
                config: value(behind, &["--config", "-f"])
                    .unwrap_or_else(|| "config.json".into())
                    .into(),
            }),
            Some("exec") => exec(behind),
            _ => None,
        };
        Self { line, at, command }
    }

    /// The words before the command.
    pub(super) fn globals(&self) -> &'a [OsString] {
        self.line.get(..self.at).unwrap_or_default()
    }

    /// Writes the reason to the log that the engine reads for its error messages, if there is one.
    pub(super) fn log(&self, why: &str) {
        let Some(path) = value(self.globals(), &["--log"]) else { return };
        let json = value(self.globals(), &["--log-format"]).is_some_and(|format| format == "json");
        let line = if json {
            serde_json::json!({"level": "error", "msg": format!("gpucap: {why}")}).to_string()
        } else {
            format!("level=error msg={:?}", format!("gpucap: {why}"))
        };
        // If this fails, stderr has it.
        drop(file::append(Path::new(&path), &line));
    }
}

/// Where the command stands; behind the end if there is none.
fn command(line: &[OsString]) -> usize {
    let mut at = 0;
    while let Some(word) = line.get(at) {
        if GLOBAL.iter().any(|option| is(word, option)) {
            at += 1;
        } else if COMMANDS.iter().any(|command| word == command) {
            break;
        }
        at += 1;
    }
    at
}

/// The last value of an option, in any of its forms.
fn value(args: &[OsString], names: &[&str]) -> Option<OsString> {
    let mut found = None;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            break;
        }
        if names.iter().any(|name| is(word, name)) {
            found = rest.next().cloned();
        } else if let Some(value) = names.iter().find_map(|name| joined(word, name)) {
            found = Some(value.to_owned());
        } else if [GLOBAL, LOCAL].concat().iter().any(|option| is(word, option)) {
            rest.next();
        }
    }
    found
}

/// The arguments behind the container's id are those of the program that is to join it.
fn exec(args: &[OsString]) -> Option<Command> {
    let at = operand(args)?;
    let (options, id) = (args.get(..at)?, args.get(at)?.clone());
    let process = value(options, &["--process", "-p"])?.into();
    Some(Command::Exec { id, process })
}

/// Where the first word stands that is no option and no option's value: the container's id.
fn operand(args: &[OsString]) -> Option<usize> {
    let mut at = 0;
    while args.get(at)?.as_bytes().starts_with(b"-") {
        at += if LOCAL.iter().any(|option| is(&args[at], option)) { 2 } else { 1 };
    }
    Some(at)
}

/// Whether the word is this option; Go's parser takes one dash for two.
fn is(word: &OsStr, option: &str) -> bool {
    word == option || option.strip_prefix('-').is_some_and(|one| one.len() > 2 && word == one)
}

/// The value in `--option=value`.
fn joined<'a>(word: &'a OsStr, option: &str) -> Option<&'a OsStr> {
    let bytes = word.as_bytes();
    let one = option.strip_prefix('-').filter(|one| one.len() > 2);
    let behind = |option: &str| bytes.strip_prefix(option.as_bytes())?.strip_prefix(b"=");
    behind(option).or_else(|| behind(one?)).map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Option<Command> {
        let line: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        RuntimeArgs::of(&line).command
    }

    fn make(bundle: &str, config: &str) -> Option<Command> {
        Some(Command::Make { id: "id".into(), bundle: bundle.into(), config: config.into() })
    }

    #[test]
    fn the_bundle_is_found_in_every_form() {
        const CONTAINERD: &str = "--root /run/r --log /b/log.json --log-format json \
            create --bundle /b --pid-file /b/p id";
        for (line, bundle) in [
            (CONTAINERD, "/b"),
            ("--root=/r --systemd-cgroup create --bundle=/b id", "/b"),
            ("create -b /b id", "/b"),
            ("create -bundle /b id", "/b"),
            ("create -bundle=/b id", "/b"),
            ("create id", "."),
            ("run --detach --bundle /b --keep id", "/b"),
            ("restore --image-path /i --work-path /w --bundle /b -d id", "/b"),
            ("create --bundle /a --bundle /b id", "/b"),
            ("create --pid-file --bundle --bundle /b id", "/b"),
        ] {
            assert_eq!(command(line), make(bundle, "config.json"), "{line}");
        }
    }

    #[test]
    fn a_config_of_another_name_is_found() {
        assert_eq!(command("--debug run -f other.json -b /b id"), make("/b", "other.json"));
        assert_eq!(command("run --config=/x/y.json id"), make(".", "/x/y.json"));
    }

    #[test]
    fn a_command_is_found_behind_anything() {
        for line in [
            "--root create create -b /b id",
            "--log create --log-format json create -b /b id",
            "--cgroup-manager cgroupfs create -b /b id",
            "--of-2030 create -b /b id",
            "--of-2030 value create -b /b id",
            "-x create -b /b id",
        ] {
            assert_eq!(command(line), make("/b", "config.json"), "{line}");
        }
    }

    #[test]
    fn other_commands_are_left_alone() {
        for line in [
            "",
            "--version",
            "start id",
            "--root create start id",
            "delete --force run",
            "kill create 9",
            "state run",
            "exec id sh",
            "features",
            "exec id create -b /b",
            "exec id sh -p /x",
            "exec -t id sh --process=/x",
        ] {
            assert_eq!(command(line), None, "{line}");
        }
    }

    #[test]
    fn exec_with_a_file_names_both() {
        let found = Some(Command::Exec { id: "id".into(), process: "/p.json".into() });
        for line in [
            "--root /r exec --process /p.json --detach --pid-file /x id",
            "exec -p /p.json id",
            "exec --process=/p.json -d id",
            "exec --pid-file exec --process /p.json id",
        ] {
            assert_eq!(command(line), found, "{line}");
        }
    }
}
