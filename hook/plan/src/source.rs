//! The sources of limits that this version knows, by the names that the node's configuration has for them.
//!
//! The names alone: how each is read is a file of `convention`, and which of them count is the node's decision
//! ([`Node`](crate::Node)). A new source begins with a line here; the compiler then asks for its reader.

macro_rules! sources {
    ($($(#[$what:meta])* $source:ident $name:literal,)*) => {
        /// A source of limits.
        #[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq)]
        pub enum Source {
            $($(#[$what])* #[serde(rename = $name)] $source,)*
        }

        impl Source {
            /// All of them, the ones that are hardest to forge first.
            pub const ALL: &[Self] = &[$(Self::$source),*];

            /// Its name in the node's configuration.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$source => $name,)*
                }
            }
        }
    };
}

sources! {
    /// The slices of a DRA driver, by the hook's own arguments.
    Slice "slice",
    /// The node-local allocation.
    Allocation "allocation",
    /// The kubelet's checkpoint of its device plugins.
    Kubelet "kubelet",
    /// The replicas of NVIDIA's device plugin, by the same checkpoint.
    TimeSlicing "time-slicing",
    /// The claims of NVIDIA's DRA driver, by its checkpoint.
    Dra "dra",
    /// gpucap's own annotations.
    Annotation "annotation",
    /// HAMi's variables and annotations.
    Hami "hami",
    /// Volcano's annotations.
    Volcano "volcano",
    /// vgpu-manager's variables and annotations.
    VgpuManager "vgpu-manager",
    /// Koordinator's annotation.
    Koordinator "koordinator",
    /// The annotations of Alibaba's ACK.
    Ack "ack",
    /// The variables of the gpushare plugin.
    Gpushare "gpushare",
    /// The variables of eGPU.
    Egpu "egpu",
    /// The variables of NVIDIA's MPS.
    Mps "mps",
    /// The variables and annotations of KAI-Scheduler and Run:ai.
    Kai "kai",
    /// The variables of NVIDIA's container toolkit.
    Nvidia "nvidia",
    /// gpucap's own variables.
    Environment "environment",
}
