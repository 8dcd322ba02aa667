//! What was measured of the cards: what of it is believed, what a context costs by it, and where the driver itself
//! keeps a limit.

use crate::case::{A, B, M, decided, named, notes};
use gpucap_plan::{Calibration, Decision, Measured, Plan, running_driver};
use serde_json::{Value, json};

const GIB: u64 = 1 << 30;
const DRIVER: &str = "595.10.01";

/// Two GPUs: A, with large contexts and memory that the driver can limit, and B.
pub(crate) fn measured() -> Calibration {
    let gpu = |name: &str, context, native_limits| Measured {
        name: name.parse().expect("a name"),
        context,
        total: 40 * GIB,
        native_limits,
    };
    Calibration {
        driver: DRIVER.into(),
        gpus: vec![gpu(A, 400 << 20, true), gpu(B, 300 << 20, false)],
    }
}

/// A container that asks for this, on a node with these keys.
fn asked(env: &str, node: Value) -> Decision {
    decided(&json!({
        "env": [env], "node": node, "calibration": measured().text(), "driver": DRIVER,
    }))
}

/// What the limits file says of each GPU.
fn said(decision: &Decision) -> Vec<(String, String, Option<u64>)> {
    let Plan::Limits(file) = &decision.plan else { panic!("{:?}", decision.plan) };
    let entries = file.entries.iter();
    entries.map(|entry| (entry.key.to_string(), entry.memory.to_string(), entry.context)).collect()
}

fn native_limits(decision: &Decision) -> Vec<(String, u64)> {
    decision
        .native_limits
        .iter()
        .map(|native_limit| (native_limit.gpu.to_string(), native_limit.bytes))
        .collect()
}

#[test]
fn what_was_written_is_read() {
    let text = measured().text();
    assert_eq!(Calibration::parse(text.as_bytes(), Some(DRIVER)), Ok(measured()));
}

#[test]
fn a_context_costs_what_was_measured_on_its_card_and_on_any_the_dearest() {
    let each = named("GPU_MEM_LIMIT=$A=4Gi,$B=8Gi");
    let prices: Vec<_> = said(&asked(&each, json!({}))).into_iter().map(|it| it.2).collect();
    // A, B, and what no variable names.
    assert_eq!(prices, [400 << 20, 300 << 20, 400 << 20].map(Some));
    assert_eq!(said(&asked("GPU_MEM_LIMIT=4Gi", json!({})))[0].2, Some(400 << 20));
}

#[test]
fn the_administrators_price_comes_first() {
    let decision = asked("GPU_MEM_LIMIT=4Gi", json!({"context_mem": "500Mi"}));
    assert_eq!(said(&decision)[0].2, Some(500 << 20));
}

#[test]
fn a_card_that_was_not_measured_has_no_price() {
    let decision = asked(&named("GPU_MEM_LIMIT=$M=4Gi"), json!({}));
    assert_eq!(said(&decision)[0], (M.into(), "4GiB".into(), None));
}

#[test]
fn an_implausible_file_is_a_note_and_no_price() {
    let gpu = |key: &str, value: Value| {
        let mut file: Value = serde_json::from_str(&measured().text()).expect("JSON");
        file["gpus"][B][key] = value;
        file.to_string()
    };
    for (text, driver, why) in [
        (measured().text(), "595.10.02", "it is that of driver \"595.10.01\""),
        (measured().text(), "", "it is that of driver \"595.10.01\""),
        (gpu("context_bytes", json!(0)), DRIVER, "bbbb\": context_bytes is 0"),
        (gpu("context_bytes", json!((4 * GIB) + 1)), DRIVER, "bbbb\": context_bytes is 4294967297"),
        (gpu("context_bytes", json!(-1)), DRIVER, "bbbb\": invalid value: integer `-1`"),
        (gpu("context_bytes", json!("300Mi")), DRIVER, "bbbb\": invalid type: string \"300Mi\""),
        (gpu("context_bytes", Value::Null), DRIVER, "bbbb\": invalid type: null"),
        (gpu("native_limits", json!("yes")), DRIVER, "bbbb\": invalid type: string \"yes\""),
        (gpu("total_bytes", json!(0)), DRIVER, "bbbb\": total_bytes is 0"),
        (measured().text().replace("GPU-b", "GPU-x"), DRIVER, "is no GPU"),
        (measured().text().replace("\"version\": 1", "\"version\": 2"), DRIVER, "version"),
        ("{}".into(), DRIVER, "version"),
        ("{".into(), DRIVER, "driver.json cannot be read"),
        (String::new(), DRIVER, "driver.json cannot be read"),
    ] {
        let case = json!({"env": ["GPU_MEM_LIMIT=4Gi"], "calibration": text, "driver": driver});
        let decision = decided(&case);
        assert_eq!(said(&decision), [("*".into(), "4GiB".into(), None)], "{text}");
        let [note] = &notes(&decision)[..] else { panic!("{:?}", decision.notes) };
        assert!(note.contains(why) && note.ends_with("run `gpucap calibrate`"), "{note}");
    }
    let case = json!({"env": ["GPU_MEM_LIMIT=4Gi"], "calibration": measured().text()});
    assert!(notes(&decided(&case))[0].contains("does not say which driver runs"));
    // Nothing was measured, nothing is said.
    assert!(decided(&json!({"env": ["GPU_MEM_LIMIT=4Gi"]})).notes.is_empty());
    // Nor to a container that asks for nothing.
    assert!(decided(&json!({"calibration": "{", "driver": "1.0"})).notes.is_empty());
}

