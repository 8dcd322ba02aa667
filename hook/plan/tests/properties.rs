//! What holds for any container: adding a source never raises, order changes nothing, nothing makes the planner panic.
//!
//! Containers are made of words that the conventions know, so that most of them come to a plan. What a plan means is
//! asked of the limits file itself: for each of a few devices, a MIG instance among them, what may be used.

use crate::allowed::{allowed, devices};
use crate::case::{A, B, decided};
use crate::fuzz;
use gpucap_core::limits::LimitsFile;
use gpucap_core::units::Share;
use gpucap_plan::{Plan, Reason, variables};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Value, json};

/// Everything a pod might say; each is one source.
fn words() -> Vec<Word> {
    let env = [
        "GPU_MEM_LIMIT=4Gi",
        "GPU_MEM_LIMIT=25%",
        "GPU_MEM_LIMIT=$A=2Gi,$B=8Gi",
        "GPU_MEM_LIMIT=$M=1Gi",
        "GPU_MEM_LIMIT=0=3Gi,1=9Gi",
        "GPU_CORE_PCT=30",
        "GPU_CORE_MAX_PCT=60",
        "GPU_CORE_MAX_PCT=$A=20",
        "GPU_PROFILE=1g.5gb",
        "GPU_PROFILE=$A=2g",
        "CUDA_DEVICE_MEMORY_LIMIT_0=3000m\nCUDA_DEVICE_MEMORY_LIMIT_1=1000m",
        "CUDA_DEVICE_SM_LIMIT=20",
        "CUDA_MEM_LIMIT_0=2048m",
        "CUDA_CORE_LIMIT_0=40",
        "ALIYUN_COM_GPU_MEM_CONTAINER=3",
        "ALIYUN_COM_GPU_MEM_DEV=40",
        "GPU_UTIL_PER_DEVICE=50",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=12.5",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G,1=6G",
        "GPU_PORTION=0.35",
        "NVIDIA_GPU_MEMORY_LIMIT=4096",
    ];
    let annotations = [
        ("gpucap/mem", "5Gi"),
        ("gpucap/mem.app", "$B=3Gi"),
        ("gpucap/core-pct", "60"),
        ("gpucap/core-max-pct", "75"),
        ("hami.io/vgpu-devices-allocated", "$A,NVIDIA,3000,30:$B,NVIDIA,4000,0:;"),
        ("hami.io/vgpu-devices-to-allocate", "$A,NVIDIA,2000,30:;"),
        ("volcano.sh/vgpu-ids-new", "$B,NVIDIA,4500,25:;"),
        ("nvidia.com/real-allocated", "app[0_$A_30_2048,1_$B_20_1024]"),
        ("scheduler.framework.gpushare.allocation", "{\"0\":{\"0\":3,\"1\":5}}"),
        ("aliyun.com/gpu-core.percentage", "25"),
        ("nvidia.com/container.app.gpu-memory.limit", "7Gi"),
        (
            "scheduling.koordinator.sh/device-allocated",
            "{\"gpu\":[{\"minor\":1,\"resources\":{\"koordinator.sh/gpu-memory\":\"8Gi\"}}]}",
        ),
    ];
    let named = crate::case::named;
    let env = env.map(|text| Word::Env(named(text)));
    let annotations = annotations.map(|(key, text)| Word::Annotation(key.into(), named(text)));
    let allocation = format!("{{\"gpus\":{{\"{A}\":{{\"mem\":\"6Gi\"}},\"{B}\":{{}}}}}}");
    let slices =
        format!("id=1,gpu={A},mem=5Gi,cores=45,for=n/a id=2,gpu={B},mem=2Gi,cores=80,for=n/b");
    let nodes =
        [Word::Slices(slices), Word::Checkpoint(named(CHECKPOINT)), Word::Claims(named(CLAIMS))];
    env.into_iter().chain(annotations).chain([Word::Allocation(allocation)]).chain(nodes).collect()
}

/// What a pod may say of lending.
fn policies() -> Vec<Word> {
    let env = ["GPU_CORE_POLICY=fixed", "GPU_CORE_POLICY=burst", "GPU_CORE_PRIORITY=low"];
    let annotations = [
        ("gpucap/core-policy", "burst"),
        ("gpucap/core-policy.app", "fixed"),
        ("gpucap/core-priority", "low"),
    ];
    let env = env.map(|text| Word::Env(text.into()));
    env.into_iter()
        .chain(annotations.map(|(key, text)| Word::Annotation(key.into(), text.into())))
        .collect()
}

