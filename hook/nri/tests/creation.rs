//! The planner's input for a container, and the same plan by the hook from what was added.

use gpucap_nri::message::{
    CdiDevice, Container, ContainerAdjustment, CreateContainerRequest, Hook, Hooks, LinuxContainer,
    LinuxDevice, Mount, PodSandbox,
};
use gpucap_nri::{Adjustment, Creation};
use gpucap_plan::{Card, Node, NodeFile, Plan, Sources, decide};
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const A: &str = "GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
const B: &str = "GPU-bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";

fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn request(pod: &[(&str, &str)], env: &[&str]) -> CreateContainerRequest {
    CreateContainerRequest {
        pod: Some(PodSandbox {
            name: "p".into(),
            uid: "u1".into(),
            namespace: "n".into(),
            annotations: annotations(pod),
        }),
        container: Some(Container {
            name: "app".into(),
            env: env.iter().map(|&entry| entry.into()).collect(),
            ..Default::default()
        }),
    }
}

fn planned(container: &gpucap_plan::Container, node: &Node) -> Plan {
    let cards = [A, B].map(|uuid| Card::parse(&format!("GPU UUID: {uuid}\nDevice Minor: 0")));
    let cards: Vec<Card> = cards.into_iter().flatten().collect();
    decide(&Sources {
        state: None,
        container,
        node: Ok(node),
        cards: &cards,
        allocations: &[],
        checkpoint: NodeFile::Off,
        claims: NodeFile::Off,
        calibration: None,
        driver: None,
        user_namespaces: true,
    })
    .plan
}

