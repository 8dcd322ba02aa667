//! The decision: all sources are asked, what they say is joined, and the node's policies are applied.
//!
//! The order matters only for the message: a container that asks for nothing and has no GPU is never affected, whatever
//! the node's configuration or the container's form; a requirement of the node comes last.

use std::collections::BTreeMap;
use std::fmt;

use gpucap_core::config::Excerpt;
use gpucap_core::limits::file::{Key, Label, LimitsFile};

use crate::convention::{self, near_miss};
use crate::document::calibration::Calibration;
use crate::document::card::Card;
use crate::document::container::{Container, MountNamespace};
use crate::document::env::Reading;
use crate::document::identity::{ContainerIdentity, is_sandbox};
use crate::document::node::{Node, Privileged};
use crate::document::node_file::NodeFile;
use crate::document::state::State;
use crate::facts::Facts;
use crate::grant::Grant;
use crate::lending;
use crate::merge::merge;
use crate::native::{self, NativeLimit};
use crate::reason::{NodeError, Reason};

/// The note on a container whose programs may mount in a user namespace.
const MAY_UNSHARE: &str = "its programs may make user namespaces and hide the library in one: a seccomp profile such as \
                           RuntimeDefault forbids it; that of podman does not";

/// All inputs about a container. Absent inputs have no effect.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The runtime's state; `None` in the runtime wrapper.
    pub state: Option<&'a State>,
    /// What `config.json` says.
    pub container: &'a Container,
    /// The node's configuration, or why it cannot be used.
    pub node: Result<&'a Node, &'a NodeError>,
    /// The cards of the node, in the order of nvidia-smi; empty if not known.
    pub cards: &'a [Card],
    /// The node-local allocations of this container, as far as there are any ([`ContainerIdentity::allocation`]).
    pub allocations: &'a [Vec<u8>],
    /// The kubelet's checkpoint of its device plugins.
    pub checkpoint: NodeFile<'a>,
    /// The checkpoint of NVIDIA's DRA driver.
    pub claims: NodeFile<'a>,
    /// What was measured of the cards (`<state_dir>/driver.json`), if it was; or why that cannot be read.
    pub calibration: Option<Result<&'a [u8], &'a str>>,
    /// The version of the running driver, if it is known.
    pub driver: Option<&'a str>,
    /// The kernel lets ordinary users make user namespaces.
    pub user_namespaces: bool,
}

/// The decision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Plan {
    /// These limits are put into the container.
    Limits(LimitsFile),
    /// No limit is requested: the container is left unchanged.
    NotAsked,
    /// The container may not start.
    Refuse(Reason),
}

/// A plan, and how it came about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decision {
    /// The plan.
    pub plan: Plan,
    /// What each source said.
    pub grants: Vec<Grant>,
    /// What a person should know of it.
    pub notes: Vec<Note>,
    /// What the driver itself is to keep the container to, besides.
    pub native_limits: Vec<NativeLimit>,
}

/// What a person should know of a decision, in one line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Note {
    /// The line.
    pub text: String,
    /// The container gets less than it asks for, or its limit may not hold: a name may be misspelt, a wish is not granted,
    /// its programs can take the limit off. Everything else is as it should be.
    pub is_warning: bool,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The plan.
#[must_use]
pub fn plan(sources: &Sources<'_>) -> Plan {
    decide(sources).plan
}

/// The plan, and its reasons.
#[must_use]
pub fn decide(sources: &Sources<'_>) -> Decision {
    let mut decision =
        Decision { plan: Plan::NotAsked, grants: vec![], notes: vec![], native_limits: vec![] };
    decision.plan = match decision.find(sources) {
        Ok(plan) => plan,
        Err(reason) => Plan::Refuse(reason),
    };
    decision
}

impl Decision {
    fn note(&mut self, texts: impl IntoIterator<Item = String>) {
        self.notes.extend(texts.into_iter().map(|text| Note { text, is_warning: false }));
    }

    fn warn(&mut self, texts: impl IntoIterator<Item = String>) {
        self.notes.extend(texts.into_iter().map(|text| Note { text, is_warning: true }));
    }

