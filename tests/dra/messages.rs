//! The kubelet's messages, written once more from its interface: the judge shares nothing with the judged.
//!
//! Only what a test sends or looks at. Names and numbers are those of `pluginregistration` v1,
//! `k8s.io.kubelet.pkg.apis.dra.v1` and health v1.

use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Nothing {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PluginInfo {
    #[prost(string, tag = "1")]
    pub(crate) kind: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "3")]
    pub(crate) endpoint: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) supported_versions: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Registered {
    #[prost(bool, tag = "1")]
    pub(crate) plugin_registered: bool,
    #[prost(string, tag = "2")]
    pub(crate) error: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Claim {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Request {
    #[prost(message, repeated, tag = "1")]
    pub(crate) claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Device {
    #[prost(string, repeated, tag = "1")]
    pub(crate) request_names: Vec<String>,
    #[prost(string, tag = "2")]
    pub(crate) pool_name: String,
    #[prost(string, tag = "3")]
    pub(crate) device_name: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) cdi_device_ids: Vec<String>,
    #[prost(string, optional, tag = "5")]
    pub(crate) share_id: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Prepared {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<Device>,
    #[prost(string, tag = "2")]
    pub(crate) error: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AllPrepared {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) claims: HashMap<String, Prepared>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Unprepared {
    #[prost(string, tag = "1")]
    pub(crate) error: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AllUnprepared {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) claims: HashMap<String, Unprepared>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Identifier {
    #[prost(string, tag = "1")]
    pub(crate) pool_name: String,
    #[prost(string, tag = "2")]
    pub(crate) device_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Health {
    #[prost(message, optional, tag = "1")]
    pub(crate) device: Option<Identifier>,
    /// 0 unknown, 1 healthy, 2 unhealthy.
    #[prost(int32, tag = "2")]
    pub(crate) health: i32,
    #[prost(int64, tag = "3")]
    pub(crate) last_updated_time: i64,
    #[prost(int64, tag = "4")]
    pub(crate) timeout_seconds: i64,
    #[prost(string, tag = "5")]
    pub(crate) message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Healths {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<Health>,
}
