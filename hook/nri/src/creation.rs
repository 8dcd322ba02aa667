//! A container that is about to be made: as the planner's input, and the additions to it.
//!
//! The runtime has already checked its annotations, variables and devices against its own rules, but not their
//! origin. Of a pod's annotations only those that a convention reads count and are passed on: an engine's own
//! annotation (`io.kubernetes.cri.container-type: sandbox`) written by the pod's author has no effect. The pod and
//! the container are named by the runtime in fields of their own, and these count.
//!
//! The additions bring the hook to the same plan: the variables, which also make it visible; the plan in gpucap's
//! annotations, since an environment may name a variable twice; and the annotations of the pod, which no runtime
//! passes on by itself.

use gpucap_plan::{Node, hears, variables};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::message::{
    self, ContainerAdjustment, CreateContainerRequest, Hook, Hooks, KeyValue, OptionalInt,
    PodSandbox,
};

/// A container that is about to be made.
#[derive(Clone, Debug, Default)]
pub struct Creation {
    pod: PodSandbox,
    container: message::Container,
}

/// The additions to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Adjustment(pub ContainerAdjustment);

impl Creation {
    /// The container that the runtime describes.
    #[must_use]
    pub fn of(request: CreateContainerRequest) -> Self {
        let CreateContainerRequest { pod, container } = request;
        Self { pod: pod.unwrap_or_default(), container: container.unwrap_or_default() }
    }

    /// Its name and its pod's, fit for one line.
    #[must_use]
    pub fn name(&self) -> String {
        let PodSandbox { namespace, name, .. } = &self.pod;
        let name = format!("{} of pod {namespace}/{name}", self.container.name);
        name.escape_default().take(400).collect()
    }

    /// The same in the words of `config.json`, as far as a runtime says it: whether it is privileged, may make user
    /// namespaces or has a mount namespace of its own, the hook sees.
    #[must_use]
    pub fn container(&self, node: &Node) -> gpucap_plan::Container {
        let own = &self.container;
        let mut annotations = self.passed_on(node);
        annotations.extend(own.annotations.clone());
        // A sandbox is never asked about.
        for key in ["io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"] {
            annotations.remove(key);
        }
        for (key, value) in [
            ("io.kubernetes.cri.sandbox-uid", &self.pod.uid),
            ("io.kubernetes.cri.container-name", &own.name),
        ] {
            annotations.insert(key.into(), value.clone());
        }
        let mounts: Vec<Value> =
            own.mounts.iter().map(|it| json!({"destination": it.destination})).collect();
        let devices = own.linux.iter().flat_map(|linux| &linux.devices);
        let devices: Vec<Value> = devices
            .map(|it| json!({"path": it.path, "type": it.kind, "major": it.major, "minor": it.minor}))
            .collect();
        let mut container = gpucap_plan::Container::of(&json!({
            "process": {"env": own.env},
            "annotations": annotations,
            "mounts": mounts,
            "linux": {"devices": devices, "namespaces": [{"type": "mount"}]},
        }));
        let mut cdi = own.cdi_devices.iter().map(|device| &device.name);
        // Of the toolkit (`nvidia.com/gpu`), the device plugin and the DRA driver (`k8s.gpu.nvidia.com/claim`).
        let cdi = cdi.find(|name| name.contains("nvidia.com/"));
        // A privileged container has all device files, and this one may be one.
        let named =
            json!({"process": {"env": own.env}, "annotations": annotations, "mounts": mounts});
        let named = gpucap_plan::Container::of(&named);
        container.is_assigned_gpu = named.is_assigned_gpu || cdi.is_some();
        container.has_own_gpu = named.has_own_gpu || cdi.is_some();
        // Its seccomp profile is not said.
        container.may_unshare = false;
        container.gpu = container.gpu.or_else(|| cdi.map(|name| format!("CDI device {name}")));
        container
    }

    /// The additions that put it under these limits: `hooks` are gpucap's, by stage. A hook that it already has is
    /// not added.
    #[must_use]
    pub fn adjust(
        &self,
        node: &Node,
        limits: &gpucap_core::limits::LimitsFile,
        hooks: &[(&str, Value)],
    ) -> Adjustment {
        let variables = variables(limits);
        let mut annotations = self.passed_on(node);
        annotations.extend(gpucap_plan::annotations(node, limits));
        let held = self.container.hooks.clone().unwrap_or_default();
        let added = |stage: &str, held: &[Hook]| -> Vec<Hook> {
            let ours = hooks.iter().filter(|(own, _)| *own == stage).map(|(_, hook)| hook_of(hook));
            let is_there = |hook: &Hook| {
                held.iter().any(|it| (&it.path, &it.args) == (&hook.path, &hook.args))
            };
            ours.filter(|hook| !is_there(hook)).collect()
        };
        let hooks = Hooks {
            create_runtime: added("createRuntime", &held.create_runtime),
            poststop: added("poststop", &held.poststop),
        };
        let pair = |(name, value): (&str, String)| KeyValue { key: name.into(), value };
        Adjustment(ContainerAdjustment {
            annotations,
            env: variables.into_iter().map(pair).collect(),
            hooks: (hooks != Hooks::default()).then_some(hooks),
        })
    }

    /// The annotations of the pod that a convention reads, and that the container does not have itself.
    fn passed_on(&self, node: &Node) -> BTreeMap<String, String> {
        let own = &self.container.annotations;
        let pairs = self.pod.annotations.iter();
        let pairs = pairs.filter(|(key, _)| hears(node, key) && !own.contains_key(*key));
        pairs.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// A hook of `config.json`.
fn hook_of(hook: &Value) -> Hook {
    let texts = |key: &str| -> Vec<String> {
        let list = hook.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let timeout = hook.get("timeout").and_then(Value::as_i64);
    Hook {
        path: hook.get("path").and_then(Value::as_str).unwrap_or_default().to_owned(),
        args: texts("args"),
        env: texts("env"),
        timeout: timeout.map(|value| OptionalInt { value }),
    }
}
