//! The API server: claims are read, the slice of this node is written, and what else offers its cards is looked for.
//!
//! Each question is bounded in time, so that a server that is away is an answer. Nothing is watched: a claim is read
//! when the kubelet wants it, and the slice is compared at each round. What the server adds to a slice or drops from it
//! is no difference: the slice carries a fingerprint of what it was made from.

use crate::error::{Error, Result};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{
    Device, ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, Config};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// The longest that one question may take; the kubelet itself waits longer.
const LONGEST: Duration = Duration::from_secs(10);
/// NVIDIA's own driver for the same cards.
const NVIDIA: &str = "gpu.nvidia.com";
/// How the resources of NVIDIA's device plugin begin.
const PLUGIN: [&str; 2] = ["nvidia.com/gpu", "nvidia.com/mig-"];
/// The annotation with the fingerprint of the devices.
const FINGERPRINT: &str = "slice.gpucap.io/fingerprint";

/// The server, and who asks it.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
    node: String,
    driver: String,
}

impl Server {
    /// The server with this address, or the one of the cluster that this program runs in.
    ///
    /// # Errors
    /// There is none, or it cannot be spoken to.
    pub(crate) async fn new(address: Option<&str>, node: &str, driver: &str) -> Result<Self> {
        let wrong = |why: String| Error::Api { what: "its address".into(), why };
        let mut config = match address {
            Some(address) => Config::new(address.parse().map_err(|why| wrong(format!("{why}")))?),
            None => Config::infer().await.map_err(|why| wrong(why.to_string()))?,
        };
        config.connect_timeout = Some(LONGEST);
        config.read_timeout = Some(LONGEST);
        let client = Client::try_from(config).map_err(|why| wrong(why.to_string()))?;
        Ok(Self { client, node: node.into(), driver: driver.into() })
    }

    /// The claim of this name; `None` if there is none.
    ///
    /// # Errors
    /// The server does not say.
    pub(crate) async fn claim(&self, namespace: &str, name: &str) -> Result<Option<ResourceClaim>> {
        let claims: Api<ResourceClaim> = Api::namespaced(self.client.clone(), namespace);
        asked(&format!("claim {namespace}/{name}"), claims.get_opt(name)).await
    }

    /// Publishes these devices as those of this node, in place of what it had before.
    ///
    /// # Errors
    /// The server does not take them.
    pub(crate) async fn publish(&self, devices: Vec<Device>) -> Result {
        let own = self.name();
        let slices: Api<ResourceSlice> = Api::all(self.client.clone());
        for other in self.slices(&self.driver).await? {
            let name = other.metadata.name.unwrap_or_default();
            if name != own {
                self.delete(&slices, &name).await?;
            }
        }
        let what = format!("resourceslice {own}");
        let there = asked(&what, slices.get_opt(&own)).await?;
        let fingerprint = fingerprint(&devices);
        let generation = match &there {
            Some(there) if annotation(there) == Some(&fingerprint) => return Ok(()),
            Some(there) => there.spec.pool.generation.saturating_add(1),
            None => 1,
        };
        let mut slice = self.slice(devices, generation, fingerprint).await?;
        let parameters = PostParams::default();
        match there {
            None => asked(&what, slices.create(&parameters, &slice)).await?,
            Some(there) => {
                slice.metadata.resource_version = there.metadata.resource_version;
                asked(&what, slices.replace(&own, &parameters, &slice)).await?
            }
        };
        Ok(())
    }

    /// Takes the devices of this node back: no claim is allocated them from now on, and what has one keeps it.
    ///
    /// # Errors
    /// The server does not say.
    pub(crate) async fn withdraw(&self) -> Result {
        let slices: Api<ResourceSlice> = Api::all(self.client.clone());
        for slice in self.slices(&self.driver).await? {
            self.delete(&slices, &slice.metadata.name.unwrap_or_default()).await?;
        }
        Ok(())
    }

