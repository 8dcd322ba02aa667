//! The two Unix sockets: made before anything is answered, and removed at the end.

use crate::message::DeviceHealths;
use crate::plugin::Plugin;
use crate::service::Service;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

/// Why the kubelet cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket cannot be made.
    #[error("{}: {why}", path.display())]
    Socket {
        /// Which one.
        path: PathBuf,
        /// The fault.
        why: io::Error,
    },
    /// A socket cannot be served any more.
    #[error("{}: {why}", path.display())]
    Serve {
        /// Which one.
        path: PathBuf,
        /// The fault.
        why: tonic::transport::Error,
    },
}

/// The two sockets.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// The one that the kubelet looks for.
    registration: PathBuf,
    /// The driver's directory, and the socket in it that the kubelet calls.
    directory: PathBuf,
    plugin: PathBuf,
}

impl Sockets {
    /// Those of the driver with this name, in the directory of the kubelet.
    #[must_use]
    pub fn new(kubelet: &Path, driver: &str) -> Self {
        // The kubelet calls it by its path: gRPC in Go makes of it the name of a host, with `/` as `%2F`. HTTP/2 allows
        // that before an `@` alone, and the server here refuses a call to another name.
        let registration = kubelet.join(format!("plugins_registry/{driver}@reg.sock"));
        let directory = kubelet.join("plugins").join(driver);
        Self { registration, plugin: directory.join("dra.sock"), directory }
    }

    /// The driver's directory, in which it may have files of its own.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Answers the kubelet, until the future is dropped. The kubelet shows the latest of `healths` in the status of pods.
    ///
    /// # Errors
    /// A socket cannot be made or served.
    pub async fn serve<P: Plugin>(
        &self,
        plugin: Arc<P>,
        healths: watch::Receiver<DeviceHealths>,
    ) -> Result<(), Error> {
        let calls = listen(&self.plugin)?;
        // Last: once it is there, the kubelet calls the other one.
        let registrations = listen(&self.registration)?;
        let endpoint = self.plugin.display().to_string();
        let service = Service::new(plugin, endpoint, healths);
        let serve = async |listener, path: &Path| {
            let incoming = UnixListenerStream::new(listener);
            let served = Server::builder().serve_with_incoming(service.clone(), incoming).await;
            served.map_err(|why| Error::Serve { path: path.to_owned(), why })
        };
        let (one, other) =
            tokio::join!(serve(calls, &self.plugin), serve(registrations, &self.registration));
        one.and(other)
    }

    /// Removes the sockets: the kubelet forgets the driver until it is there again.
    pub fn remove(&self) {
        for path in [&self.registration, &self.plugin] {
            drop(fs::remove_file(path));
            drop(fs::remove_file(hidden(path)));
        }
    }
}

/// The name of a socket until it listens.
fn hidden(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().display().to_string();
    path.with_file_name(format!(".{name}"))
}

/// A socket at this path, in the place of one that an earlier process left.
///
/// The kubelet may call it as soon as it is in the directory, and a socket refuses calls between `bind` and `listen`: it
/// gets its name when it listens. The kubelet ignores names that start with a dot.
fn listen(path: &Path) -> Result<UnixListener, Error> {
    let make = || {
        let hidden = hidden(path);
        fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("/")))?;
        match fs::remove_file(&hidden) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let listener = UnixListener::bind(&hidden)?;
        fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
        fs::rename(&hidden, path)?;
        Ok(listener)
    };
    make().map_err(|why| Error::Socket { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::listen;
    use std::error::Error;
    use std::os::unix::net::UnixStream;
    use std::{fs, io, thread};

    /// Calls the socket from when it is there, as often as it takes to meet the moment in which it is made.
    #[test]
    fn a_socket_that_is_there_answers() -> Result<(), Box<dyn Error>> {
        let name = format!("gpucap-sockets-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        drop(fs::remove_dir_all(&directory)); // of an earlier process of this number
        let _entered = runtime.enter();
        for round in 0..2000 {
            let path = directory.join(format!("{round}.sock"));
            let called = path.clone();
            let caller = thread::spawn(move || {
                loop {
                    match UnixStream::connect(&called) {
                        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                        other => return other.map(drop),
                    }
                }
            });
            let made = listen(&path)?;
            caller.join().map_err(|_| "the caller panicked")??;
            drop(made);
        }
        assert_eq!(fs::read_dir(&directory)?.count(), 2000, "something else is left there");
        Ok(fs::remove_dir_all(&directory)?)
    }
}
