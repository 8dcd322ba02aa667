//! The prepared claims on disk, so that a restart of this driver changes nothing.
//!
//! Written before the CDI files and removed after them: each file of a claim that is there has a claim here, or is
//! left from a driver that was killed and is removed at the next start. A file of another version, or one that cannot
//! be read, ends the driver: what it would forget, containers still have.

use crate::claim::{Share, card};
use crate::error::{Error, Result};
use crate::files;
use gpucap_core::uuid::DeviceName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version that is written and read.
const VERSION: u32 = 1;

/// A prepared claim.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) shares: Vec<Share>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    claims: BTreeMap<String, Claim>,
}

/// All prepared claims, by UID.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    path: PathBuf,
    claims: BTreeMap<String, Claim>,
}

impl Checkpoint {
    /// Reads it; a missing file has no claims.
    ///
    /// # Errors
    /// It cannot be read, or is not of this version.
    pub(crate) fn open(path: PathBuf) -> Result<Self> {
        let wrong = |why: String| Error::Document { path: path.clone(), why };
        let Some(text) = files::read(&path)? else {
            return Ok(Self { path, claims: BTreeMap::new() });
        };
        let read: Document = serde_json::from_str(&text).map_err(|why| wrong(why.to_string()))?;
        if read.version != VERSION {
            return Err(wrong(format!("version {}: this one knows {VERSION}", read.version)));
        }
        Ok(Self { path, claims: read.claims })
    }

    /// The claim with this UID.
    pub(crate) fn get(&self, uid: &str) -> Option<&Claim> {
        self.claims.get(uid)
    }

    /// All of them, by UID.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Claim)> {
        self.claims.iter().map(|(uid, claim)| (uid.as_str(), claim))
    }

    /// The cards that they have.
    pub(crate) fn cards(&self) -> Vec<DeviceName> {
        let shares = self.claims.values().flat_map(|claim| &claim.shares);
        shares.filter_map(|share| card(&share.device)).collect()
    }

    /// Keeps a claim, on disk first.
    ///
    /// # Errors
    /// It cannot be written, and is not kept.
    pub(crate) fn insert(&mut self, uid: &str, claim: Claim) -> Result {
        if self.claims.get(uid) == Some(&claim) {
            return Ok(());
        }
        let mut claims = self.claims.clone();
        claims.insert(uid.to_owned(), claim);
        self.write(claims)
    }

    /// Forgets a claim, on disk first.
    ///
    /// # Errors
    /// It cannot be written, and the claim is kept.
    pub(crate) fn remove(&mut self, uid: &str) -> Result {
        if !self.claims.contains_key(uid) {
            return Ok(());
        }
        let mut claims = self.claims.clone();
        claims.remove(uid);
        self.write(claims)
    }

    fn write(&mut self, claims: BTreeMap<String, Claim>) -> Result {
        let document = Document { version: VERSION, claims };
        let text = serde_json::to_string_pretty(&document);
        let wrong = |why: serde_json::Error| Error::Document {
            path: self.path.clone(),
            why: why.to_string(),
        };
        files::write(&self.path, &text.map_err(wrong)?)?;
        self.claims = document.claims;
        Ok(())
    }
}
