//! The kubelet's messages, as protobuf has them: names and numbers of fields are the kubelet's interface.
//!
//! Registration is `pluginregistration` v1, the driver's service `k8s.io.kubelet.pkg.apis.dra.v1`, and health
//! `v1` and `v1alpha1`, whose messages are the same (kubernetes/kubelet `pkg/apis` at 63b3249). Only what is read or
//! written here has a field; the kubelet's other fields are passed over.

use std::collections::HashMap;

/// A message without anything in it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Empty {}

/// What the kubelet is told of a plugin.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct PluginInfo {
    #[prost(string, tag = "1")]
    pub(crate) r#type: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "3")]
    pub(crate) endpoint: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) supported_versions: Vec<String>,
}

/// What became of the registration.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RegistrationStatus {
    #[prost(bool, tag = "1")]
    pub(crate) plugin_registered: bool,
    #[prost(string, tag = "2")]
    pub(crate) error: String,
}

/// Which claim.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Claim {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
}

/// The claims that are to be prepared or unprepared.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Claims {
    #[prost(message, repeated, tag = "1")]
    pub(crate) claims: Vec<Claim>,
}

/// A device of a prepared claim.
#[derive(Clone, PartialEq, Eq, prost::Message)]
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

/// What came of one claim.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Prepared {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<Device>,
    #[prost(string, tag = "2")]
    pub(crate) error: String,
}

/// What came of all claims, by their UIDs.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PreparedClaims {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) claims: HashMap<String, Prepared>,
}

/// What came of one claim that was unprepared.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Unprepared {
    #[prost(string, tag = "1")]
    pub(crate) error: String,
}

/// What came of all of them, by their UIDs.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UnpreparedClaims {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) claims: HashMap<String, Unprepared>,
}

/// Whether a device works.
#[derive(Clone, Copy, Debug, Eq, PartialEq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Health {
    Unknown = 0,
    Healthy = 1,
    Unhealthy = 2,
}

/// Which device.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DeviceIdentifier {
    #[prost(string, tag = "1")]
    pub(crate) pool_name: String,
    #[prost(string, tag = "2")]
    pub(crate) device_name: String,
}

/// How a device is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DeviceHealth {
    #[prost(message, optional, tag = "1")]
    pub(crate) device: Option<DeviceIdentifier>,
    #[prost(enumeration = "Health", tag = "2")]
    pub(crate) health: i32,
    #[prost(int64, tag = "3")]
    pub(crate) last_updated_time: i64,
    #[prost(int64, tag = "4")]
    pub(crate) health_check_timeout_seconds: i64,
    #[prost(string, tag = "5")]
    pub(crate) message: String,
}

/// How all devices are.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeviceHealths {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<DeviceHealth>,
}
