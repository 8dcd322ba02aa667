//! The documents of others, read leniently, and the administrator's, read strictly.
//!
//! `states/<runtime>-<stage>.json` have what each runtime says to a hook, with its peculiarities.

use gpucap_core::config::Slices;
use gpucap_plan::{
    Card, Container, ContainerIdentity, Lending, MountNamespace, Names, NativeLimits, NoGlibc,
    Node, Source, State,
};
use serde_json::json;
use std::collections::BTreeMap;

fn state(name: &str) -> State {
    let path = format!("{}/tests/states/{name}.json", env!("CARGO_MANIFEST_DIR"));
    State::parse(&std::fs::read(path).expect("a fixture")).expect("a state")
}

#[test]
fn the_state_of_each_runtime_is_read() {
    for (name, status, pid, bundle, root) in [
        ("runc-createRuntime", "creating", Some(4711), "/run/b/4f6c", None),
        ("runc-createContainer", "creating", Some(1), "/run/b/4f6c", None),
        ("runc-poststop", "stopped", None, "/run/b/4f6c", None),
        ("crun-createRuntime", "created", Some(4711), "/run/b/4f6c", Some("/run/b/4f6c/rootfs")),
        ("crun-createContainer", "creating", None, "/run/b/4f6c", Some("/run/b/4f6c/rootfs")),
        ("crun-startContainer", "starting", Some(4711), "/", Some("/run/b/4f6c/rootfs")),
        ("youki-createContainer", "creating", None, "/run/b/4f6c", None),
        ("youki-createRuntime", "creating", Some(4711), "/run/b/4f6c", None),
    ] {
        let state = state(name);
        assert_eq!(state.id, "4f6c", "{name}");
        assert_eq!(state.status.as_deref(), Some(status), "{name}");
        assert_eq!(state.waits(), status.starts_with("creat"), "{name}");
        assert_eq!((state.pid, state.bundle.as_str()), (pid, bundle), "{name}");
        assert_eq!(state.root.as_deref(), root, "{name}");
        assert_eq!(state.annotations["gpucap/mem"], "4Gi", "{name}");
    }
}