#[test]
fn the_largest_plausible_price_is_accepted() {
    let file = measured().text().replace(&(300_u64 << 20).to_string(), &(4 * GIB).to_string());
    assert!(Calibration::parse(file.as_bytes(), Some(DRIVER)).is_ok());
}

#[test]
fn the_driver_keeps_nothing_unless_the_node_says_so() {
    let decision = asked("GPU_MEM_LIMIT=4Gi", json!({}));
    assert!(decision.native_limits.is_empty() && decision.notes.is_empty(), "{decision:?}");
}

#[test]
fn a_wall_stands_where_the_driver_can_keep_it_and_has_the_bytes_of_the_limit() {
    let auto = json!({"native_limits": "auto"});
    let decision = asked("GPU_MEM_LIMIT=4Gi", auto.clone());
    assert_eq!(native_limits(&decision), [(A.into(), 4 * GIB)]);
    assert_eq!(notes(&decision), [format!("the driver too keeps {A} to 4GiB")]);
    // At most the card.
    assert_eq!(native_limits(&asked("GPU_MEM_LIMIT=64Gi", auto.clone())), [(A.into(), 40 * GIB)]);
    // Time alone is nothing to it.
    let decision = asked("GPU_CORE_PCT=30", auto.clone());
    assert!(decision.native_limits.is_empty() && decision.notes.is_empty(), "{decision:?}");
    // Where there is none, that is worth a line.
    let decision = asked(&named("GPU_MEM_LIMIT=$B=4Gi"), auto);
    assert!(decision.native_limits.is_empty() && notes(&decision)[0].contains("the library alone"));
}

#[test]
fn a_percentage_is_one_of_the_card_and_stays_in_the_file() {
    let decision = asked("GPU_MEM_LIMIT=25%", json!({"native_limits": "auto"}));
    assert_eq!(said(&decision), [("*".into(), "25%".into(), Some(400 << 20))]);
    assert_eq!(native_limits(&decision), [(A.into(), 10 * GIB)]);
}

#[test]
fn a_wall_that_is_demanded_and_cannot_be_refuses() {
    let required = || json!({"native_limits": "required"});
    let why = |decision: Decision| match decision.plan {
        Plan::Refuse(reason) => reason.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(why(asked("GPU_MEM_LIMIT=4Gi", required())).contains(&format!("for {B} it does not")));
    assert!(why(asked(&named("GPU_MEM_LIMIT=$M=4Gi"), required())).contains("has not looked"));
    let unmeasured = |driver: &str| {
        decided(&json!({
            "env": ["GPU_MEM_LIMIT=4Gi"], "node": required(), "cards": false,
            "calibration": measured().text(), "driver": driver,
        }))
    };
    assert!(why(unmeasured("1.0")).contains("for * it does not"), "{:?}", unmeasured("1.0"));
    // An unlimited GPU needs none.
    assert_eq!(
        native_limits(&asked(&named("GPU_MEM_LIMIT=$A=4Gi"), required())),
        [(A.into(), 4 * GIB)]
    );
    assert!(matches!(asked("GPU_CORE_PCT=30", required()).plan, Plan::Limits(_)));
}

#[test]
fn the_driver_that_runs_is_read_from_its_own_file() {
    for (text, version) in [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.309.01  Tue Jan 2 00:00:00 UTC\nGCC version:  gcc 12.2.0\n",
            Some("535.309.01"),
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.10.01  Release Build  (b@c)\n",
            Some("595.10.01"),
        ),
        ("NVRM version: NVIDIA UNIX\nGCC version: 12.2.0\n", None),
        ("NVRM version: . .. 1. .1\n", None),
        ("", None),
    ] {
        assert_eq!(running_driver(text), version, "{text}");
    }
}