/// A claim of the pod that takes 10 GiB of a card, and the whole of another one.
const CLAIMS: &str = r#"{"version": "v2", "v2": {"preparedClaims": {"c": {"checkpointState": "PrepareCompleted",
    "status": {"reservedFor": [{"resource": "pods", "uid": "u1"}], "allocation": {"devices": {"results": [
        {"driver": "gpu.nvidia.com", "device": "gpu-0", "consumedCapacity": {"memory": "10Gi"}},
        {"driver": "gpu.nvidia.com", "device": "gpu-1"}]}}},
    "preparedDevices": [{"devices": [{"gpu": {"info": {"uuid": "$A"}, "device": {"DeviceName": "gpu-0"}}},
        {"gpu": {"info": {"uuid": "$B"}, "device": {"DeviceName": "gpu-1"}}}]}]}}}}"#;

/// One of four replicas of a card, beside the whole of another one.
const CHECKPOINT: &str = r#"{"Data": {"PodDeviceEntries": [
    {"PodUID": "u1", "ContainerName": "app", "ResourceName": "nvidia.com/gpu.shared", "DeviceIDs": {"0": ["$A::1"]}},
    {"PodUID": "u1", "ContainerName": "app", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"0": ["$B"]}}],
    "RegisteredDevices": {"nvidia.com/gpu.shared": ["$A::0", "$A::1", "$A::2", "$A::3"], "nvidia.com/gpu": ["$B"]}}}"#;

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Env(String),
    Annotation(String, String),
    Allocation(String),
    Slices(String),
    Checkpoint(String),
    Claims(String),
}

impl Word {
    /// Whether the pod's author writes it.
    const fn is_of_pod(&self) -> bool {
        matches!(self, Self::Env(_) | Self::Annotation(..))
    }
}

/// A container that says these words. Its visible cards are never said, for they give numbers a meaning.
fn case(words: &[Word]) -> Value {
    let mut case = json!({
        "env": ["NVIDIA_VISIBLE_DEVICES=".to_owned() + B + "," + A, "AMP_VGPU_ENABLE=1", "RUNAI_NUM_OF_GPUS=1"],
        "annotations": {
            "io.kubernetes.cri.sandbox-uid": "u1", "io.kubernetes.cri.container-name": "app",
        },
        "node": {"time_slicing": "enforce", "dra_checkpoint": "/c"},
    });
    for word in words {
        match word {
            // The numbered variables of one plugin are one source: each also excludes the GPUs of the others.
            Word::Env(lines) => {
                let env = case["env"].as_array_mut().unwrap();
                env.extend(lines.lines().map(|entry| json!(entry)));
            }
            Word::Annotation(key, held) => case["annotations"][key] = json!(held),
            Word::Allocation(text) => case["allocation"] = json!(text),
            Word::Slices(text) => {
                let hook =
                    |slice| json!({"args": ["gpucap", "hook", "createRuntime", "--slice", slice]});
                case["config"]["hooks"]["createRuntime"] = text.split(' ').map(hook).collect();
            }
            Word::Checkpoint(text) => case["checkpoint"] = json!(text),
            Word::Claims(text) => case["claims"] = json!(text),
        }
    }
    case
}

/// A few of the words, in any order.
fn said() -> impl Strategy<Value = Vec<Word>> {
    subsequence(words(), 0..8).prop_shuffle()
}