#[test]
fn a_state_without_id_or_bundle_is_refused() {
    for (text, why) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[]", "no id"),
        (r#"{"id":"","bundle":"/b"}"#, "no id"),
        (r#"{"id":"a"}"#, "no bundle"),
        (r#"{"id":"a","bundle":7}"#, "no bundle"),
    ] {
        let reason = State::parse(text.as_bytes()).expect_err(text).to_string();
        assert_eq!(reason, format!("the state that the runtime gave cannot be read: {why}"));
    }
}

#[test]
fn fields_of_another_type_are_not_there() {
    let text = r#"{"id":"a","bundle":"/b","pid":-7,"status":9,"annotations":{"x":1,"y":"z"}}"#;
    let state = State::parse(text.as_bytes()).expect("a state");
    assert_eq!((state.pid, state.status), (None, None));
    assert_eq!(state.annotations, BTreeMap::from([("y".into(), "z".into())]));
}

#[test]
fn what_config_json_says_is_read() {
    let config = json!({
        "process": {"env": ["A=1", "B", 7, "C=2=3"]},
        "root": {"path": "rootfs", "readonly": true},
        "linux": {"namespaces": [
            {"type": "mount", "path": "/proc/7/ns/mnt"}, {"type": "user"}, {"type": "of 2030"},
        ]},
    });
    let container = Container::of(&config);
    assert_eq!(container.env.iter().collect::<Vec<_>>(), [("A", "1"), ("C", "2=3")]);
    assert_eq!((container.root.as_deref(), container.readonly_root), (Some("rootfs"), true));
    assert_eq!(container.mount_namespace, MountNamespace::Joined("/proc/7/ns/mnt".into()));
    assert!(container.user_namespace && !container.privileged && container.gpu.is_none());
    let nothing = Container { may_unshare: true, ..Container::default() };
    assert_eq!(Container::of(&json!([])), nothing);
}

#[test]
fn strings_that_are_not_utf_8_are_ignored() {
    let container =
        Container::parse(b"{\"process\":{\"env\":[\"A=\xff\",\"B=1\"]}}").expect("read");
    assert_eq!(container.env.iter().last(), Some(("B", "1")));
}

#[test]
fn no_name_leads_out_of_the_directory_of_allocations() {
    let of = |pod: &str, container: &str| {
        let all = ContainerIdentity::all_of(&BTreeMap::from([
            ("io.kubernetes.cri.sandbox-uid".into(), pod.into()),
            ("io.kubernetes.cri.container-name".into(), container.into()),
        ]));
        all.into_iter().next()
    };
    let identity = of("0a1b-2c", "app").expect("an identity");
    assert_eq!(identity.allocation(), "alloc/0a1b-2c/app.json");
    for bad in ["", ".", "..", "../x", "a/b", "/etc", "a\0b", ".hidden"] {
        assert_eq!((of(bad, "app"), of("u1", bad)), (None, None), "{bad:?}");
    }
}

#[test]
fn a_pod_that_says_to_be_another_is_both() {
    let annotations = BTreeMap::from([
        ("io.kubernetes.cri.sandbox-uid".to_owned(), "u2".to_owned()),
        ("io.kubernetes.cri.container-name".into(), "web".into()),
        (
            "io.kubernetes.cri-o.Labels".into(),
            r#"{"io.kubernetes.pod.uid":"u1","io.kubernetes.container.name":"app"}"#.into(),
        ),
    ]);
    let all: Vec<_> =
        ContainerIdentity::all_of(&annotations).iter().map(ContainerIdentity::allocation).collect();
    assert_eq!(all, ["alloc/u2/web.json", "alloc/u1/app.json"]);
}

#[test]
fn a_forged_place_is_no_other_container_s() {
    let containerd = |uid: &str, name: &str| {
        BTreeMap::from([
            ("io.kubernetes.cri.sandbox-uid".to_owned(), uid.to_owned()),
            ("io.kubernetes.cri.container-name".to_owned(), name.to_owned()),
        ])
    };
    let place = |annotations: &_| ContainerIdentity::place(annotations);
    assert_eq!(place(&containerd("u1", "app")).as_deref(), Some("u1@app"));
    assert_eq!(place(&containerd("../u1", "app")), None);
    let labels = r#"{"io.kubernetes.pod.uid":"u2","io.kubernetes.container.name":"web"}"#;
    let mut forged = containerd("u1", "app");
    forged.insert("io.kubernetes.cri-o.Labels".into(), labels.into());
    assert_eq!(place(&forged).as_deref(), Some("u1@app+u2@web"));
    let long = place(&containerd(&"u".repeat(253), &"n".repeat(253))).expect("a place");
    assert_eq!(long.len(), 200);
}

#[test]
fn a_card_is_read_as_the_driver_describes_it() {
    let text = "Model: \t\t NVIDIA A100\nIRQ:   \t\t 50\n\
                GPU UUID: \t GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa\n\
                Video BIOS: \t ??.??.??.??.??\nBus Location: \t 0000:01:00.0\n\
                Device Minor: \t 1\nGPU Excluded:\t No\n";
    let card = Card::parse(text).expect("a card");
    assert_eq!(card.name.to_string(), "GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa");
    assert_eq!((card.minor, card.slices), (Some(1), Slices::Seven));
    let a30 = Card::parse(&text.replace("A100", "A30")).expect("a card");
    assert_eq!(a30.slices, Slices::Four);
    // What moves a cursor or turns the direction of a line is not shown.
    let odd = text.replace("A100", &format!("A\u{1b}[2J\u{9b}\u{202e}{}", "9".repeat(100)));
    let odd = Card::parse(&odd).expect("a card").model;
    assert!(odd.starts_with("NVIDIA A?[2J??999") && odd.len() == 64, "{odd}");
    // While no driver has started the card, its UUID is unknown.
    assert_eq!(Card::parse("GPU UUID: GPU-????????-????-????-????-????????????"), None);
}

/// A configuration with every key, each with a value other than its default.
fn every_key() -> serde_json::Value {
    json!({
        "library": "/opt/lib.so", "state_dir": "/s", "run_dir": "/r", "log_file": "/l",
        "next_runtime": ["crun"], "annotation_domain": "gpu.example.com",
        "sources": ["hami", "environment"], "trusted_sources": ["hami", "allocation"],
        "require_limit_for_gpu": true, "allow_off_switches": true,
        "kubelet_checkpoint": "/k", "time_slicing": "enforce", "dra_checkpoint": "/c", "kai_portion": "memory",
        "aliyun_memory_unit": "MiB", "context_mem": "300Mi",
        "open": true, "no_glibc": "refuse", "privileged": "refuse", "user_namespaces": "refuse",
        "mask_opencl": false,
        "card_pages": false,
        "native_limits": "required", "lending": "allowed", "lending_max": 80,
        "sampled_excess": "hold", "driver_libraries": "/d",
    })
}

#[test]
fn every_key_of_the_configuration_is_read() {
    let node =
        Node::parse(Node::PATH, every_key().to_string().as_bytes()).expect("a configuration");
    assert_eq!((node.library.as_deref(), node.state_dir.as_str()), (Some("/opt/lib.so"), "/s"));
    assert_eq!((node.run_dir.as_str(), node.log_file.as_str()), ("/r", "/l"));
    assert_eq!(node.next_runtime, ["crun"]);
    assert_eq!(node.annotation_domain, "gpu.example.com");
    assert_eq!(node.sources, [Source::Hami, Source::Environment]);
    assert_eq!(node.trusted_sources, [Source::Hami], "a source that is not read is not trusted");
    assert!(node.require_limit_for_gpu && node.allow_off_switches && node.open);
    assert_eq!(node.kubelet_checkpoint.as_deref(), Some("/k"));
    assert!(node.time_slicing && !node.kai_portion_of_time);
    assert_eq!(node.dra_checkpoint.as_deref(), Some("/c"));
    assert_eq!((node.aliyun_memory_unit, node.context_mem), (1 << 20, Some(300 << 20)));
    assert_eq!((node.no_glibc, node.mask_opencl), (NoGlibc::Refuse, false));
    assert!(!node.card_pages);
    assert_eq!(node.native_limits, NativeLimits::Required);
    let most = node.lending_max.map(|most| most.percent());
    assert_eq!((node.lending, most), (Lending::Allowed, Some(80)));
    assert_eq!(node.driver_libraries.as_deref(), Some("/d"));
}

/// The first words of the rows between two marks of a page.
fn documented(page: &str, mark: &str) -> Vec<String> {
    let part = page.split(&format!("<!-- {mark}")).nth(1).expect("a table");
    let part = part.split("<!-- end").next().unwrap_or_default();
    part.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned))
        .collect()
}

