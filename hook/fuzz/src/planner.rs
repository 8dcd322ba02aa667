//! Untrusted bytes that reach the planner: one entry for each document.
//!
//! An entry fails by a panic: of the planner, or of the check that a plan is a limits file that can be read back. The
//! fuzz targets and the tests of `hook/plan` call the same entries.

use gpucap_core::limits::LimitsFile;
use gpucap_plan::{Card, Container, Env, Node, NodeFile, Plan, Sources, State, decide};
use std::sync::LazyLock;

/// A container of a pod with a GPU.
const CONFIG: &str = r#"{"process":{"env":["GPU_MEM_LIMIT=4Gi"]},
    "annotations":{"io.kubernetes.cri.sandbox-uid":"u1","io.kubernetes.cri.container-name":"app"},
    "linux":{"namespaces":[{"type":"mount"}]}}"#;

/// That container, and what a node has that says nothing: read once, since they are no part of the input.
static CONTAINER: LazyLock<Container> = LazyLock::new(|| container(CONFIG.as_bytes()));
static NODE: LazyLock<Node> = LazyLock::new(Node::default);
static CARDS: LazyLock<Vec<Card>> = LazyLock::new(|| {
    let card = "GPU UUID: GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa\nDevice Minor: 0";
    Card::parse(card).into_iter().collect()
});

/// The annotations that some convention reads.
pub const ANNOTATIONS: [&str; 17] = [
    "gpucap/mem",
    "gpucap/core-pct",
    "gpucap/profile",
    "hami.io/vgpu-devices-allocated",
    "hami.io/vgpu-devices-to-allocate",
    "volcano.sh/vgpu-ids-new",
    "nvidia.com/real-allocated",
    "nvidia.com/pre-allocated",
    "scheduler.framework.gpushare.allocation",
    "gpushare.alibabacloud.com/core-percentage",
    "scheduling.koordinator.sh/device-allocated",
    "io.kubernetes.cri-o.Labels",
    "nvidia.com/container.app.gpu-memory.limit",
    "nvidia.com/container.app.gpu-compute.portion",
    "gpucap/core-policy",
    "gpucap/core-max-pct",
    "gpucap/core-priority",
];

/// `process.env`, an entry a line.
pub fn environment(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let container = Container { env: Env::new(text.lines()), ..CONTAINER.clone() };
    plan(&container, None, None, None, None);
}

/// What a runtime says on standard input.
pub fn state(bytes: &[u8]) {
    if let Ok(state) = State::parse(bytes) {
        plan(&CONTAINER, Some(&state), None, None, None);
    }
}

/// `config.json`.
pub fn config(bytes: &[u8]) {
    plan(&container(bytes), None, None, None, None);
}

/// The node's configuration.
pub fn node(bytes: &[u8]) {
    plan(&CONTAINER, None, Some(bytes), None, None);
}

/// A node-local allocation.
pub fn allocation(bytes: &[u8]) {
    plan(&CONTAINER, None, None, Some(bytes), None);
}

/// The kubelet's checkpoint.
pub fn checkpoint(bytes: &[u8]) {
    plan(&CONTAINER, None, Some(br#"{"time_slicing": "enforce"}"#), None, Some(bytes));
}

/// The checkpoint of NVIDIA's DRA driver.
pub fn claims(bytes: &[u8]) {
    static WITH_GPU: LazyLock<Container> = LazyLock::new(|| Container {
        gpu: Some("/dev/nvidia0".into()),
        is_assigned_gpu: true,
        ..CONTAINER.clone()
    });
    static NODE: LazyLock<Node> = LazyLock::new(|| {
        Node::parse(Node::PATH, br#"{"dra_checkpoint": "/c"}"#).expect("a configuration")
    });
    check(&Sources {
        state: None,
        container: &WITH_GPU,
        node: Ok(&NODE),
        cards: &CARDS,
        allocations: &[],
        checkpoint: NodeFile::Off,
        claims: NodeFile::Read(bytes),
        calibration: None,
        driver: None,
        user_namespaces: true,
    });
}

/// What was measured of the cards.
pub fn calibration(bytes: &[u8]) {
    static AUTO: LazyLock<Node> = LazyLock::new(|| {
        Node::parse(Node::PATH, br#"{"native_limits": "auto"}"#).expect("a configuration")
    });
    check(&Sources {
        state: None,
        container: &CONTAINER,
        node: Ok(&AUTO),
        cards: &[],
        allocations: &[],
        checkpoint: NodeFile::Off,
        claims: NodeFile::Off,
        calibration: Some(Ok(bytes)),
        driver: Some("595.10.01"),
        user_namespaces: true,
    });
}

/// The first byte chooses an annotation, the others are its value.
pub fn annotations(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let mut container = CONTAINER.clone();
    let key = ANNOTATIONS[usize::from(*first) % ANNOTATIONS.len()];
    container.annotations.insert(key.into(), String::from_utf8_lossy(rest).into_owned());
    plan(&container, None, None, None, None);
}

fn container(bytes: &[u8]) -> Container {
    Container::parse(bytes).unwrap_or_default()
}

fn plan(
    container: &Container,
    state: Option<&State>,
    node: Option<&[u8]>,
    allocation: Option<&[u8]>,
    checkpoint: Option<&[u8]>,
) {
    let node = node.map(|bytes| Node::parse(Node::PATH, bytes));
    check(&Sources {
        state,
        container,
        node: node.as_ref().map_or(Ok(&NODE), Result::as_ref),
        cards: &CARDS,
        allocations: allocation.map(<[u8]>::to_vec).as_slice(),
        checkpoint: checkpoint.map_or(NodeFile::Off, NodeFile::Read),
        claims: NodeFile::Off,
        calibration: None,
        driver: None,
        user_namespaces: true,
    });
}

fn check(sources: &Sources<'_>) {
    let decision = decide(sources);
    assert!(decision.notes.iter().all(|note| !note.text.contains(['\n', '\x1b'])), "{decision:?}");
    match decision.plan {
        Plan::Limits(file) => {
            assert_eq!(LimitsFile::parse(file.write().as_bytes()), Ok(file), "not read back");
        }
        Plan::Refuse(reason) => {
            let line = reason.to_string();
            assert!(!line.contains(['\n', '\r', '\x1b']), "more than a line: {line:?}");
        }
        Plan::NotAsked => {}
    }
}
