//! `gpucap configure ENGINE`: has an engine call the hook for each container.
//!
//! containerd uses a runtime handler whose base specification names the hook; podman and CRI-O use a file in a
//! directory of hooks; Docker uses an additional runtime. Existing configuration stays unchanged to the byte;
//! `--undo` removes what was added and nothing else. A file made by another program is neither overwritten nor
//! removed. The engine is not restarted.

mod containerd;
mod directory;
mod docker;
mod hooks_dir;
mod json;
mod lines;

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::inject::hooks::{self, Hooks};
use crate::node::inputs;
use crate::node::replace::{self, Survives};
use crate::terminal::output;
use gpucap_plan::Node;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const AFTER: &str = "\
An engine reads its configuration when it starts: containerd is to be restarted, Docker to be reloaded; podman and
CRI-O look for themselves. Doing it twice changes nothing more.

Exit status: 0 if it is as asked, 1 if a file cannot be changed; one line says why.

  gpucap configure containerd --dry-run
  gpucap configure containerd && systemctl restart containerd";

/// The words behind `gpucap configure`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Options {
    /// The engine
    engine: Engine,
    /// Show what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take out what was put in
    #[arg(long)]
    undo: bool,
    /// The engine's file, if it is in another place: config.toml, daemon.json, or the file in the directory of hooks
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// containerd: the runtime handler; one that is there keeps all else that it says
    #[arg(long, value_name = "NAME", default_value = containerd::HANDLER)]
    handler: String,
    /// containerd: where the base specification is written
    #[arg(long, value_name = "FILE", default_value = containerd::SPECIFICATION)]
    specification: PathBuf,
    /// containerd: also switch NRI on, so that `gpucap nri` is asked
    #[arg(long)]
    nri: bool,
    /// The node's configuration that the hook is to read
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
    /// The command as the engine is to call it [default: this one, by the link `current` of an installation]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// A supported engine.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Engine {
    Containerd,
    Docker,
    Podman,
    Crio,
}

/// A file as it is, and as it is to be; without text, it is not there.
#[derive(Debug, Eq, PartialEq)]
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
}

/// Changes the files, or shows how it would.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let program = options.program.clone().map_or_else(hooks::program, Ok);
    let program = program.map_err(|why| Error::Configure(crate::error::reason(&why)))?;
    let hooks = Hooks { program: &program, config: &options.config };
    let (changes, advice) = match options.engine {
        Engine::Containerd => containerd::changes(options, hooks)?,
        Engine::Docker => (vec![docker::change(options, hooks)?], docker::advice(options).into()),
        // CRI-O watches the directory.
        Engine::Podman | Engine::Crio => {
            (vec![directory::change(options, hooks)?], directory::advice(options).into())
        }
    };
    let changes: Vec<Change> = changes.into_iter().filter(|it| it.before != it.after).collect();
    if changes.is_empty() {
        output::print("Nothing to change.\n")?;
        return Ok(Exit::OK);
    }
    for change in &changes {
        output::print(&change.shown())?;
        if !options.dry_run {
            change.make().map_err(|why| wrong(&change.path, &why))?;
        }
    }
    output::print(&match options.dry_run {
        true => "Nothing was changed: that was a dry run.\n".to_owned(),
        false if options.undo => format!("Done; {advice}.\n"),
        false => {
            let program = program.display();
            let more =
                if options.engine == Engine::Crio { more_for_crio(&options.config) } else { "" };
            format!("Done; {advice}. It calls {program}: leave that there until --undo.\n{more}")
        }
    })?;
    Ok(Exit::OK)
}

/// What CRI-O hands on of a variable that a device plugin and the pod both set is the pod's.
fn more_for_crio(config: &Path) -> &'static str {
    match inputs::node_or_default(config).kubelet_checkpoint {
        Some(_) => "",
        None => {
            "On a node of Kubernetes, have the settings name `kubelet_checkpoint`: CRI-O lets a pod overrule \
             the variables of a device plugin.\n"
        }
    }
}

impl Change {
    /// Of a file that is ours alone and is to become this.
    fn to_ours(path: &Path, after: String) -> Result<Self> {
        let before = read(path)?;
        match &before {
            Some(text) if !text.trim().is_empty() && !is_ours(text) => Err(Error::Configure(
                format!("{}: not made by gpucap; move it away, or name another", path.display()),
            )),
            _ => Ok(Self { path: path.to_owned(), before, after: Some(after) }),
        }
    }

    /// Of a file that is to go, if it is ours.
    fn without_ours(path: &Path) -> Result<Self> {
        let before = read(path)?;
        let after = before.clone().filter(|text| !is_ours(text));
        Ok(Self { path: path.to_owned(), before, after })
    }

    /// The lines that go and those that come.
    fn shown(&self) -> String {
        let lines = |text: &Option<String>| -> Vec<String> {
            text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
        };
        let (before, after) = (lines(&self.before), lines(&self.after));
        let same = |pair: &(&String, &String)| pair.0 == pair.1;
        let head = before.iter().zip(&after).take_while(same).count();
        let rest = (&before[head..], &after[head..]);
        let tail = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(same).count();
        let gone = rest.0[..rest.0.len() - tail].iter().map(|line| format!("-{line}\n"));
        let come = rest.1[..rest.1.len() - tail].iter().map(|line| format!("+{line}\n"));
        format!("{}\n{}", self.path.display(), gone.chain(come).collect::<String>())
    }

    /// Changes the file, at once and whole; its owner and mode stay.
    fn make(&self) -> io::Result<()> {
        let Some(text) = &self.after else { return replace::remove(&self.path) };
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        replace::replace(&self.path, text.as_bytes(), Survives::Machine)
    }
}

/// A file that cannot be read or changed.
fn wrong(path: &Path, why: &io::Error) -> Error {
    let root = if why.kind() == io::ErrorKind::PermissionDenied { "; run it as root" } else { "" };
    Error::Configure(format!("{}: {}{root}", path.display(), crate::error::reason(why)))
}

/// Whether the document of a file has our hook.
fn is_ours(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|document| hooks::is_in(&document))
}

/// The text of a file; none if there is no file.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(wrong(path, &why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_shown_and_nothing_else() {
        let text = |text: &str| Some(text.to_owned());
        let change = |before, after| Change { path: "/f".into(), before, after }.shown();
        assert_eq!(change(text("a\nb\nc\n"), text("a\nx\ny\nc\n")), "/f\n-b\n+x\n+y\n");
        assert_eq!(change(None, text("a\n")), "/f\n+a\n");
        assert_eq!(change(text("a\n"), None), "/f\n-a\n");
        assert_eq!(change(text("a\na\n"), text("a\na\na\n")), "/f\n+a\n");
    }
}
