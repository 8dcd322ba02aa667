//! `gpucap configure ENGINE`: has an engine call the hook for each container.
//!
//! containerd uses a runtime handler whose base specification names the hook; podman and CRI-O use a file in a
//! directory of hooks; Docker uses an additional runtime. Existing configuration stays unchanged to the byte;
//! `--undo` removes what was added and nothing else. A file made by another program is neither overwritten nor
//! removed. The engine is not restarted.

mod change;
mod containerd;
mod directory;
mod docker;
mod hooks_dir;
mod json;
mod lines;
mod options;
mod toml;

use crate::error::{Error, Result, reason};
use crate::exit::Exit;
use crate::inject::hooks::{self, Hooks};
use crate::node::inputs;
use crate::terminal::output;
use change::{Change, wrong};
use options::Engine;
pub(crate) use options::Options;
use std::path::Path;

/// Changes the files, or shows how it would.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let options = &options.clone().absolute().map_err(|why| Error::Configure(reason(&why)))?;
    let program = options.program.clone().map_or_else(hooks::program, Ok);
    let program = program.map_err(|why| Error::Configure(reason(&why)))?;
    // What is taken out may name what is no longer there.
    if !options.undo {
        hooks::check(&program, &options.config).map_err(Error::Configure)?;
    }
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
        output::print(&change.shown(options.verbose))?;
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
    match inputs::node_or_default(config).unwrap_or_default().kubelet_checkpoint {
        Some(_) => "",
        None => {
            "On a node of Kubernetes, have the settings name `kubelet_checkpoint`: CRI-O lets a pod overrule \
             the variables of a device plugin.\n"
        }
    }
}
