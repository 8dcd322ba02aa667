//! `gpucap cdi generate`: a CDI device that is a slice, for DRA drivers, device plugins and `--device`.
//!
//! The device stands beside the one of the card: `--device nvidia.com/gpu=0 --device gpucap/slice=NAME`. It brings the
//! variables that say the limit and the hook that enforces it; engines set a device's variables over the user's. The hook
//! has them in its words, too, so that the devices of one container add up. One file holds one device, so that a slice
//! ends by the end of its file.

use crate::command::gpu::Gpu;
use crate::command::limit_request::{LendingOptions, LimitOptions, LimitRequest};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::inject::hooks::{self, Hooks};
use crate::node::inputs;
use crate::terminal::output;
use gpucap_core::config::Excerpt;
use gpucap_core::limits::file::Key;
use gpucap_plan::{Card, Node, cdi};
use std::path::{self, Path, PathBuf};
use std::{fs, io};

const AFTER: &str = "\
Engines read /etc/cdi and /var/run/cdi: --output /var/run/cdi for slices that end with the machine.

Exit status: 0 if it is described; 1 if a name is invalid or a file cannot be written, 125 if a limit is invalid.

Examples:
  gpucap cdi generate job7 --mem 4Gi --cores 30 --gpu 0 --output /var/run/cdi
  docker run --device nvidia.com/gpu=0 --device gpucap/slice=job7 ...";

/// The words behind `gpucap cdi`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Describe a slice as a CDI device
    Generate(Generate),
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
struct Generate {
    /// The name of the device
    name: String,
    /// Memory of each GPU: 4Gi, 4096Mi, 25%, ...
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    mem: Option<String>,
    /// Share of each GPU's time in percent, 1 to 100
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    cores: Option<String>,
    /// Time and memory as a MIG profile has them: 1g.5gb, 3g.20gb, 2g, ...
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    lending: LendingOptions,
    /// Limit this GPU only (index on this machine or UUID; may be repeated); without it, each GPU of the container
    #[arg(long, value_name = "GPU")]
    gpu: Vec<Gpu>,
    /// The directory that gets the file; without it, it is printed
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// The node's configuration that the hook is to read
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Makes the device.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let Command::Generate(generate) = &options.command;
    let Generate { name, mem, cores, profile, lending, gpu, output, config } = generate;
    if !cdi::is_name(name) {
        return Err(Error::DeviceName(Excerpt::new(name.as_bytes())));
    }
    let gpus = names(gpu, &inputs::cards()).map_err(Error::Cdi)?;
    let request = LimitRequest::parse(lending.join(LimitOptions {
        mem: mem.as_deref(),
        cores: cores.as_deref(),
        profile: profile.as_deref(),
        gpus: &gpus,
        ..LimitOptions::default()
    }))?;
    request.doubts().for_each(output::notice);
    let program = hooks::program();
    let program = program.map_err(|why| Error::File { path: "/proc/self/exe".into(), why })?;
    // The hook runs in a directory of the engine's.
    let config = path::absolute(config).map_err(|why| Error::File { path: config.clone(), why })?;
    hooks::check(&program, &config).map_err(Error::Cdi)?;
    let hooks = Hooks { program: &program, config: &config };
    let text = format!("{:#}\n", cdi::file(name, &request.variables(), hooks));
    match output {
        None => output::print(&text)?,
        Some(directory) => {
            let path = directory.join(format!("gpucap-slice-{name}.json"));
            write(&path, &text).map_err(|why| Error::File { path, why })?;
        }
    }
    Ok(Exit::OK)
}

/// Their names: in a container an index is another GPU.
fn names(gpus: &[Gpu], cards: &[Card]) -> std::result::Result<Vec<String>, String> {
    let name = |gpu: &Gpu| match gpu.key(cards)? {
        Key::Name(name) => Ok(name.to_string()),
        Key::Every => Err("--gpu *: give no --gpu for each GPU of the container".into()),
    };
    gpus.iter().map(name).collect()
}

/// In one step: an engine that reads at the same time finds the whole file or none.
fn write(path: &Path, text: &str) -> io::Result<()> {
    // Engines read what ends in .json or .yaml.
    let new = path.with_extension("new");
    if let Some(directory) = path.parent() {
        // The directory below /run has no owner after a restart of the machine.
        fs::create_dir_all(directory)?;
    }
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        drop(fs::remove_file(&new));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_written_as_the_uuid_of_this_machine() {
        let name = "GPU-10000000-0000-0000-0000-000000000000";
        let cards = [Card {
            name: name.parse().expect("a name"),
            minor: None,
            slices: gpucap_core::config::Slices::default(),
            model: String::new(),
        }];
        let names = |text: &str| names(&[text.parse().expect("a GPU")], &cards);
        assert_eq!(names("0"), Ok(vec![name.to_owned()]));
        assert_eq!(names(&name.replace('1', "2")), Ok(vec![name.replace('1', "2")]));
        assert!(names("1").is_err_and(|why| why.contains("has 1 GPUs")));
        assert!(names("*").is_err());
    }
}
