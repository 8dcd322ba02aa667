//! Each question of a runtime has its answer, and none ends the session but a refusal of the plugin.

use super::{asked, decoded};
use gpucap_nri::frame::{Connection, Kind, encode};
use gpucap_nri::message::{self, Response, Status};
use gpucap_nri::{Adjustment, Answer, Creation, Name, Session};
use prost::Message as _;

fn session() -> Session {
    Session::open(&Name::new("gpucap", "10").unwrap()).0
}

/// The answer to one request.
fn answer(session: &mut Session, bytes: &[u8], answer: Answer) -> Response {
    let said = session.receive(bytes, &mut |_| answer.clone()).expect("wanted");
    let [(Connection::Plugin, message)] = &decoded(&said)[..] else { panic!("{said:?}") };
    assert_eq!((message.stream, message.kind), (7, Kind::Response));
    Response::decode(message.body.as_deref().unwrap()).unwrap()
}

fn code(response: &Response) -> i32 {
    response.status.as_ref().expect("a status").code
}

#[test]
fn the_plugin_names_itself_first() {
    let (_, greeting) = Session::open(&Name::new("gpucap", "10").unwrap());
    let [(Connection::Runtime, message)] = &decoded(&greeting)[..] else { panic!("{greeting:?}") };
    let request = message::Request::decode(message.body.as_deref().unwrap()).unwrap();
    let expected =
        message::RegisterPluginRequest { plugin_name: "gpucap".into(), plugin_idx: "10".into() };
    assert_eq!((message.stream % 2, message.kind), (1, Kind::Request));
    assert_eq!(request.service, "nri.pkg.api.v1alpha1.Runtime");
    assert_eq!(
        (request.method.as_str(), request.payload),
        ("RegisterPlugin", expected.encode_to_vec())
    );
}

#[test]
fn names_are_those_that_a_runtime_accepts() {
    for (file, valid) in [
        ("10-gpucap", true),
        ("00-a.b_c+d-e", true),
        ("gpucap", false),
        ("1-gpucap", false),
        ("100-gpucap", false),
        ("1x-gpucap", false),
        ("10-", false),
        ("10-a b", false),
    ] {
        assert_eq!(Name::of_file(file).is_ok(), valid, "{file}");
    }
    assert_eq!(Name::of_file("10-gpucap").unwrap().to_string(), "10-gpucap");
}

#[test]
fn it_asks_for_containers_that_are_made_and_nothing_else() {
    let mut session = session();
    let request = message::ConfigureRequest {
        runtime_name: "containerd".into(),
        runtime_version: "v\n2".into(),
    };
    let response = answer(&mut session, &asked(7, "Configure", &request), Answer::Leave);
    let configured = message::ConfigureResponse::decode(response.payload.as_slice()).unwrap();
    // The event is number 4 of those that are counted from 1.
    assert_eq!((code(&response), configured.events), (0, 0b1000));
    assert_eq!(session.runtime(), "containerd v\\n2");
}

#[test]
fn it_is_ready_after_the_last_part_of_what_runs() {
    let mut session = session();
    for more in [true, true, false] {
        assert!(!session.is_ready());
        let request = message::SynchronizeRequest { more };
        let response = answer(&mut session, &asked(7, "Synchronize", &request), Answer::Leave);
        let answered = message::SynchronizeResponse::decode(response.payload.as_slice()).unwrap();
        assert_eq!((code(&response), answered.more), (0, more));
    }
    assert!(session.is_ready());
    assert_eq!(code(&answer(&mut session, &asked(7, "Shutdown", &()), Answer::Leave)), 0);
    assert!(!session.is_ready());
}

#[test]
fn a_container_is_left_adjusted_or_refused() {
    let mut session = session();
    let question = asked(7, "CreateContainer", &message::CreateContainerRequest::default());
    let left = answer(&mut session, &question, Answer::Leave);
    assert_eq!((code(&left), left.payload.len()), (0, 0));
    let env = vec![message::KeyValue { key: "A".into(), value: "b".into() }];
    let adjust = message::ContainerAdjustment { env, ..Default::default() };
    let adjusted = Answer::Adjust(Box::new(Adjustment(adjust.clone())));
    let adjusted = answer(&mut session, &question, adjusted);
    let created = message::CreateContainerResponse::decode(adjusted.payload.as_slice()).unwrap();
    assert_eq!((code(&adjusted), created.adjust), (0, Some(adjust)));
    let refused = answer(&mut session, &question, Answer::Refuse("why".into()));
    let status = refused.status.unwrap();
    assert_eq!((status.code, status.message.as_str()), (9, "why"));
}

