//! The planner's inputs: all documents about a container, read from their files.
//!
//! The only place that reads those files. Each read is bounded. A file that is not there says nothing; one that is
//! there and cannot be read is a reason to refuse, or for the planner to judge.

use crate::error::{self, Error, reason};
use crate::sys;
use crate::terminal::output;
use gpucap_plan::{
    Calibration, Card, Container, ContainerIdentity, Node, NodeError, NodeFile, Reason, Sources,
    State,
};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A longer document is refused: 16 MiB, where etcd allows a pod 1.5.
pub(crate) const MAX_BYTES: u64 = 16 << 20;
/// Where the driver says which version of it runs.
const DRIVER: &str = "/proc/driver/nvidia/version";
/// Where the kernel says that ordinary users make no user namespaces, by a 0: all kernels, and Debian's.
const USER_NAMESPACES: [&str; 2] =
    ["/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/unprivileged_userns_clone"];
/// Where the driver says what cards there are, by PCI address.
const CARDS: &str = "/proc/driver/nvidia/gpus";

/// What was found.
#[derive(Debug)]
pub(crate) struct Inputs {
    state: Option<State>,
    container: Container,
    node: Result<Node, NodeError>,
    cards: Vec<Card>,
    allocations: Vec<Vec<u8>>,
    checkpoint: Kept,
    claims: Kept,
    calibration: Option<Result<Vec<u8>, String>>,
    driver: Option<String>,
}

/// A file that another program of the node keeps: `None` if no setting names it, or if there is none.
type Kept = Option<Result<Option<Vec<u8>>, String>>;

impl Inputs {
    /// Collects the inputs for the container of this bundle; `state` is the runtime's, if there is one. `config` is
    /// the path of the node's configuration: [`Node::PATH`], except in tests and with an option.
    pub(crate) fn of_bundle(
        config: &Path,
        bundle: &Path,
        state: Option<State>,
    ) -> Result<Self, Reason> {
        let path = bundle.join("config.json");
        let bytes = read(&path).map_err(|why| unreadable("config.json", &path, &why))?;
        Self::of(config, Container::parse(&bytes)?, state)
    }

    /// Collects the inputs for a container whose `config.json` was read already.
    pub(crate) fn of(
        config: &Path,
        container: Container,
        state: Option<State>,
    ) -> Result<Self, Reason> {
        let node = node(config);
        let used = node.clone().unwrap_or_default();
        let annotations =
            state.iter().map(|state| &state.annotations).chain([&container.annotations]);
        let mut allocations = Vec::new();
        for own in annotations.flat_map(ContainerIdentity::all_of) {
            let path = Path::new(&used.state_dir).join(own.allocation());
            let found = trusted(&path).map_err(|why| unreadable("the allocation", &path, &why))?;
            allocations.extend(found.filter(|found| !allocations.contains(found)));
        }
        // For the source `kubelet` alone, which only lowers, the owner of the file does not matter.
        let is_grant = used.time_slicing;
        let checkpoint = kept(used.kubelet_checkpoint.as_deref(), is_grant);
        let claims = kept(used.dra_checkpoint.as_deref(), true);
        let calibration = calibration(&used);
        // Only of use beside the other.
        let driver = calibration.as_ref().and_then(|_| driver());
        let cards = cards();
        Ok(Self {
            state,
            container,
            node,
            cards,
            allocations,
            checkpoint,
            claims,
            calibration,
            driver,
        })
    }

    /// The container, as its `config.json` describes it.
    pub(crate) const fn container(&self) -> &Container {
        &self.container
    }

    /// The node's configuration; where it cannot be used, the default: no container with a limit or a GPU is started then.
    pub(crate) fn node(&self) -> Node {
        self.node.clone().unwrap_or_default()
    }

    /// In the form that the planner takes.
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources {
            state: self.state.as_ref(),
            container: &self.container,
            node: self.node.as_ref(),
            cards: &self.cards,
            allocations: &self.allocations,
            checkpoint: node_file(&self.checkpoint),
            claims: node_file(&self.claims),
            calibration: self.calibration.as_ref().map(|read| match read {
                Ok(bytes) => Ok(&bytes[..]),
                Err(why) => Err(&why[..]),
            }),
            driver: self.driver.as_deref(),
            user_namespaces: user_namespaces(),
        }
    }
}

/// Whether ordinary users may make user namespaces; they may, where the kernel does not say.
fn user_namespaces() -> bool {
    let forbids = |path: &&str| fs::read_to_string(path).is_ok_and(|text| text.trim() == "0");
    !USER_NAMESPACES.iter().any(forbids)
}