proptest! {
    #[test]
    fn adding_a_source_never_raises(words in said(), more in select(words())) {
        let less = decided(&case(&words)).plan;
        let mut all = words;
        all.push(more);
        let plan = decided(&case(&all)).plan;
        for device in devices() {
            let (before, after) = (allowed(&less, &device), allowed(&plan, &device));
            prop_assert!(after.is_at_most(before), "{:?}: {:?} {:?}", device, less, plan);
        }
    }

    #[test]
    fn no_policy_raises_a_guarantee_and_lending_is_the_nodes(
        words in said(), policies in subsequence(policies(), 1..3), more in select(words()),
        lending in select(vec!["off", "allowed", "always"]), lending_max in prop::option::of(1_u16..=100),
    ) {
        let plan = |words: &[Word]| {
            let mut case = case(words);
            case["node"]["lending"] = json!(lending);
            case["node"]["lending_max"] = json!(lending_max);
            decided(&case).plan
        };
        let without = plan(&words);
        let with = plan(&[&words[..], &policies].concat());
        let and_more = plan(&[&words[..], &policies, &[more]].concat());
        for device in devices() {
            let [before, after, further] = [&without, &with, &and_more].map(|plan| allowed(plan, &device));
            prop_assert!(after.memory <= before.memory && after.guaranteed <= before.guaranteed);
            // Low priority that is refused for lack of a share is not with one.
            if with != Plan::Refuse(Reason::LowPriority) {
                prop_assert!(further.memory <= after.memory && further.guaranteed <= after.guaranteed);
            }
            if lending == "off" {
                prop_assert!(after.is_at_most(before), "{:?}: {:?} {:?}", device, without, with);
                prop_assert!(after.guaranteed == after.most);
            }
            if let Some(most) = lending_max.and_then(Share::from_percent).filter(|_| after.most != u16::MAX) {
                prop_assert!(after.most <= most.parts().max(after.guaranteed) || lending == "off");
            }
        }
    }

    #[test]
    fn no_pod_raises_what_the_node_assigned(
        words in said(), by_claim in any::<bool>(), off in any::<bool>(), another in any::<bool>()
    ) {
        let named = crate::case::named;
        let assigned = if by_claim { Word::Claims(named(CLAIMS)) } else { Word::Checkpoint(named(CHECKPOINT)) };
        let node = decided(&case(std::slice::from_ref(&assigned))).plan;
        let words: Vec<_> = words.into_iter().filter(Word::is_of_pod).collect();
        let mut pod = case(&[&words[..], &[assigned]].concat());
        let env = pod["env"].as_array_mut().unwrap();
        env.push(json!("NVIDIA_VISIBLE_DEVICES=all"));
        if off {
            env.push(json!("CUDA_DISABLE_CONTROL=1"));
        }
        if another {
            let labels = r#"{"io.kubernetes.pod.uid": "u2", "io.kubernetes.container.name": "app"}"#;
            pod["annotations"]["io.kubernetes.cri-o.Labels"] = json!(labels);
        }
        let plan = decided(&pod).plan;
        for device in devices() {
            let (given, used) = (allowed(&node, &device), allowed(&plan, &device));
            prop_assert!(used.is_at_most(given), "{:?}: {:?} {:?}", device, node, plan);
        }
    }

    #[test]
    fn the_order_of_what_is_said_changes_nothing(words in said(), by in any::<Index>()) {
        let mut turned = words.clone();
        if !turned.is_empty() {
            let by = by.index(turned.len());
            turned.rotate_left(by);
        }
        // Of one variable said twice the first is quoted, so only what is decided is compared.
        let (one, two) = (decided(&case(&words)).plan, decided(&case(&turned)).plan);
        for device in devices() {
            prop_assert_eq!(allowed(&one, &device), allowed(&two, &device));
        }
    }

    #[test]
    fn saying_it_twice_changes_nothing(words in said()) {
        let twice: Vec<Word> = words.iter().chain(&words).cloned().collect();
        prop_assert_eq!(decided(&case(&words)).plan, decided(&case(&twice)).plan);
        prop_assert_eq!(decided(&case(&words)), decided(&case(&words)));
    }

    #[test]
    fn the_variables_of_a_plan_change_nothing(
        words in said(), policies in subsequence(policies(), 0..3),
        lending in select(vec!["off", "allowed", "always"]), lending_max in prop::option::of(1_u16..=100),
    ) {
        let words = [words, policies].concat();
        let case = |words: &[Word]| {
            let mut case = case(words);
            case["node"]["lending"] = json!(lending);
            case["node"]["lending_max"] = json!(lending_max);
            case
        };
        let first = decided(&case(&words)).plan;
        if let Plan::Limits(file) = &first {
            let said = variables(file);
            let mut again = case(&words);
            let env = again["env"].as_array_mut().unwrap();
            let is_set = |entry: &Value| {
                said.iter().any(|(name, _)| entry.as_str().unwrap().starts_with(&format!("{name}=")))
            };
            env.retain(|entry| !is_set(entry));
            env.extend(said.iter().map(|(name, value)| json!(format!("{name}={value}"))));
            let second = decided(&again).plan;
            for device in devices() {
                prop_assert_eq!(allowed(&first, &device), allowed(&second, &device), "{:?}", said);
            }
        }
    }

    #[test]
    fn every_plan_is_a_limits_file(words in said()) {
        if let Plan::Limits(file) = decided(&case(&words)).plan {
            prop_assert!(!file.entries.is_empty());
            prop_assert_eq!(LimitsFile::parse(file.write().as_bytes()), Ok(file));
        }
    }

    #[test]
    fn a_refusal_is_one_line(words in said(), held in "\\PC*|(.|\n){0,40}", word in any::<Index>()) {
        let mut case = case(&words);
        let keys = ["gpucap/mem", "hami.io/vgpu-devices-allocated", "nvidia.com/real-allocated"];
        case["annotations"][keys[word.index(keys.len())]] = json!(held);
        if let Plan::Refuse(reason) = decided(&case).plan {
            let line = reason.to_string();
            prop_assert!(!line.contains(['\n', '\r', '\x1b']) && line.len() < 600, "{:?}", line);
        }
    }
}