fn hooks() -> [(&'static str, Value); 2] {
    let hook = |stage: &str| json!({"path": "/g", "args": ["gpucap", "hook", stage], "env": ["PATH=/bin"], "timeout": 10});
    [("createRuntime", hook("createRuntime")), ("poststop", hook("poststop"))]
}

fn adjusted(request: &CreateContainerRequest) -> ContainerAdjustment {
    let (node, creation) = (Node::default(), Creation::of(request.clone()));
    let Plan::Limits(limits) = planned(&creation.container(&node), &node) else {
        panic!("no limits: {request:?}")
    };
    let Adjustment(adjustment) = creation.adjust(&node, &limits, &hooks());
    adjustment
}

#[test]
fn variables_annotations_and_hooks_are_added() {
    let adjustment = adjusted(&request(&[("gpucap/core-pct", "30")], &["GPU_MEM_LIMIT=1Gi"]));
    let env: Vec<_> =
        adjustment.env.iter().map(|it| (it.key.as_str(), it.value.as_str())).collect();
    assert_eq!(env, [("GPU_MEM_LIMIT", "1GiB"), ("GPU_CORE_PCT", "30%")]);
    let expected = annotations(&[("gpucap/core-pct", "30%"), ("gpucap/mem", "1GiB")]);
    assert_eq!(adjustment.annotations, expected);
    let hooks = adjustment.hooks.expect("hooks");
    let [hook] = &hooks.create_runtime[..] else { panic!("{hooks:?}") };
    assert_eq!(
        (hook.path.as_str(), hook.args.join(" ")),
        ("/g", "gpucap hook createRuntime".into())
    );
    assert_eq!((hook.env.len(), hook.timeout.as_ref().map(|it| it.value)), (1, Some(10)));
    assert_eq!(hooks.poststop[0].args[2], "poststop");
}

#[test]
fn a_hook_that_is_there_is_not_added_again() {
    let mut request = request(&[], &["GPU_MEM_LIMIT=1Gi"]);
    let hooks = adjusted(&request).hooks.expect("hooks");
    // One of another program stays beside ours.
    let other = Hook { path: "/other".into(), ..Default::default() };
    let held =
        Hooks { create_runtime: vec![other, hooks.create_runtime[0].clone()], poststop: vec![] };
    request.container.as_mut().unwrap().hooks = Some(held);
    let added = adjusted(&request).hooks.expect("hooks");
    assert_eq!((added.create_runtime.len(), added.poststop.len()), (0, 1));
}

#[test]
fn only_annotations_that_a_convention_reads_are_passed_on() {
    let pod = [
        ("gpucap/mem", "1Gi"),
        ("hami.io/vgpu-devices-allocated", ""),
        ("io.kubernetes.cri.container-type", "sandbox"),
        ("io.kubernetes.cri-o.ContainerType", "sandbox"),
        ("cdi.k8s.io/x", "nvidia.com/gpu=all"),
        ("gpucapx/mem", "2Gi"),
        ("gpucap", "x"),
    ];
    let mut request = request(&pod, &[]);
    let expected = annotations(&[("gpucap/mem", "1GiB"), ("hami.io/vgpu-devices-allocated", "")]);
    assert_eq!(adjusted(&request).annotations, expected);
    // Those of the container itself are there already, and hold.
    let own = annotations(&[("hami.io/vgpu-devices-allocated", ""), ("gpucap/mem", "3Gi")]);
    request.container.as_mut().unwrap().annotations = own;
    assert_eq!(adjusted(&request).annotations, annotations(&[("gpucap/mem", "3GiB")]));
}

#[test]
fn another_domain_of_ours_is_the_one_that_is_read() {
    let node = Node::parse(Node::PATH, br#"{"annotation_domain": "own.example"}"#).unwrap();
    let pod = [("own.example/mem", "1Gi"), ("gpucap/mem", "1Mi")];
    let creation = Creation::of(request(&pod, &[]));
    let container = creation.container(&node);
    let Plan::Limits(limits) = planned(&container, &node) else { panic!("no limits") };
    let Adjustment(adjustment) = creation.adjust(&node, &limits, &hooks());
    assert_eq!(adjustment.annotations, annotations(&[("own.example/mem", "1GiB")]));
}

#[test]
fn the_runtime_says_which_container_it_is_and_no_annotation_does() {
    let mut request = request(&[("gpucap/mem.app", "1Gi")], &[]);
    let forged = annotations(&[("io.kubernetes.cri.container-name", "other")]);
    request.container.as_mut().unwrap().annotations = forged;
    assert_eq!(adjusted(&request).env[0].value, "1GiB");
}

#[test]
fn a_gpu_is_seen_by_every_sign() {
    let node = Node::default();
    let gpu = |change: &dyn Fn(&mut Container)| {
        let mut request = request(&[], &[]);
        change(request.container.as_mut().unwrap());
        Creation::of(request).container(&node).gpu
    };
    assert_eq!(gpu(&|_| {}), None);
    let device = || LinuxDevice { path: "/dev/nvidia0".into(), ..LinuxDevice::default() };
    let found = gpu(&|it| it.linux = Some(LinuxContainer { devices: vec![device()] }));
    assert_eq!(found.as_deref(), Some("/dev/nvidia0"));
    let renamed = LinuxDevice { path: "/dev/gpu0".into(), kind: "c".into(), major: 195, minor: 0 };
    let found = gpu(&|it| it.linux = Some(LinuxContainer { devices: vec![renamed.clone()] }));
    assert_eq!(found.as_deref(), Some("/dev/gpu0"));
    let found = gpu(&|it| it.mounts = vec![Mount { destination: "/dev/nvidiactl".into() }]);
    assert_eq!(found.as_deref(), Some("/dev/nvidiactl"));
    let found = gpu(&|it| it.env = vec!["NVIDIA_VISIBLE_DEVICES=all".into()]);
    assert_eq!(found.as_deref(), Some("NVIDIA_VISIBLE_DEVICES"));
    let found = gpu(&|it| it.cdi_devices = vec![CdiDevice { name: "nvidia.com/gpu=0".into() }]);
    assert_eq!(found.as_deref(), Some("CDI device nvidia.com/gpu=0"));
    let claim = "k8s.gpu.nvidia.com/claim=1-gpu-0";
    let found = gpu(&|it| it.cdi_devices = vec![CdiDevice { name: claim.into() }]);
    assert_eq!(found.as_deref(), Some("CDI device k8s.gpu.nvidia.com/claim=1-gpu-0"));
    let other = gpu(&|it| it.cdi_devices = vec![CdiDevice { name: "x.org/nic=0".into() }]);
    assert_eq!(other, None);
}

#[test]
fn a_device_file_alone_shows_no_assignment_for_a_privileged_container_has_all() {
    let assigned = |change: &dyn Fn(&mut Container)| {
        let mut request = request(&[], &[]);
        change(request.container.as_mut().unwrap());
        Creation::of(request).container(&Node::default()).is_assigned_gpu
    };
    let device = || LinuxDevice { path: "/dev/nvidia0".into(), ..LinuxDevice::default() };
    assert!(!assigned(&|it| it.linux = Some(LinuxContainer { devices: vec![device()] })));
    let claim = "k8s.gpu.nvidia.com/claim=1-gpu-0";
    assert!(assigned(&|it| it.cdi_devices = vec![CdiDevice { name: claim.into() }]));
    assert!(assigned(&|it| it.env = vec!["NVIDIA_VISIBLE_DEVICES=0".into()]));
    assert!(!assigned(&|it| it.env = vec!["NVIDIA_VISIBLE_DEVICES=all".into()]));
}

#[test]
fn a_name_is_fit_for_one_line() {
    let mut request = request(&[], &[]);
    request.container.as_mut().unwrap().name = "a\nb".into();
    assert_eq!(Creation::of(request).name(), "a\\nb of pod n/p");
}

/// What a runtime makes of it: the document that the hook reads. Each variable is set as containerd's generator does it:
/// the first of its name is replaced, then the later ones of the old list are set over it.
fn document(request: &CreateContainerRequest, adjustment: &ContainerAdjustment) -> Value {
    let container = request.container.as_ref().unwrap();
    let mut env: BTreeMap<&str, &str> = BTreeMap::new();
    let mut new: BTreeMap<&str, &str> =
        adjustment.env.iter().map(|it| (it.key.as_str(), it.value.as_str())).collect();
    for (name, value) in container.env.iter().filter_map(|entry| entry.split_once('=')) {
        env.insert(name, new.remove(name).unwrap_or(value));
    }
    env.extend(new);
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut annotations = container.annotations.clone();
    annotations.extend(adjustment.annotations.clone());
    let pod = request.pod.as_ref().unwrap();
    annotations.insert("io.kubernetes.cri.sandbox-uid".into(), pod.uid.clone());
    annotations.insert("io.kubernetes.cri.container-name".into(), container.name.clone());
    json!({
        "process": {"env": env}, "annotations": annotations, "linux": {"namespaces": [{"type": "mount"}]},
    })
}

/// The hook's plan, if the runtime applied the additions.
fn planned_again(request: &CreateContainerRequest, adjustment: &ContainerAdjustment) -> Plan {
    let document = document(request, adjustment);
    planned(&gpucap_plan::Container::of(&document), &Node::default())
}

#[test]
fn a_variable_that_is_named_twice_does_not_lose_its_lower_value() {
    for env in
        [["GPU_MEM_LIMIT=1Gi", "GPU_MEM_LIMIT=4Gi"], ["GPU_MEM_LIMIT=4Gi", "GPU_MEM_LIMIT=1Gi"]]
    {
        let request = request(&[], &env);
        let Plan::Limits(limits) = planned_again(&request, &adjusted(&request)) else {
            panic!("no limits")
        };
        assert_eq!(
            limits.entries[0].memory.bytes.map(|bytes| bytes.to_string()).as_deref(),
            Some("1GiB")
        );
    }
}

fn words() -> impl Strategy<Value = (Vec<&'static str>, Vec<(&'static str, &'static str)>)> {
    let env = vec![
        "GPU_MEM_LIMIT=4Gi",
        "GPU_MEM_LIMIT=25%",
        "GPU_MEM_LIMIT=0=3Gi,1=9Gi",
        "GPU_MEM_LIMIT=1=2Gi",
        "GPU_CORE_PCT=30",
        "GPU_CORE_PCT=1=20",
        "GPU_PROFILE=1g.5gb",
        "GPU_PROFILE=2g",
        "CUDA_DEVICE_MEMORY_LIMIT_0=3000m",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=12.5",
        "NVIDIA_VISIBLE_DEVICES=all",
    ];
    let annotations = vec![
        ("gpucap/mem", "5Gi"),
        ("gpucap/mem.app", "1=3Gi"),
        ("gpucap/profile", "3g"),
        (
            "hami.io/vgpu-devices-allocated",
            "GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa,NVIDIA,3000,30:;",
        ),
        ("volcano.sh/vgpu-ids-new", "GPU-bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb,NVIDIA,4500,25:;"),
        ("scheduler.framework.gpushare.allocation", "{\"0\":{\"0\":3,\"1\":5}}"),
        ("aliyun.com/gpu-core.percentage", "25"),
    ];
    let named_once = |env: Vec<&'static str>| {
        let name = |entry: &'static str| entry.split_once('=').map(|(name, _)| name);
        let mut names = Vec::new();
        env.into_iter()
            .filter(|entry| {
                !names.contains(&name(entry)) && {
                    names.push(name(entry));
                    true
                }
            })
            .collect()
    };
    (subsequence(env, 0..7).prop_shuffle().prop_map(named_once), subsequence(annotations, 0..5))
}

proptest! {
    #[test]
    fn the_hook_comes_to_the_same_plan((env, pod) in words()) {
        let (node, request) = (Node::default(), request(&pod, &env));
        let creation = Creation::of(request.clone());
        if let Plan::Limits(limits) = planned(&creation.container(&node), &node) {
            let Adjustment(adjustment) = creation.adjust(&node, &limits, &hooks());
            match planned_again(&request, &adjustment) {
                Plan::Limits(again) => prop_assert_eq!(again.entries, limits.entries),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn no_bytes_make_the_plugin_panic(bytes in any::<Vec<u8>>(), (env, pod) in words(), step in any::<u8>()) {
        super::fuzz::nri(&bytes);
        let question = super::asked(7, "CreateContainer", &request(&pod, &env));
        super::fuzz::nri(&[&[step], &question[..], &bytes].concat());
    }
}