#[test]
fn the_manual_has_every_key_and_every_source() {
    let keys = every_key();
    let keys: Vec<_> = keys.as_object().expect("keys").keys().cloned().collect();
    let node = include_str!("../../../docs/src/node-configuration.md");
    assert_eq!(documented(node, "node"), keys);
    let formats = include_str!("../../../docs/src/request-formats.md");
    let sources: Vec<_> = Node::default().sources.iter().map(|source| source.name()).collect();
    assert_eq!(documented(formats, "sources"), sources);
}

#[test]
fn time_slicing_is_enforced_by_the_kubelets_own_checkpoint_unless_another_is_named() {
    let path = |text: &str| {
        Node::parse(Node::PATH, text.as_bytes()).expect("a configuration").kubelet_checkpoint
    };
    let own = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
    assert_eq!(path(r#"{"time_slicing": "enforce"}"#).as_deref(), Some(own));
    assert_eq!(path(r#"{"time_slicing": "off"}"#), None);
    let both = r#"{"time_slicing": "enforce", "kubelet_checkpoint": "/k"}"#;
    assert_eq!(path(both).as_deref(), Some("/k"));
}

#[test]
fn every_key_has_another_value_than_its_default() {
    let (all, default) = (every_key(), Node::default());
    for (key, value) in all.as_object().expect("keys") {
        let node = Node::parse(Node::PATH, json!({key: value}).to_string().as_bytes()).expect(key);
        assert_ne!(node, default, "{key} changes nothing");
    }
}

#[test]
fn an_empty_configuration_is_the_default_and_the_default_is_closed() {
    let node = Node::parse(Node::PATH, b"{}").expect("a configuration");
    assert_eq!(node, Node::default());
    assert!(!node.open && !node.allow_off_switches && node.mask_opencl && node.card_pages);
    assert_eq!(node.kubelet_checkpoint, None);
    assert_eq!((node.lending, node.lending_max), (Lending::Off, None));
}

#[test]
fn a_configuration_that_is_not_ours_is_refused() {
    for (text, why) in [
        ("", "/own.json: it cannot be read: EOF while parsing a value at line 1 column 0"),
        ("[]", "/own.json: no JSON object"),
        (
            r#"{"open":"yes"}"#,
            r#"/own.json: "open": "\"yes\"": invalid type: string "yes", expected a boolean"#,
        ),
        (r#"{"library":"lib.so"}"#, r#"/own.json: "library": "\"lib.so\"": not an absolute path"#),
        (r#"{"run_dir":null}"#, r#"/own.json: "run_dir": "null": not an absolute path"#),
        (
            r#"{"no_glibc":"maybe"}"#,
            r#"/own.json: "no_glibc": "\"maybe\"": unknown variant `maybe`, expected `allow` or `refuse`"#,
        ),
        (
            r#"{"aliyun_memory_unit":"KiB"}"#,
            r#"/own.json: "aliyun_memory_unit": "\"KiB\"": not GiB or MiB"#,
        ),
        (r#"{"context_mem":300}"#, r#"/own.json: "context_mem": "300": not a size: "300Mi""#),
        (r#"{"next_runtime":[]}"#, r#"/own.json: "next_runtime": "[]": not a list of texts"#),
    ] {
        let error = Node::parse("/own.json", text.as_bytes()).expect_err(text).to_string();
        assert_eq!(error, why, "{text}");
    }
}

#[test]
fn a_word_that_the_configuration_does_not_know_is_answered_with_those_that_it_knows() {
    for (text, why, known) in [
        (
            "{\"op\\n\":true}",
            r#"/own.json: "op\n": "true": not a key of this version: `op?`, "#,
            "`open`",
        ),
        (
            r#"{"sources":["hamy"]}"#,
            r#"/own.json: "sources": "[\"hamy\"]": unknown variant `hamy`, expected one of "#,
            "`hami`",
        ),
    ] {
        let error = Node::parse("/own.json", text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(why) && error.contains(known), "{error}");
    }
}

#[test]
fn a_container_has_the_names_of_its_engine_unless_another_key_contradicts() {
    let of = |pairs: &[(&str, &str)]| {
        let annotations = pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        Names::of(&annotations).map(|it| [it.namespace, it.pod, it.container].join("/"))
    };
    let containerd = [
        ("io.kubernetes.cri.sandbox-namespace", "default"),
        ("io.kubernetes.cri.sandbox-name", "train"),
        ("io.kubernetes.cri.container-name", "main"),
    ];
    let labels = |pod: &str| {
        json!({
            "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": pod,
            "io.kubernetes.container.name": "main",
        })
        .to_string()
    };
    let (own, other) = (labels("train"), labels("another"));
    let crio = |text| ("io.kubernetes.cri-o.Labels", text);
    let (own, other) = (own.as_str(), other.as_str());
    let whole = Some("default/train/main".to_owned());
    assert_eq!(of(&containerd), whole);
    assert_eq!(of(&[crio(own)]), whole);
    assert_eq!(of(&[&containerd[..], &[crio(own)]].concat()), whole);
    assert_eq!(of(&[&containerd[..], &[crio(other)]].concat()), None);
    assert_eq!(of(&containerd[..2]), None);
    assert_eq!(of(&[]), None);
}
