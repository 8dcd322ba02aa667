//! The kubelet's messages, as protobuf has them: names and numbers of fields are the kubelet's interface.
//!
//! Registration is `pluginregistration` v1, the driver's service `k8s.io.kubelet.pkg.apis.dra.v1`, and health
//! `v1` and `v1alpha1`, whose messages are the same (kubernetes/kubelet `pkg/apis` at 63b3249). Only what is read or
//! written here has a field; the kubelet's other fields are passed over.

use std::collections::HashMap;

/// A message without anything in it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Empty {}

/// What a plugin says of itself to the kubelet.
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
pub struct Claim {
    /// Its namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// The UID of its object: a claim made anew has another.
    #[prost(string, tag = "2")]
    pub uid: String,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// The claims that are to be prepared or unprepared.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Claims {
    #[prost(message, repeated, tag = "1")]
    pub(crate) claims: Vec<Claim>,
}

/// A device of a prepared claim.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Device {
    /// The requests of the claim that it is for; of all, if there is none.
    #[prost(string, repeated, tag = "1")]
    pub request_names: Vec<String>,
    /// The pool that it is of.
    #[prost(string, tag = "2")]
    pub pool_name: String,
    /// Its name in the pool.
    #[prost(string, tag = "3")]
    pub device_name: String,
    /// The CDI devices that bring it into a container, `VENDOR/CLASS=NAME`.
    #[prost(string, repeated, tag = "4")]
    pub cdi_device_ids: Vec<String>,
    /// Which share of it, if several claims may have one.
    #[prost(string, optional, tag = "5")]
    pub share_id: Option<String>,
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
pub enum Health {
    /// Nothing is known of it.
    Unknown = 0,
    /// It works.
    Healthy = 1,
    /// It does not.
    Unhealthy = 2,
}

/// Which device.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeviceIdentifier {
    /// The pool that it is of.
    #[prost(string, tag = "1")]
    pub pool_name: String,
    /// Its name in the pool.
    #[prost(string, tag = "2")]
    pub device_name: String,
}

/// How a device is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeviceHealth {
    /// Which device.
    #[prost(message, optional, tag = "1")]
    pub device: Option<DeviceIdentifier>,
    /// A [`Health`].
    #[prost(enumeration = "Health", tag = "2")]
    pub health: i32,
    /// When that was found out, in seconds since 1970.
    #[prost(int64, tag = "3")]
    pub last_updated_time: i64,
    /// For how many seconds it holds: then it is unknown. 0: the kubelet decides.
    #[prost(int64, tag = "4")]
    pub health_check_timeout_seconds: i64,
    /// The reason, for people.
    #[prost(string, tag = "5")]
    pub message: String,
}

/// How all devices are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceHealths {
    /// All devices of the driver on this node.
    #[prost(message, repeated, tag = "1")]
    pub devices: Vec<DeviceHealth>,
}