#[test]
fn fields_of_newer_runtimes_change_nothing() {
    let container =
        message::Container { name: "app".into(), env: vec!["A=b".into()], ..Default::default() };
    let mut newer = container.encode_to_vec();
    // Fields 1000 to 1003: a number, a text, four and eight bytes.
    for (field, wire, bytes) in
        [(1000u32, 0u32, &[1u8][..]), (1001, 2, &[1, b'x']), (1002, 5, &[0; 4]), (1003, 1, &[0; 8])]
    {
        prost::encoding::encode_varint(u64::from(field << 3 | wire), &mut newer);
        newer.extend(bytes);
    }
    let mut request = vec![2 << 3 | 2, u8::try_from(newer.len()).unwrap()];
    request.extend(newer);
    let request = message::Request {
        service: message::PLUGIN.into(),
        method: "CreateContainer".into(),
        payload: request,
    };
    let bytes = encode(Connection::Plugin, 7, Kind::Request, &request.encode_to_vec());
    let mut seen = None;
    let mut plan = |creation: &Creation| {
        seen = Some(creation.container(&gpucap_plan::Node::default()));
        Answer::Leave
    };
    session().receive(&bytes, &mut plan).unwrap();
    let env: Vec<_> = seen.expect("asked").env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(env, ["A=b"]);
}

#[test]
fn what_cannot_be_answered_says_why_and_the_session_goes_on() {
    let mut session = session();
    let request = |service: &str, method: &str, payload: &[u8]| {
        let request = message::Request {
            service: service.into(),
            method: method.into(),
            payload: payload.to_vec(),
        };
        encode(Connection::Plugin, 7, Kind::Request, &request.encode_to_vec())
    };
    for (bytes, expected) in [
        (request(message::PLUGIN, "Dance", b""), 12),
        (request("other.Service", "CreateContainer", b""), 12),
        // A text that is none, a length beyond the end.
        (request(message::PLUGIN, "CreateContainer", &[0x12, 3, 0x1a, 1, 0xff]), 3),
        (request(message::PLUGIN, "CreateContainer", &[0x12, 99]), 3),
        (encode(Connection::Plugin, 7, Kind::Request, &[0xff]), 3),
    ] {
        let response = answer(&mut session, &bytes, Answer::Leave);
        assert_eq!(code(&response), expected, "{response:?}");
        assert!(!response.status.unwrap().message.is_empty());
    }
    let mut long = vec![0, 0, 0, 1, 0, 64, 0, 11, 0, 64, 0, 1, 0, 0, 0, 7, 1, 0];
    long.resize(long.len() + (4 << 20) + 1, 0);
    assert_eq!(code(&answer(&mut session, &long, Answer::Leave)), 8);
    let question = asked(7, "CreateContainer", &message::CreateContainerRequest::default());
    assert_eq!(code(&answer(&mut session, &question, Answer::Leave)), 0);
}

#[test]
fn a_message_that_was_not_asked_for_is_skipped() {
    let mut session = session();
    for (connection, kind) in [
        (Connection::Plugin, Kind::Response),
        (Connection::Plugin, Kind::Other(3)),
        (Connection::Runtime, Kind::Request),
        (Connection::Runtime, Kind::Response),
    ] {
        let bytes = encode(connection, 99, kind, b"x");
        let said = session.receive(&bytes, &mut |_| panic!("asked")).expect("wanted");
        assert!(said.is_empty(), "{connection:?} {kind:?}");
    }
}

#[test]
fn a_runtime_that_does_not_want_the_plugin_says_why() {
    for (status, wanted) in [
        (None, true),
        (Some(Status::default()), true),
        (Some(Status { code: 2, message: "no\nthanks".into() }), false),
    ] {
        let body = Response { status, payload: vec![] }.encode_to_vec();
        let bytes = encode(Connection::Runtime, 1, Kind::Response, &body);
        let said = session().receive(&bytes, &mut |_| panic!("asked"));
        assert_eq!(said.is_ok(), wanted);
        if let Err(refused) = said {
            assert_eq!(refused.0, "no\\nthanks");
        }
    }
}
