//! The messages of ttrpc and of NRI (`nri.pkg.api.v1alpha1`, as runtimes have had them since NRI 0.2), as far as we use
//! them.
//!
//! A field that is not defined here is skipped when read, and not sent: pods and containers have many more, and newer
//! runtimes add some. The numbers are the protocol's, and none of them may change.

use prost::Message;
use std::collections::BTreeMap;

/// The service that a plugin offers.
pub const PLUGIN: &str = "nri.pkg.api.v1alpha1.Plugin";
/// The service that a runtime offers.
pub const RUNTIME: &str = "nri.pkg.api.v1alpha1.Runtime";

/// ttrpc: a question.
#[derive(Clone, PartialEq, Message)]
pub struct Request {
    /// The service that is called.
    #[prost(string, tag = "1")]
    pub service: String,
    /// The method that is called.
    #[prost(string, tag = "2")]
    pub method: String,
    /// The message of that method.
    #[prost(bytes = "vec", tag = "3")]
    pub payload: Vec<u8>,
}

/// ttrpc: an answer.
#[derive(Clone, PartialEq, Message)]
pub struct Response {
    /// Whether it was done.
    #[prost(message, optional, tag = "1")]
    pub status: Option<Status>,
    /// The message of that method.
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
}

/// ttrpc: whether it was done, by the codes of gRPC.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    /// 0 if it was.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// Otherwise, why not.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// The plugin names itself.
#[derive(Clone, PartialEq, Message)]
pub struct RegisterPluginRequest {
    /// Its name.
    #[prost(string, tag = "1")]
    pub plugin_name: String,
    /// Its place among the plugins.
    #[prost(string, tag = "2")]
    pub plugin_idx: String,
}

/// The runtime names itself.
#[derive(Clone, PartialEq, Message)]
pub struct ConfigureRequest {
    /// Its name.
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub runtime_version: String,
}

/// The plugin says what it wants to be asked.
#[derive(Clone, PartialEq, Message)]
pub struct ConfigureResponse {
    /// One bit for each event, from [`CREATE_CONTAINER`]'s on.
    #[prost(int32, tag = "2")]
    pub events: i32,
}

/// The bit of the event `CREATE_CONTAINER`, whose number is 4.
pub const CREATE_CONTAINER: i32 = 1 << 3;

/// The runtime lists what runs already, which is not needed.
#[derive(Clone, PartialEq, Message)]
pub struct SynchronizeRequest {
    /// There will be more of it.
    #[prost(bool, tag = "3")]
    pub more: bool,
}

/// The plugin asks for no changes.
#[derive(Clone, PartialEq, Message)]
pub struct SynchronizeResponse {
    /// It is ready for more.
    #[prost(bool, tag = "2")]
    pub more: bool,
}

/// A container is about to be made.
#[derive(Clone, PartialEq, Message)]
pub struct CreateContainerRequest {
    /// Its pod.
    #[prost(message, optional, tag = "1")]
    pub pod: Option<PodSandbox>,
    /// Itself.
    #[prost(message, optional, tag = "2")]
    pub container: Option<Container>,
}

/// The additions to it.
#[derive(Clone, PartialEq, Message)]
pub struct CreateContainerResponse {
    /// If anything.
    #[prost(message, optional, tag = "1")]
    pub adjust: Option<ContainerAdjustment>,
}

/// A pod.
#[derive(Clone, PartialEq, Message)]
pub struct PodSandbox {
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its UID.
    #[prost(string, tag = "3")]
    pub uid: String,
    /// Its namespace.
    #[prost(string, tag = "4")]
    pub namespace: String,
    /// Its annotations, all of them.
    #[prost(btree_map = "string, string", tag = "6")]
    pub annotations: BTreeMap<String, String>,
}

/// A container.
#[derive(Clone, PartialEq, Message)]
pub struct Container {
    /// Its name in the pod.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Its own annotations.
    #[prost(btree_map = "string, string", tag = "6")]
    pub annotations: BTreeMap<String, String>,
    /// Its environment.
    #[prost(string, repeated, tag = "8")]
    pub env: Vec<String>,
    /// Its mounts.
    #[prost(message, repeated, tag = "9")]
    pub mounts: Vec<Mount>,
    /// Its hooks.
    #[prost(message, optional, tag = "10")]
    pub hooks: Option<Hooks>,
    /// What only Linux has.
    #[prost(message, optional, tag = "11")]
    pub linux: Option<LinuxContainer>,
    /// The devices that it has by CDI.
    #[prost(message, repeated, tag = "20")]
    pub cdi_devices: Vec<CdiDevice>,
}

/// A mount of a container, of which only the destination is read.
#[derive(Clone, PartialEq, Message)]
pub struct Mount {
    /// Its path in the container.
    #[prost(string, tag = "1")]
    pub destination: String,
}

/// The hooks of a container.
#[derive(Clone, PartialEq, Message)]
pub struct Hooks {
    /// Of the stage createRuntime.
    #[prost(message, repeated, tag = "2")]
    pub create_runtime: Vec<Hook>,
    /// Of the stage poststop.
    #[prost(message, repeated, tag = "6")]
    pub poststop: Vec<Hook>,
}

/// A hook.
#[derive(Clone, PartialEq, Message)]
pub struct Hook {
    /// The program.
    #[prost(string, tag = "1")]
    pub path: String,
    /// Its words.
    #[prost(string, repeated, tag = "2")]
    pub args: Vec<String>,
    /// Its environment.
    #[prost(string, repeated, tag = "3")]
    pub env: Vec<String>,
    /// How many seconds it may take.
    #[prost(message, optional, tag = "4")]
    pub timeout: Option<OptionalInt>,
}

/// A number that may be left out.
#[derive(Clone, PartialEq, Message)]
pub struct OptionalInt {
    /// The number.
    #[prost(int64, tag = "1")]
    pub value: i64,
}

/// What only Linux has.
#[derive(Clone, PartialEq, Message)]
pub struct LinuxContainer {
    /// Device files.
    #[prost(message, repeated, tag = "2")]
    pub devices: Vec<LinuxDevice>,
}

/// A device file.
#[derive(Clone, PartialEq, Message)]
pub struct LinuxDevice {
    /// Where.
    #[prost(string, tag = "1")]
    pub path: String,
    /// `c`, `u`, `b` or `p`.
    #[prost(string, tag = "2")]
    pub kind: String,
    /// Its numbers.
    #[prost(int64, tag = "3")]
    pub major: i64,
    /// The second one.
    #[prost(int64, tag = "4")]
    pub minor: i64,
}

/// A device by CDI.
#[derive(Clone, PartialEq, Message)]
pub struct CdiDevice {
    /// Its whole name.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// The additions to a container.
#[derive(Clone, PartialEq, Message)]
pub struct ContainerAdjustment {
    /// Annotations.
    #[prost(btree_map = "string, string", tag = "2")]
    pub annotations: BTreeMap<String, String>,
    /// Variables, each in the place of one of its name.
    #[prost(message, repeated, tag = "4")]
    pub env: Vec<KeyValue>,
    /// Hooks.
    #[prost(message, optional, tag = "5")]
    pub hooks: Option<Hooks>,
}

/// A variable.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}
