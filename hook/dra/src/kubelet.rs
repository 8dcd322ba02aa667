//! The kubelet's side: two Unix sockets, on which it registers the driver and calls it.
//!
//! The kubelet finds the socket in its registry, asks who is there, and then calls the other one. It does so again
//! after each restart of its own, so nothing is remembered of a connection. A socket is only root's. Which message goes
//! to which function is [`service`]'s to know.

mod service;

use crate::error::{Error, Result};
use service::Service;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

pub(crate) use service::Plugin;

/// The two sockets.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    /// The one that the kubelet looks for.
    pub(crate) registration: PathBuf,
    /// The one that it calls.
    pub(crate) plugin: PathBuf,
}

impl Sockets {
    /// Answers the kubelet until the program ends.
    ///
    /// # Errors
    /// A socket cannot be made.
    pub(crate) async fn serve(&self, plugin: Plugin) -> Result {
        let calls = listen(&self.plugin)?;
        // Last: once it is there, the kubelet calls the other one.
        let registrations = listen(&self.registration)?;
        let serve = async |listener, service: Service| {
            let incoming = UnixListenerStream::new(listener);
            Server::builder().serve_with_incoming(service, incoming).await
        };
        let service = Service::new(plugin);
        let (one, other) =
            tokio::join!(serve(calls, service.clone()), serve(registrations, service));
        let why = |why: tonic::transport::Error| Error::Document {
            path: self.plugin.clone(),
            why: why.to_string(),
        };
        one.and(other).map_err(why)
    }

    /// Removes the sockets: the kubelet forgets the driver until it is there again.
    pub(crate) fn remove(&self) {
        for path in [&self.registration, &self.plugin] {
            drop(fs::remove_file(path));
        }
    }
}

/// A socket at this path, in the place of one that an earlier driver left.
fn listen(path: &Path) -> Result<UnixListener> {
    let make = || {
        fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("/")))?;
        match fs::remove_file(path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    make().map_err(Error::file(path))
}
