//! The CDI files of prepared claims: `gpucap-claim-<uid>.json` in the directory that engines read.
//!
//! One file holds all devices of a claim and ends with it. A device is named after the claim's UID, the card and the
//! share, so no other slice ever has its name. Files that begin otherwise are of others and never touched.

use crate::checkpoint::Claim;
use crate::claim::Share;
use crate::error::{Error, Result};
use crate::files;
use gpucap_plan::Slice;
use gpucap_plan::cdi::{self, KIND};
use gpucap_plan::entry::Hooks;
use std::fs;
use std::path::PathBuf;

/// How the names of our files begin.
const PREFIX: &str = "gpucap-claim-";
/// How they end, as engines want it.
const ENDING: &str = ".json";
/// A file that is written and removed, to see whether it can be: engines do not read it.
const PROBE: &str = "gpucap-claim.probe";

/// The directory, and the hook that the devices bring.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// The command, on the node.
    pub(crate) command: PathBuf,
    /// The node's configuration that the hook reads.
    pub(crate) config: PathBuf,
}

impl Directory {
    /// Writes the file of a claim.
    ///
    /// # Errors
    /// It cannot be written, or a name in it is none for CDI.
    pub(crate) fn write(&self, uid: &str, claim: &Claim) -> Result {
        let own = format!("{}/{}", claim.namespace, claim.name);
        let slice = |share: &Share| share.slice(device(uid, share), &own);
        let slices: Option<Vec<Slice>> = claim.shares.iter().map(slice).collect();
        let slices = slices.filter(|slices| slices.iter().all(|it| cdi::is_name(&it.id)));
        let slices =
            slices.ok_or_else(|| Error::claim(&own, "has names that CDI does not allow"))?;
        let hooks = Hooks { program: &self.command, config: &self.config };
        let text = format!("{:#}\n", cdi::slices(&slices, hooks));
        let path = self.file(uid);
        // An engine that reads it at this moment has no reason to read it anew.
        if files::read(&path).ok().flatten().as_ref() == Some(&text) {
            return Ok(());
        }
        files::write(&path, &text)
    }

    /// Removes the file of a claim, if there is one.
    ///
    /// # Errors
    /// It is there and cannot be removed.
    pub(crate) fn remove(&self, uid: &str) -> Result {
        files::remove(&self.file(uid))
    }

    /// Removes the files of claims other than these.
    ///
    /// # Errors
    /// One of them cannot be removed.
    pub(crate) fn keep_only(&self, is_kept: impl Fn(&str) -> bool) -> Result {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(Error::file(&self.path)(why)),
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let uid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let uid = uid.and_then(|name| name.split('.').next());
            if uid.is_some_and(|uid| !is_kept(uid)) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Looks whether files can be written there.
    ///
    /// # Errors
    /// They cannot.
    pub(crate) fn check(&self) -> Result {
        let probe = self.path.join(PROBE);
        files::write(&probe, "")?;
        files::remove(&probe)
    }

    fn file(&self, uid: &str) -> PathBuf {
        self.path.join(format!("{PREFIX}{uid}{ENDING}"))
    }
}

/// The name of the CDI device of a share.
pub(crate) fn device(uid: &str, share: &Share) -> String {
    let ending = share.share_id.iter().map(|id| format!("-{id}")).collect::<String>();
    format!("{uid}-{}{ending}", share.device)
}

/// The id by which an engine is asked for it.
pub(crate) fn id(uid: &str, share: &Share) -> String {
    format!("{KIND}={}", device(uid, share))
}