    fn find(&mut self, sources: &Sources<'_>) -> Result<Plan, Reason> {
        // The runtime's own word comes first; a wrapper has only the other.
        let mut annotations = sources.container.annotations.clone();
        annotations.extend(sources.state.into_iter().flat_map(|state| state.annotations.clone()));
        // A pod's sandbox is given no GPU and says no limit itself; so a container that does either or has a slice is none, whatever
        // the annotations of an engine without keys of its own say.
        let container = sources.container;
        let says = convention::asked(&container.env, &Node::default()).limits();
        let has_slice = !container.slices.is_empty();
        if is_sandbox(&annotations) && !container.is_given_gpu && !says && !has_slice {
            self.note(["the sandbox of a pod runs nothing of the pod's author".into()]);
            return Ok(Plan::NotAsked);
        }
        let fallback = Node::default();
        let node = sources.node.unwrap_or(&fallback);
        let facts = Facts {
            env: &Reading::default(),
            annotations: &annotations,
            cards: sources.cards,
            node,
            identities: &ContainerIdentity::all_of(&annotations),
            allocations: sources.allocations,
            checkpoint: sources.checkpoint,
            claims: sources.claims,
            container,
        };
        self.grants = convention::ask(&facts, &sources.container.env)?;
        self.apply(sources, node, &annotations)
    }

    fn apply(
        &mut self,
        sources: &Sources<'_>,
        node: &Node,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Plan, Reason> {
        let asked = self.grants.iter().any(Grant::limits);
        self.warn(near_miss::near(&sources.container.env, node, annotations));
        // Only now: where neither a limit nor a GPU is seen, a slip of the administrator must not stop anything. Beside
        // a GPU the limit may have been the node's own, as replicas and claims are, or one that it demands.
        if asked || sources.container.has_own_gpu {
            sources.node.map_err(Clone::clone)?;
        }
        for switch in convention::off_switches(&sources.container.env) {
            if node.allow_off_switches {
                self.note([format!("{switch} takes the limit off, as this node allows")]);
                return Ok(Plan::NotAsked);
            }
            self.warn([format!("{switch} is ignored: this node does not allow it")]);
        }
        if node.require_limit_for_gpu
            && let Some(gpu) = &sources.container.gpu
            && !self.grants.iter().any(|grant| grant.limits() && node.trusts(grant.convention))
        {
            return Err(Reason::NoLimit { gpu: gpu.clone() });
        }
        if !asked {
            self.note(near_miss::without_limit(node, annotations));
            return Ok(Plan::NotAsked);
        }
        let joined = merge(&self.grants)?;
        let mut entries = lending::entries(&joined, node)?;
        self.warn(lending::note(&joined, node));
        let doubts: Vec<_> = self.grants.iter().filter_map(Grant::doubt).collect();
        self.warn(doubts);
        let container = sources.container;
        if container.mount_namespace == MountNamespace::Host {
            return Err(Reason::NoMountNamespace);
        }
        if let Some(path) = &container.covered {
            return Err(Reason::Covered { path: Excerpt::new(path.as_bytes()) });
        }
        if container.privileged {
            if node.privileged == Privileged::Refuse {
                return Err(Reason::Privileged);
            }
            self.warn(["privileged (CAP_SYS_ADMIN): it can take its limit off".into()]);
        } else if container.may_unshare && sources.user_namespaces {
            if node.user_namespaces == Privileged::Refuse {
                return Err(Reason::UserNamespaces);
            }
            self.warn([MAY_UNSHARE.into()]);
        }
        if !entries.iter().any(|entry| entry.key == Key::Every) {
            self.note(["any GPU that is not listed is refused".into()]);
        }
        let calibration = self.calibration(sources);
        let calibration = calibration.as_ref();
        self.native_limits = native::native_limits(&entries, node, sources.cards, calibration)?;
        let native = native::notes(&entries, &self.native_limits, node);
        self.note(native);
        for entry in &mut entries {
            // The administrator's own word comes first.
            let measured = || calibration.and_then(|found| found.context(entry.key));
            entry.context = node.context_mem.or_else(measured);
        }
        Ok(Plan::Limits(LimitsFile {
            source: self.label(),
            container: Label::new(sources.state.map_or("", |state| &state.id)),
            open: node.open,
            asked: convention::asked(&container.env, node),
            entries,
        }))
    }

    /// The measurements of the GPUs, as far as they can be used. A file that cannot be used gives a note, and is
    /// never a reason to refuse: the size of a context is then assumed, as on a node without measurements.
    fn calibration(&mut self, sources: &Sources<'_>) -> Option<Calibration> {
        let read = sources.calibration?.map_err(str::to_owned);
        let parsed = read.and_then(|bytes| Calibration::parse(bytes, sources.driver));
        let unused = |why| {
            format!("the measured cost of a context is not used: {why}; run `gpucap calibrate`")
        };
        parsed.map_err(|why| self.warn([unused(why)])).ok()
    }

    /// Which conventions said something.
    fn label(&self) -> Label {
        let mut names: Vec<&str> = Vec::new();
        for Grant { convention, .. } in &self.grants {
            if !names.contains(convention) {
                names.push(convention);
            }
        }
        Label::new(&names.join(" "))
    }
}
