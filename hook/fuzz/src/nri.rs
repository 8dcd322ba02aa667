//! Untrusted bytes that reach the plugin: a whole session, from a stream that is cut in pieces.

use gpucap_nri::frame::{Decoder, Kind};
use gpucap_nri::{Answer, Name, Session};
use gpucap_plan::{Node, NodeFile, Plan, Sources, decide};
use serde_json::json;

/// The first byte says how long the pieces are, the others are what the runtime says. Fails by a panic: of the plugin, or
/// of the check that what it says back can be read.
pub fn nri(bytes: &[u8]) {
    let Some((step, rest)) = bytes.split_first() else { return };
    let name = Name::new("gpucap", "10").expect("a name");
    let (mut session, greeting) = Session::open(&name);
    let mut said = Decoder::default();
    assert_eq!(said.feed(&greeting).len(), 1, "it names itself");
    for piece in rest.chunks(usize::from(*step).max(1)) {
        let Ok(answer) = session.receive(piece, &mut |creation| plan(creation)) else { return };
        for (_, message) in said.feed(&answer) {
            assert_eq!(message.kind, Kind::Response, "it asks nothing more");
            assert!(message.body.is_some(), "its answer is too long");
        }
    }
}

fn plan(creation: &gpucap_nri::Creation) -> Answer {
    let node = Node::default();
    let container = creation.container(&node);
    assert!(!creation.name().contains(['\n', '\r', '\x1b']), "more than a line");
    let decision = decide(&Sources {
        state: None,
        container: &container,
        node: Ok(&node),
        cards: &[],
        allocations: &[],
        checkpoint: NodeFile::Off,
        claims: NodeFile::Off,
        calibration: None,
        driver: None,
        user_namespaces: true,
    });
    match decision.plan {
        Plan::NotAsked => Answer::Leave,
        Plan::Refuse(reason) => Answer::Refuse(reason.to_string()),
        Plan::Limits(limits) => {
            let hooks = [("createRuntime", json!({"path": "/gpucap", "args": ["gpucap"]}))];
            Answer::Adjust(Box::new(creation.adjust(&node, &limits, &hooks)))
        }
    }
}
