//! A node on which several containers run: their hooks see what the others have mounted, and the machine does not.

use crate::runtime::Runtime;
use gpucap_tests::{Driver, Output, Result, Run, Scratch, World};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// A mount namespace that ends with the value, and a place for what hooks keep.
#[derive(Debug)]
pub(crate) struct Node {
    scratch: Scratch,
    keeper: Child,
}

impl Node {
    /// One on which this runtime starts containers.
    ///
    /// # Errors
    /// If the namespace cannot be had.
    pub(crate) fn new(runtime: Runtime) -> Result<Arc<Self>> {
        runtime.needed()?;
        let script = [&runtime.prepare()?[..], &["echo".into(), "exec cat".into()]].concat();
        let mut keeper = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-ec", &script.join("\n")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ready = keeper.stdout.as_mut().map(|it| it.read_exact(&mut [0])).transpose();
        let node = Self { scratch: Scratch::new()?, keeper };
        ready?;
        Ok(Arc::new(node))
    }

    /// A file of it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The same file with what is mounted on the node.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let path = path.strip_prefix("/").unwrap_or(&path);
        Path::new("/proc").join(self.keeper.id().to_string()).join("root").join(path)
    }

    /// Runs these words there to their end.
    ///
    /// # Errors
    /// If they do not end in time.
    pub(crate) fn output(&self, words: &[&str]) -> Result<Output> {
        let run = World::bare(Driver::Absent).run(Path::new(words[0]))?;
        let run = words[1..].iter().fold(run, Run::arg);
        run.through(&self.entering().each_ref().map(OsStr::new)).output()
    }

    /// The words by which a program gets there.
    pub(crate) fn entering(&self) -> [String; 2] {
        ["nsenter".into(), format!("--mount=/proc/{}/ns/mnt", self.keeper.id())]
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Its mounts end with the last process in it.
        drop(self.keeper.kill().and_then(|()| self.keeper.wait()));
    }
}
