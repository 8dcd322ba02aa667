//! A kubelet of our own: it finds the driver's socket in its registry, asks who is there, and calls it.
//!
//! It speaks gRPC over the real sockets. Each [`Kubelet`] is one life of a kubelet: a new one knows nothing of the one
//! before. The messages are [`messages`](super::messages).

use super::messages::{
    AllPrepared, AllUnprepared, Claim, Healths, Nothing, PluginInfo, Prepared, Registered, Request,
};
use gpucap_tests::{Result, Stop};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tonic::Streaming;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// What takes longer hangs.
const LONGEST: Duration = Duration::from_secs(60);

/// A kubelet that has registered the driver.
pub(crate) struct Kubelet {
    runtime: Runtime,
    channel: Channel,
    info: PluginInfo,
}

/// A stream of what the driver says of its devices.
pub(crate) struct Watch<'a> {
    runtime: &'a Runtime,
    stream: Streaming<Healths>,
}

impl Kubelet {
    /// Waits for a socket in the registry below this directory, and registers the driver behind it.
    ///
    /// # Errors
    /// None comes, or what is behind it does not answer.
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let registry = directory.join("plugins_registry");
        let socket = waited(|| sockets(&registry).pop())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let registration = waited(|| connect(&runtime, &socket).ok())?;
        let service = "/pluginregistration.Registration";
        let info: PluginInfo =
            unary(&runtime, &registration, &format!("{service}/GetInfo"), Nothing {})?;
        let registered = Registered { plugin_registered: true, error: String::new() };
        let path = format!("{service}/NotifyRegistrationStatus");
        let _: Nothing = unary(&runtime, &registration, &path, registered)?;
        let channel = connect(&runtime, Path::new(&info.endpoint))?;
        Ok(Self { runtime, channel, info })
    }

    /// What the driver said of itself.
    pub(crate) const fn info(&self) -> &PluginInfo {
        &self.info
    }

    /// Has claims prepared.
    ///
    /// # Errors
    /// The driver answers none of them.
    pub(crate) fn prepare(&self, claims: &[Claim]) -> Result<AllPrepared> {
        self.call("NodePrepareResources", claims)
    }

    /// Has one claim prepared; what came of it.
    ///
    /// # Errors
    /// It is not in the answer.
    pub(crate) fn prepare_one(&self, claim: &Claim) -> Result<Prepared> {
        let mut all = self.prepare(std::slice::from_ref(claim))?;
        all.claims.remove(&claim.uid).ok_or_else(|| Stop::fail("the claim is not in the answer"))
    }

    /// The same, again and again until the driver has asked the API server about other offers of the node's GPUs.
    ///
    /// # Errors
    /// It is not in an answer, or the driver never knows.
    pub(crate) fn prepare_once_known(&self, claim: &Claim) -> Result<Prepared> {
        waited(|| match self.prepare_one(claim) {
            Ok(prepared) if prepared.error.contains("is not known yet") => None,
            answer => Some(answer),
        })?
    }

    /// Undoes it; the reason for which it could not be done, or nothing.
    ///
    /// # Errors
    /// It is not in the answer.
    pub(crate) fn unprepare(&self, claim: &Claim) -> Result<String> {
        let mut all: AllUnprepared =
            self.call("NodeUnprepareResources", std::slice::from_ref(claim))?;
        let one = all.claims.remove(&claim.uid);
        one.map(|one| one.error).ok_or_else(|| Stop::fail("the claim is not in the answer"))
    }

    /// Listens to the health of the devices, by this version of the service.
    ///
    /// # Errors
    /// The driver has no such service.
    pub(crate) fn watch(&self, version: &str) -> Result<Watch<'_>> {
        let path = path(&format!("/{version}.DRAResourceHealth/NodeWatchResources"))?;
        let stream = self.runtime.block_on(async {
            let mut client = Grpc::new(self.channel.clone());
            client.ready().await.map_err(Stop::fail)?;
            let request = tonic::Request::new(Nothing {});
            let codec = ProstCodec::<Nothing, Healths>::default();
            let answer = client.server_streaming(request, path, codec).await;
            Ok::<_, Stop>(answer.map_err(Stop::fail)?.into_inner())
        })?;
        Ok(Watch { runtime: &self.runtime, stream })
    }

    fn call<A: prost::Message + Default + 'static>(
        &self,
        name: &str,
        claims: &[Claim],
    ) -> Result<A> {
        let path = format!("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/{name}");
        unary(&self.runtime, &self.channel, &path, Request { claims: claims.to_vec() })
    }
}

impl Watch<'_> {
    /// What the driver says next.
    ///
    /// # Errors
    /// The stream ends, or nothing comes.
    pub(crate) fn next(&mut self) -> Result<Healths> {
        let stream = &mut self.stream;
        let next =
            self.runtime.block_on(async { tokio::time::timeout(LONGEST, stream.message()).await });
        let next = next.map_err(Stop::fail)?.map_err(Stop::fail)?;
        next.ok_or_else(|| Stop::fail("the stream has ended"))
    }
}

/// What a kubelet sees in the registry.
pub(crate) fn sockets(registry: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(registry).into_iter().flatten().flatten();
    entries
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "sock"))
        .collect()
}

/// Looks again and again until there is something.
///
/// # Errors
/// Nothing comes in a time in which only what hangs does not come.
pub(crate) fn waited<T>(mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let end = Instant::now() + LONGEST;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(Stop::fail("it does not come"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn connect(runtime: &Runtime, socket: &Path) -> Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()));
    let endpoint = endpoint.map_err(Stop::fail)?.timeout(LONGEST);
    runtime.block_on(endpoint.connect()).map_err(Stop::fail)
}

fn unary<Q, A>(runtime: &Runtime, channel: &Channel, name: &str, request: Q) -> Result<A>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let path = path(name)?;
    runtime.block_on(async {
        let mut client = Grpc::new(channel.clone());
        client.ready().await.map_err(Stop::fail)?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = client.unary(tonic::Request::new(request), path, codec).await;
        answer.map(tonic::Response::into_inner).map_err(Stop::fail)
    })
}

fn path(name: &str) -> Result<PathAndQuery> {
    name.parse().map_err(Stop::fail)
}