    /// What else offers the cards of this node, if something does: each would be counted twice.
    ///
    /// # Errors
    /// The server does not say.
    pub(crate) async fn rival(&self) -> Result<Option<String>> {
        let other = self.slices(NVIDIA).await?;
        let has_devices =
            |slice: &ResourceSlice| slice.spec.devices.iter().flatten().next().is_some();
        if other.iter().any(has_devices) {
            return Ok(Some(format!("the DRA driver {NVIDIA}")));
        }
        let node = self.node().await?;
        let status = node.status.unwrap_or_default();
        let offered = status.allocatable.into_iter().flatten();
        let mut offered = offered.filter(|(name, amount)| {
            PLUGIN.iter().any(|known| name.starts_with(known)) && amount.0 != "0"
        });
        Ok(offered.next().map(|(name, _)| format!("a device plugin, as {name}")))
    }

    async fn node(&self) -> Result<Node> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        asked(&format!("node {}", self.node), nodes.get(&self.node)).await
    }

    /// The slices that a driver has of this node.
    async fn slices(&self, driver: &str) -> Result<Vec<ResourceSlice>> {
        let slices: Api<ResourceSlice> = Api::all(self.client.clone());
        let fields = format!("spec.nodeName={},spec.driver={driver}", self.node);
        let parameters = ListParams::default().fields(&fields);
        Ok(asked("resourceslices of this node", slices.list(&parameters)).await?.items)
    }

    async fn delete(&self, slices: &Api<ResourceSlice>, name: &str) -> Result {
        let parameters = DeleteParams::default();
        match limited(slices.delete(name, &parameters)).await {
            Ok(_) => Ok(()),
            Err(Failure::Kube(kube::Error::Api(status))) if status.is_not_found() => Ok(()),
            Err(why) => Err(why.of(&format!("resourceslice {name}"))),
        }
    }

    fn name(&self) -> String {
        format!("{}-{}", self.node, self.driver)
    }

    async fn slice(
        &self,
        devices: Vec<Device>,
        generation: i64,
        print: String,
    ) -> Result<ResourceSlice> {
        let node = self.node().await?;
        // With its node the slice ends, too.
        let owner = OwnerReference {
            api_version: "v1".into(),
            kind: "Node".into(),
            name: self.node.clone(),
            uid: node.metadata.uid.unwrap_or_default(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        Ok(ResourceSlice {
            metadata: ObjectMeta {
                name: Some(self.name()),
                owner_references: Some(vec![owner]),
                annotations: Some(BTreeMap::from([(FINGERPRINT.into(), print)])),
                ..ObjectMeta::default()
            },
            spec: ResourceSliceSpec {
                driver: self.driver.clone(),
                node_name: Some(self.node.clone()),
                pool: ResourcePool { name: self.node.clone(), generation, resource_slice_count: 1 },
                devices: Some(devices),
                ..ResourceSliceSpec::default()
            },
        })
    }
}

fn annotation(slice: &ResourceSlice) -> Option<&String> {
    slice.metadata.annotations.as_ref()?.get(FINGERPRINT)
}

/// A number that differs for other devices (FNV-1a, 64 bits): against chance, not against an attacker.
fn fingerprint(devices: &[Device]) -> String {
    let text = serde_json::to_vec(devices).unwrap_or_default();
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Why there is no answer.
enum Failure {
    Late,
    Kube(kube::Error),
}

impl Failure {
    fn of(self, what: &str) -> Error {
        let why = match self {
            Self::Late => "no answer in time".to_owned(),
            Self::Kube(kube::Error::Api(status)) => status.message.clone(),
            Self::Kube(why) => chain(&why),
        };
        Error::Api { what: what.to_owned(), why }
    }
}

/// The innermost reason: the outer ones say only that a service failed.
fn chain(why: &dyn std::error::Error) -> String {
    let mut last = why;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

async fn limited<T>(
    question: impl Future<Output = kube::Result<T>>,
) -> std::result::Result<T, Failure> {
    let answer = tokio::time::timeout(LONGEST, question).await.map_err(|_| Failure::Late)?;
    answer.map_err(Failure::Kube)
}

async fn asked<T>(what: &str, question: impl Future<Output = kube::Result<T>>) -> Result<T> {
    limited(question).await.map_err(|why| why.of(what))
}
