//! A file that another program of the node keeps, and that a setting of the node names: a checkpoint.
//!
//! Such a file is root's and states what the kubelet or a driver has assigned. A source that rests on it fails closed:
//! if the file cannot be used, no container with a GPU starts; if there is none, no container that was assigned one.
//! The program that writes the file has to start before it, so a container that sees every GPU of the node, or is
//! privileged, is not held up by a missing file: the plugins themselves run so.

use serde_json::Value;

use crate::document::container::Container;
use crate::reason::Reason;

/// What is known of such a file.
#[derive(Clone, Copy, Debug, Default)]
pub enum NodeFile<'a> {
    /// No setting names it.
    #[default]
    Off,
    /// There is none.
    Missing,
    /// It is there and cannot be used, for this reason.
    Unusable(&'a str),
    /// Its bytes.
    Read(&'a [u8]),
}

impl<'a> NodeFile<'a> {
    /// The bytes, if there are any.
    pub(crate) const fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Read(bytes) = self { Some(bytes) } else { None }
    }

    /// The file as JSON, in which `understand` finds the part that this version knows. `None` if the file has nothing
    /// to say about this container. `what` and `path` name it in an error.
    ///
    /// # Errors
    /// It cannot be used, and the container has a GPU.
    pub(crate) fn understood<T>(
        self,
        (what, path): (&'static str, Option<&str>),
        container: &Container,
        understand: impl FnOnce(Value) -> Result<T, String>,
    ) -> Result<Option<T>, Reason> {
        let (is_held_up, why) = match self {
            Self::Off => return Ok(None),
            Self::Missing => (container.is_assigned_gpu, "not there".to_owned()),
            Self::Unusable(why) => (container.gpu.is_some(), why.to_owned()),
            Self::Read(bytes) => {
                let value = serde_json::from_slice(bytes).map_err(|why| why.to_string());
                match value.and_then(understand) {
                    Ok(found) => return Ok(Some(found)),
                    Err(why) => (container.gpu.is_some(), why),
                }
            }
        };
        let why = format!("{}: {why}", path.unwrap_or_default());
        if is_held_up { Err(Reason::document(what, why)) } else { Ok(None) }
    }
}
