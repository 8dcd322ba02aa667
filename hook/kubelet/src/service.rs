//! The calls of the kubelet, by their paths, and the functions that answer them.
//!
//! A claim that fails has its reason in its own answer, and the others are answered all the same. A path that is not
//! known is answered as gRPC has it, so that the kubelet sees an older plugin and no broken one.

use crate::message::{
    Claims, DeviceHealths, Empty, PluginInfo, Prepared, PreparedClaims, RegistrationStatus,
    Unprepared, UnpreparedClaims,
};
use crate::plugin::Plugin;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

/// What a plugin can do, in the kubelet's words.
const SERVICES: [&str; 3] = ["v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"];

/// What answers, as a service of HTTP.
pub(crate) struct Service<P> {
    plugin: Arc<P>,
    /// The path of the socket that the kubelet is to call.
    endpoint: String,
    healths: watch::Receiver<DeviceHealths>,
}

impl<P> Service<P> {
    pub(crate) const fn new(
        plugin: Arc<P>,
        endpoint: String,
        healths: watch::Receiver<DeviceHealths>,
    ) -> Self {
        Self { plugin, endpoint, healths }
    }
}

// A derived one would ask it of the plugin too.
impl<P> Clone for Service<P> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.plugin), self.endpoint.clone(), self.healths.clone())
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl<P: Plugin> tower::Service<http::Request<Body>> for Service<P> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let service = self.clone();
        Box::pin(async move { Ok(answer(service, request).await) })
    }
}

async fn answer<P: Plugin>(
    service: Service<P>,
    request: http::Request<Body>,
) -> http::Response<Body> {
    match request.uri().path() {
        "/pluginregistration.Registration/GetInfo" => {
            let info = service.info();
            let say = service_fn(move |_: Request<Empty>| ready(Ok(Response::new(info.clone()))));
            Grpc::new(ProstCodec::default()).unary(say, request).await
        }
        "/pluginregistration.Registration/NotifyRegistrationStatus" => {
            let hear = service_fn(|status: Request<RegistrationStatus>| {
                let RegistrationStatus { plugin_registered, error } = status.into_inner();
                service.plugin.registered(if plugin_registered { Ok(()) } else { Err(&error) });
                ready(Ok(Response::new(Empty {})))
            });
            Grpc::new(ProstCodec::default()).unary(hear, request).await
        }
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources" => {
            let prepare = service_fn(move |claims: Request<Claims>| {
                let service = service.clone();
                async move { Ok::<_, Status>(Response::new(service.prepare(claims.into_inner()).await)) }
            });
            Grpc::new(ProstCodec::default()).unary(prepare, request).await
        }
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources" => {
            let unprepare = service_fn(move |claims: Request<Claims>| {
                let service = service.clone();
                async move {
                    Ok::<_, Status>(Response::new(service.unprepare(claims.into_inner()).await))
                }
            });
            Grpc::new(ProstCodec::default()).unary(unprepare, request).await
        }
        "/v1.DRAResourceHealth/NodeWatchResources"
        | "/v1alpha1.DRAResourceHealth/NodeWatchResources" => {
            let watch = service_fn(move |_: Request<Empty>| {
                let healths = WatchStream::new(service.healths.clone());
                ready(Ok(Response::new(healths.map(Ok::<_, Status>))))
            });
            Grpc::new(ProstCodec::default()).server_streaming(watch, request).await
        }
        _ => Status::unimplemented("").into_http(),
    }
}

impl<P: Plugin> Service<P> {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            r#type: "DRAPlugin".into(),
            name: self.plugin.name().to_owned(),
            endpoint: self.endpoint.clone(),
            supported_versions: SERVICES.map(Into::into).into(),
        }
    }

    async fn prepare(&self, asked: Claims) -> PreparedClaims {
        let mut answer = PreparedClaims::default();
        for claim in asked.claims {
            let prepared = match self.plugin.prepare(&claim).await {
                Ok(devices) => Prepared { devices, error: String::new() },
                Err(why) => Prepared { devices: vec![], error: why.to_string() },
            };
            answer.claims.insert(claim.uid, prepared);
        }
        answer
    }

    async fn unprepare(&self, asked: Claims) -> UnpreparedClaims {
        let mut answer = UnpreparedClaims::default();
        for claim in asked.claims {
            let done = self.plugin.unprepare(&claim).await;
            let error = done.err().map(|why| why.to_string()).unwrap_or_default();
            answer.claims.insert(claim.uid, Unprepared { error });
        }
        answer
    }
}
