//! The calls of the kubelet, by their paths, and the functions that answer them.
//!
//! A claim that fails has its reason in its own answer, and the others are answered all the same. A path that is not
//! known is answered as gRPC has it, so that the kubelet sees an older plugin and no broken one.

use crate::driver::Driver;
use crate::error::Error;
use crate::log;
use crate::message::{
    Claims, DeviceHealths, Empty, PluginInfo, Prepared, PreparedClaims, RegistrationStatus,
    Unprepared, UnpreparedClaims,
};
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

/// What the driver can do, in the kubelet's words.
const SERVICES: [&str; 3] = ["v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"];

/// What answers.
#[derive(Clone)]
pub(crate) struct Plugin {
    pub(crate) driver: Arc<Driver>,
    /// The path of the socket that the kubelet is to call.
    pub(crate) endpoint: String,
    pub(crate) healths: watch::Receiver<DeviceHealths>,
}

/// The same as a service of HTTP.
#[derive(Clone)]
pub(super) struct Service(Plugin);

impl Service {
    pub(super) const fn new(plugin: Plugin) -> Self {
        Self(plugin)
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl tower::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let plugin = self.0.clone();
        Box::pin(async move { Ok(answer(plugin, request).await) })
    }
}

async fn answer(plugin: Plugin, request: http::Request<Body>) -> http::Response<Body> {
    match request.uri().path() {
        "/pluginregistration.Registration/GetInfo" => {
            let info = plugin.info();
            let say = service_fn(move |_: Request<Empty>| ready(Ok(Response::new(info.clone()))));
            Grpc::new(ProstCodec::default()).unary(say, request).await
        }
        "/pluginregistration.Registration/NotifyRegistrationStatus" => {
            let hear = service_fn(|status: Request<RegistrationStatus>| {
                let RegistrationStatus { plugin_registered, error } = status.into_inner();
                let said = if plugin_registered {
                    "the kubelet has registered it".into()
                } else {
                    format!("the kubelet has not registered it: {error}")
                };
                log::line(said);
                ready(Ok(Response::new(Empty {})))
            });
            Grpc::new(ProstCodec::default()).unary(hear, request).await
        }
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources" => {
            let prepare = service_fn(move |claims: Request<Claims>| {
                let plugin = plugin.clone();
                async move { Ok::<_, Status>(Response::new(plugin.prepare(claims.into_inner()).await)) }
            });
            Grpc::new(ProstCodec::default()).unary(prepare, request).await
        }
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources" => {
            let unprepare = service_fn(move |claims: Request<Claims>| {
                let plugin = plugin.clone();
                async move {
                    Ok::<_, Status>(Response::new(plugin.unprepare(claims.into_inner()).await))
                }
            });
            Grpc::new(ProstCodec::default()).unary(unprepare, request).await
        }
        "/v1.DRAResourceHealth/NodeWatchResources"
        | "/v1alpha1.DRAResourceHealth/NodeWatchResources" => {
            let watch = service_fn(move |_: Request<Empty>| {
                let healths = WatchStream::new(plugin.healths.clone());
                ready(Ok(Response::new(healths.map(Ok::<_, Status>))))
            });
            Grpc::new(ProstCodec::default()).server_streaming(watch, request).await
        }
        _ => Status::unimplemented("").into_http(),
    }
}

impl Plugin {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            r#type: "DRAPlugin".into(),
            name: self.driver.name.clone(),
            endpoint: self.endpoint.clone(),
            supported_versions: SERVICES.map(Into::into).into(),
        }
    }

    async fn prepare(&self, asked: Claims) -> PreparedClaims {
        let mut answer = PreparedClaims::default();
        for claim in asked.claims {
            let prepared = match self.driver.prepare(&claim).await {
                Ok(devices) => Prepared { devices, error: String::new() },
                Err(why) => Prepared { devices: vec![], error: said(&why) },
            };
            answer.claims.insert(claim.uid, prepared);
        }
        answer
    }

    async fn unprepare(&self, asked: Claims) -> UnpreparedClaims {
        let mut answer = UnpreparedClaims::default();
        for claim in asked.claims {
            let done = self.driver.unprepare(&claim).await;
            let error = done.err().map(|why| said(&why)).unwrap_or_default();
            answer.claims.insert(claim.uid, Unprepared { error });
        }
        answer
    }
}

/// The reason, which also goes to the log.
fn said(why: &Error) -> String {
    log::line(why);
    why.to_string()
}
