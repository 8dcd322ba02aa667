//! What `configure containerd` makes of files as nodes have them.

use super::*;

const SPEC: &str = "/etc/gpucap/base-spec.json";

fn own<'a>(name: &'a str, node: &'a Node) -> Handler<'a> {
    Handler { name, specification: Path::new(SPEC), node }
}

fn added(text: &str, name: &str) -> String {
    add(text, own(name, &Node::default())).expect("a configuration")
}

fn removed(text: &str, name: &str) -> String {
    remove(text, own(name, &Node::default())).expect("a configuration")
}

#[test]
fn annotations_of_the_nodes_domain_are_handed_on() {
    let node = Node { annotation_domain: "example.com".into(), ..Node::default() };
    for (name, text) in [(HANDLER, OLD), ("runc", OLD)] {
        let added = add(text, own(name, &node)).expect("a configuration");
        assert!(added.contains("\"example.com/*\"") && !added.contains("gpucap/*"), "{added}");
        assert_eq!(remove(&added, own(name, &node)).expect("a configuration"), text);
    }
}

fn handler(text: &str, plugin: &str, name: &str) -> Item {
    let document: DocumentMut = text.parse().expect("TOML");
    document["plugins"][plugin]["containerd"]["runtimes"][name].clone()
}

const OLD: &str = "# the administrator's own words
version = 2

[plugins]
  [plugins.\"io.containerd.grpc.v1.cri\"]
    sandbox_image = \"pause\" # kept
    [plugins.\"io.containerd.grpc.v1.cri\".containerd]
      default_runtime_name = \"runc\"
      [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]
        runtime_type = \"io.containerd.runc.v2\"
        [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]
          SystemdCgroup = true
";
const NEW: &str = "version = 3\n\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\n\
                       default_runtime_name = 'nvidia'\n\n\
                       [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]\n\
                       BinaryName = '/usr/bin/nvidia-container-runtime'\n";

#[test]
fn a_new_handler_has_the_options_of_todays() {
    for (text, plugin, option) in [
        (OLD, "io.containerd.grpc.v1.cri", "SystemdCgroup"),
        (NEW, "io.containerd.cri.v1.runtime", "BinaryName"),
    ] {
        let handler = handler(&added(text, HANDLER), plugin, HANDLER);
        assert_eq!(handler["base_runtime_spec"].as_str(), Some(SPEC));
        assert_eq!(handler["runtime_type"].as_str(), Some(RUNTIME_TYPE));
        assert!(!handler["options"][option].is_none(), "{handler}");
        let list = handler["pod_annotations"].as_array().expect("a list");
        assert_eq!(list.len(), annotations(&Node::default()).count());
    }
}

#[test]
fn what_was_there_stays_to_the_letter() {
    for text in [OLD, NEW] {
        let added = added(text, HANDLER);
        assert!(added.starts_with(text), "{added}");
        assert_eq!(self::added(&added, HANDLER), added, "a second time changes nothing");
        assert_eq!(removed(&added, HANDLER), text);
        assert_eq!(removed(text, HANDLER), text);
    }
}

#[test]
fn a_handler_of_the_administrator_keeps_what_it_says() {
    let kind = "runtime_type = \"io.containerd.runc.v2\"\n";
    let text = OLD.replace(kind, &format!("{kind}        pod_annotations = [\"own/*\"]\n"));
    let added = added(&text, "runc");
    let handler = handler(&added, "io.containerd.grpc.v1.cri", "runc");
    let list = handler["pod_annotations"].as_array().expect("a list");
    assert_eq!((list.len(), list.get(0).and_then(|it| it.as_str())), (10, Some("own/*")));
    let removed = removed(&added, "runc");
    assert_eq!(removed, text);
}

#[test]
fn a_base_specification_of_another_program_is_left_unchanged() {
    let text = OLD.replace("runtime_type =", "base_runtime_spec = \"/own.json\"\nruntime_type =");
    assert!(add(&text, own("runc", &Node::default())).expect_err("refused").contains("/own.json"));
    assert_eq!(removed(&text, "runc"), text);
}

#[test]
fn without_a_handler_called_nvidia_the_usual_one_is_the_model() {
    let plugin = "io.containerd.grpc.v1.cri";
    let of = |usual: &str, kind: &str| {
        let table = format!("plugins.\"{plugin}\".containerd");
        let entry = |name: &str, kind: &str, program: &str| {
            format!(
                "[{table}.runtimes.{name}]\nruntime_type = \"{kind}\"\n\
                 [{table}.runtimes.{name}.options]\nBinaryName = \"{program}\"\n"
            )
        };
        let handlers = [
            entry("nvidia-container-runtime", kind, "/usr/bin/nvidia-container-runtime"),
            entry("runc", RUNTIME_TYPE, "/usr/bin/runc"),
        ];
        let head = format!("version = 2\n[{table}]\ndefault_runtime_name = \"{usual}\"\n");
        let text = added(&(head + &handlers.concat()), HANDLER);
        handler(&text, plugin, HANDLER)["options"]["BinaryName"].as_str().map(str::to_owned)
    };
    let nvidia = Some("/usr/bin/nvidia-container-runtime".to_owned());
    let runc = Some("/usr/bin/runc".to_owned());
    assert_eq!(of("nvidia-container-runtime", RUNTIME_TYPE), nvidia);
    assert_eq!(of("runc", RUNTIME_TYPE), runc);
    assert_eq!(of("nvidia-container-runtime", "io.containerd.kata.v2"), runc);
}

#[test]
fn a_file_of_an_old_version_is_refused_and_a_missing_one_made() {
    assert!(add("[plugins.cri]\n", own(HANDLER, &Node::default())).is_err());
    assert!(add("version = 2\nplugins = 1\n", own(HANDLER, &Node::default())).is_err());
    let made = added("", HANDLER);
    assert!(made.starts_with("version = 2 # gpucap: new\n"), "{made}");
    assert_eq!(unversioned(&removed(&made, HANDLER)), "");
    let handler = handler(&made, "io.containerd.grpc.v1.cri", HANDLER);
    assert_eq!(handler["runtime_type"].as_str(), Some(RUNTIME_TYPE));
}