/// Bytes that are anything, or a document that one or a few bytes were changed in.
fn damaged(document: String) -> impl Strategy<Value = Vec<u8>> {
    let bytes = document.into_bytes();
    let edits = prop::collection::vec((any::<Index>(), any::<u8>(), any::<bool>()), 0..6);
    let mutated = edits.prop_map(move |edits| {
        let mut bytes = bytes.clone();
        for (at, byte, cut) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
        }
        bytes
    });
    prop_oneof![1 => any::<Vec<u8>>(), 6 => mutated]
}

fn fixture(path: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/{path}", env!("CARGO_MANIFEST_DIR")))
        .expect("a fixture")
}

/// A document of a case of a golden file.
fn part(path: &str, key: &str) -> String {
    let cases: Value = serde_json::from_str(&crate::case::named(&fixture(path))).expect("cases");
    let found = cases.as_array().into_iter().flatten().find_map(|case| case.get(key));
    found.expect("a document").to_string()
}

fn any_config() -> impl Strategy<Value = Vec<u8>> {
    said().prop_flat_map(|words| damaged(crate::case::config(&case(&words)).to_string()))
}

fn any_annotation() -> impl Strategy<Value = Vec<u8>> {
    let words = "[A-Za-z0-9_,:;{}\\[\\]\"/-]{0,60}".prop_map(String::into_bytes);
    let held = words.prop_flat_map(|bytes| damaged(String::from_utf8(bytes).unwrap()));
    (any::<u8>(), held).prop_map(|(first, held)| [vec![first], held].concat())
}

proptest! {
    /// The entries of the fuzz targets, with as many random documents as a test has time for.
    #[test]
    fn no_bytes_make_the_planner_panic(
        state in damaged(fixture("states/crun-createRuntime.json")),
        config in any_config(),
        node in damaged(r#"{"sources":["hami"],"context_mem":"1Gi","lending":"always","lending_max":80,"open":true}"#.into()),
        allocation in damaged(part("golden/allocation.json", "allocation")),
        checkpoint in prop_oneof![
            damaged(part("golden/kubelet.json", "checkpoint")),
            damaged(crate::case::named(CHECKPOINT)),
        ],
        claims in damaged(crate::case::named(CLAIMS)),
        annotation in any_annotation(),
        environment in damaged(
            "GPU_MEM_LIMIT=4Gi\nGPU_MEM_LIMIT=0=1Gi\nCUDA_DEVICE_MEMORY_LIMIT_0=1g\n".into()
        ),
        calibration in damaged(crate::calibration::measured().text()),
    ) {
        fuzz::state(&state);
        fuzz::config(&config);
        fuzz::node(&node);
        fuzz::allocation(&allocation);
        fuzz::checkpoint(&checkpoint);
        fuzz::claims(&claims);
        fuzz::annotations(&annotation);
        fuzz::environment(&environment);
        fuzz::calibration(&calibration);
    }
}