/// The node's configuration, for a command that only looks: one that cannot be used is said, and the defaults hold.
///
/// # Errors
/// The file is not the default one, so the user has named it, and there is none.
pub(crate) fn node_or_default(config: &Path) -> error::Result<Node> {
    if config != Path::new(Node::PATH)
        && let Err(why) = fs::metadata(config)
        && why.kind() == io::ErrorKind::NotFound
    {
        return Err(Error::File { path: config.to_owned(), why });
    }
    Ok(node(config).unwrap_or_else(|why| {
        output::notice(format_args!("{why}; the defaults are taken"));
        Node::default()
    }))
}

/// The node's configuration, as its administrator wrote it or by default. A file of another path was named on purpose,
/// and its policies are not known if it is not there.
pub(crate) fn node(path: &Path) -> Result<Node, NodeError> {
    let file = path.display().to_string();
    match if_there(path) {
        Ok(Some(bytes)) => Node::parse(&file, &bytes),
        Ok(None) if path == Path::new(Node::PATH) => Ok(Node::default()),
        Ok(None) => Err(NodeError {
            why: "there is no such file, and --config names it".into(),
            next_runtime: Some(Node::default().next_runtime),
            file,
        }),
        Err(why) => Err(NodeError::unreadable(&file, why)),
    }
}

/// The cards of this machine in the order of nvidia-smi, which is that of their PCI addresses.
pub(crate) fn cards() -> Vec<Card> {
    let Ok(entries) = fs::read_dir(CARDS) else { return vec![] };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let card = |path: &Path| {
        let text = read(&path.join("information")).ok()?;
        Card::parse(&String::from_utf8_lossy(&text))
    };
    // A card that cannot be read would move all behind it: then no index is known.
    paths.iter().map(|path| card(path)).collect::<Option<_>>().unwrap_or_default()
}

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    contents(File::open(path)?)
}

fn contents(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("longer than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

/// The version of the driver that runs, if there is one that says it.
pub(crate) fn driver() -> Option<String> {
    let text = read(Path::new(DRIVER)).ok()?;
    gpucap_plan::running_driver(&String::from_utf8_lossy(&text)).map(str::to_owned)
}

/// The path of the calibration's result.
pub(crate) fn calibration_path(node: &Node) -> PathBuf {
    Path::new(&node.state_dir).join(Calibration::FILE)
}

/// What was measured of the cards, if it was; or why that cannot be used.
pub(crate) fn calibration(node: &Node) -> Option<Result<Vec<u8>, String>> {
    let path = calibration_path(node);
    match trusted(&path) {
        Ok(bytes) => bytes.map(Ok),
        Err(why) => Some(Err(format!("{}: {}", path.display(), reason(&why)))),
    }
}

/// Reads a file that another program of the node keeps; only root may have written one that is a `grant`.
fn kept(path: Option<&str>, is_grant: bool) -> Kept {
    let read = if is_grant { trusted } else { if_there };
    Some(read(Path::new(path?)).map_err(|why| reason(&why)))
}

/// In the form that the planner takes.
fn node_file(kept: &Kept) -> NodeFile<'_> {
    match kept {
        None => NodeFile::Off,
        Some(Ok(None)) => NodeFile::Missing,
        Some(Ok(Some(bytes))) => NodeFile::Read(bytes),
        Some(Err(why)) => NodeFile::Unusable(why),
    }
}

/// Reads a file that the node's administrator controls: no other user may be able to write it.
fn trusted(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = opened(path)? else { return Ok(None) };
    // Of the open file: the path may lead to another one in the mean time.
    let found = file.metadata()?;
    if found.mode() & 0o022 != 0 || ![0, sys::uid()].contains(&found.uid()) {
        return Err(io::Error::other("others than root can write it"));
    }
    contents(file).map(Some)
}

/// The bytes of a file; none if there is no file.
fn if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    opened(path)?.map(contents).transpose()
}

/// Opens a file to be read; none if there is no file. Behind a link that leads nowhere is one that cannot be read.
fn opened(path: &Path) -> io::Result<Option<File>> {
    let is_missing = |why: &io::Error| why.kind() == io::ErrorKind::NotFound;
    let leads_nowhere = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
            && fs::metadata(path).is_err_and(|why| is_missing(&why))
    };
    match File::open(path) {
        Err(why) if is_missing(&why) => match File::open(path) {
            // Links that are replaced (a ConfigMap's) are there when one looks again.
            Err(why) if is_missing(&why) && path.ancestors().any(leads_nowhere) => {
                Err(io::Error::other("a link that leads nowhere"))
            }
            Err(why) if is_missing(&why) => Ok(None),
            other => other.map(Some),
        },
        other => other.map(Some),
    }
}

fn unreadable(what: &'static str, path: &Path, why: &io::Error) -> Reason {
    Reason::Document { what, why: format!("{}: {}", path.display(), reason(why)) }
}
