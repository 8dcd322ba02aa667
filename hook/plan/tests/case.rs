//! What the tests share: a container made of a few words, and a plan in a form to compare.
//!
//! In fixtures `$A`, `$B` and `$C` stand for the names of three cards, `$M` for that of a MIG instance. The node has A
//! and B, in this order; their device files are numbered the other way round.

use gpucap_core::config::Slices;
use gpucap_plan::{
    Card, Container, Decision, Node, NodeError, NodeFile, Plan, Sources, State, decide,
};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) const A: &str = "GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
pub(crate) const B: &str = "GPU-bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";
pub(crate) const C: &str = "GPU-cccccccc-cccc-cccc-cccc-cccccccccccc";
pub(crate) const M: &str = "MIG-dddddddd-dddd-dddd-dddd-dddddddddddd";

/// The text with the names of the cards in it.
pub(crate) fn named(text: &str) -> String {
    [("$A", A), ("$B", B), ("$C", C), ("$M", M)]
        .iter()
        .fold(text.to_owned(), |text, (short, name)| text.replace(short, name))
}

pub(crate) fn cards() -> Vec<Card> {
    [(A, 1), (B, 0)]
        .map(|(name, minor)| {
            let name = name.parse().unwrap();
            Card { name, minor: Some(minor), slices: Slices::Seven, model: String::new() }
        })
        .into()
}

/// A `config.json` with the keys `env`, `annotations` and `config` of a case.
pub(crate) fn config(case: &Value) -> Value {
    let mut config = json!({
        "ociVersion": "1.0.2",
        "process": {"env": case["env"], "args": ["sleep"]},
        "root": {"path": "rootfs"},
        "annotations": case["annotations"],
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}]},
    });
    for (key, value) in case["config"].as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    config
}

/// The lines of a decision's notes.
pub(crate) fn notes(decision: &Decision) -> Vec<&str> {
    decision.notes.iter().map(|note| note.text.as_str()).collect()
}

/// The decision on a case: besides the container it may have `node`, `cards`, `allocation`, `checkpoint`, `claims` or a
/// `claims_file` of the directory `written`, `calibration`, `driver`, `user_namespaces`, `model`.
pub(crate) fn decided(case: &Value) -> Decision {
    let bytes = |key: &str| {
        case.get(key).map(|value| match value {
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        })
    };
    let container = Container::parse(config(case).to_string().as_bytes()).unwrap();
    let written = case["claims_file"].as_str().map(|name| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/written").join(name);
        named(&std::fs::read_to_string(file).expect("a file that was written")).into_bytes()
    });
    let claims = written.or_else(|| bytes("claims"));
    let node: Result<Node, NodeError> =
        bytes("node").map_or_else(|| Ok(Node::default()), |bytes| Node::parse(Node::PATH, &bytes));
    let mut cards = if case["cards"] == json!(false) { vec![] } else { cards() };
    // A model is that of B.
    if let (Some(model), Some(card)) = (case["model"].as_str(), cards.last_mut()) {
        card.slices = Slices::of_model(model);
    }
    let state = State { id: "4f6c".into(), ..State::default() };
    decide(&Sources {
        state: Some(&state),
        container: &container,
        node: node.as_ref(),
        cards: &cards,
        allocations: bytes("allocation").as_slice(),
        checkpoint: node_file(case, "checkpoint", bytes("checkpoint").as_deref()),
        claims: node_file(case, "claims", claims.as_deref()),
        calibration: bytes("calibration").as_deref().map(Ok),
        driver: case["driver"].as_str(),
        user_namespaces: case["user_namespaces"] == json!(true),
    })
}

/// A file of the node: `true` for one that is missing, `false` for one that cannot be read.
fn node_file<'a>(case: &Value, key: &str, bytes: Option<&'a [u8]>) -> NodeFile<'a> {
    match (&case[key], bytes) {
        (Value::Bool(true), _) => NodeFile::Missing,
        (Value::Bool(false), _) => NodeFile::Unusable("longer than 16777216 bytes"),
        (_, bytes) => bytes.map_or(NodeFile::Off, NodeFile::Read),
    }
}

/// The plan in words.
pub(crate) fn words(plan: &Plan) -> Value {
    match plan {
        Plan::NotAsked => json!("not asked"),
        Plan::Refuse(reason) => json!(format!("refused: {reason}")),
        Plan::Limits(file) => file
            .entries
            .iter()
            .map(|entry| {
                let core = entry.compute().map_or_else(|| "free".into(), |core| core.to_string());
                format!("{}: memory {}, time {core}", entry.key, entry.memory)
            })
            .collect(),
    }
}
