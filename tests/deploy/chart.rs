//! The Helm chart: what each option adds, what is left when gpucap leaves the nodes, and what stops `helm uninstall`.
//!
//! No cluster is asked: what a node does with the objects is [`node`](crate::node)'s, their form [`schema`](crate::schema)'s.

use crate::manifests::{ALL, SETS, with};
use crate::{ended, expect};
use gpucap_tests::chart::{self, NAMESPACE, helm};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("chart: Helm's linter has nothing to say, with each set of options", lint),
        trial("chart: it is of this version, and its image, too", version),
        trial("chart: an option adds its objects, and nothing else does", objects),
        trial("chart: a release of Kubernetes that is too old is refused", releases),
        trial("chart: the settings are the node's file, and new ones restart its pod", settings),
        trial("chart: the dashboard and the rules are those of the files", files),
        trial("chart: a scraper finds the metrics by one way, and others are kept out", scraped),
        trial("chart: none of its own pods asks for a limit", unlimited),
        trial("chart: the pods on nodes have a priority, or none where it is empty", priority),
        trial("chart: while the nodes have gpucap, helm uninstall is refused", kept),
        trial("chart: the plugin sees the checkpoints that the settings name", checkpoints),
        trial("chart: the notes name the next step", notes),
    ]
}

fn lint() -> Result {
    let chart = chart::directory().display().to_string();
    for (name, options) in SETS {
        let words = ["lint", "--strict", &chart, "--kube-version", "1.37.0", "--set", options];
        let output = helm(&words)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let clean = output.status.success() && !said.contains("[WARNING]");
        expect(clean && said.contains("1 chart(s) linted"), || format!("{name}: {said}"))?;
    }
    Ok(())
}

fn version() -> Result {
    let text = fs::read_to_string(chart::directory().join("Chart.yaml"))?;
    let own: Value = serde_yaml_ng::from_str(&text).map_err(Stop::fail)?;
    for key in ["version", "appVersion"] {
        expect(own[key] == env!("CARGO_PKG_VERSION"), || format!("{key}: {}", own[key]))?;
    }
    Ok(())
}

/// `Kind/name` of each object, sorted.
fn names(options: &str) -> Result<Vec<String>> {
    let name = |it: &Value| {
        let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{}/{}", of(&it["kind"]), of(&it["metadata"]["name"]))
    };
    let mut names: Vec<_> = with(options)?.iter().map(name).collect();
    names.sort();
    Ok(names)
}

/// What an option adds to the objects that there are always.
const ADDED: &[(&str, &[&str])] = &[
    ("nri.enabled=true", &[]),
    (
        "dra.enabled=true",
        &[
            "ClusterRole/gpucap-dra",
            "ClusterRoleBinding/gpucap-dra",
            "DaemonSet/gpucap-dra",
            "DeviceClass/slice.gpucap.io",
            "ResourceClaimTemplate/gpucap-validate",
            "ServiceAccount/gpucap-dra",
            "ValidatingAdmissionPolicy/gpucap-dra",
            "ValidatingAdmissionPolicy/gpucap-dra-claims",
            "ValidatingAdmissionPolicyBinding/gpucap-dra",
            "ValidatingAdmissionPolicyBinding/gpucap-dra-claims",
        ],
    ),
    (
        "runtimeClass.required.enabled=true,runtimeClass.required.namespaces.team=a",
        &[
            "ValidatingAdmissionPolicy/gpucap-class",
            "ValidatingAdmissionPolicyBinding/gpucap-class",
        ],
    ),
    ("metrics.enabled=true", &["Service/gpucap-metrics"]),
    (
        "metrics.enabled=true,metrics.podMonitor.enabled=true",
        &["PodMonitor/gpucap", "Service/gpucap-metrics"],
    ),
    (
        "metrics.enabled=true,metrics.dashboard.enabled=true",
        &["ConfigMap/gpucap-dashboard", "Service/gpucap-metrics"],
    ),
    (
        "metrics.enabled=true,metrics.rules.enabled=true,metrics.rules.hami=true",
        &["PrometheusRule/gpucap", "PrometheusRule/gpucap-hami", "Service/gpucap-metrics"],
    ),
];

fn objects() -> Result {
    let always = names("uninstall=false")?;
    let expected = [
        "ConfigMap/gpucap-settings",
        "DaemonSet/gpucap",
        "Job/gpucap-is-on-nodes",
        "Job/gpucap-validate",
        "RuntimeClass/gpucap",
    ];
    expect(always == expected, || format!("{always:?}"))?;
    for (option, added) in ADDED {
        let mut found = names(option)?;
        found.retain(|name| !always.contains(name));
        expect(found == *added, || format!("{option}: {found:?}"))?;
    }
    for options in ["uninstall=true".to_owned(), format!("{ALL},uninstall=true")] {
        let left = names(&options)?;
        expect(left == ["DaemonSet/gpucap"], || format!("{options}: {left:?}"))?;
    }
    Ok(())
}

fn priority() -> Result {
    for (options, expected) in [
        ("dra.enabled=true", json!("system-node-critical")),
        ("dra.enabled=true,priorityClassName=", Value::Null),
    ] {
        for name in ["gpucap", "gpucap-dra"] {
            let spec =
                &chart::object(&with(options)?, "DaemonSet", name)?["spec"]["template"]["spec"];
            let found = &spec["priorityClassName"];
            expect(*found == expected, || format!("{name}, {options}: {found}"))?;
        }
    }
    Ok(())
}

fn releases() -> Result {
    for (release, options, well) in [
        ("1.29.9", "uninstall=false", false),
        ("1.30.0", "uninstall=false", true),
        // As clouds name theirs.
        ("v1.30.4-eks-1a2b3c", "uninstall=false", true),
        ("1.35.9", "dra.enabled=true", false),
        ("1.35.9", "dra.enabled=true,uninstall=true", true),
        ("v1.36.0-gke.100", "dra.enabled=true", true),
    ] {
        let output = chart::template(release, &["--set", options])?;
        let said = String::from_utf8_lossy(&output.stderr);
        let fits = output.status.success() == well && (well || said.contains("1.3"));
        expect(fits, || format!("{release} {options}: {said}"))?;
    }
    Ok(())
}

/// The settings as the node's file has them, and the annotation that restarts the pod.
fn settings_of(words: &[&str]) -> Result<(Value, Value)> {
    let objects = chart::rendered(words)?;
    let map = chart::object(&objects, "ConfigMap", "gpucap-settings")?;
    let text = map["data"]["config.json"].as_str().unwrap_or_default();
    let set = chart::object(&objects, "DaemonSet", "gpucap")?;
    let mark = &set["spec"]["template"]["metadata"]["annotations"]["checksum/settings"];
    Ok((serde_json::from_str(text).map_err(Stop::fail)?, mark.clone()))
}

fn settings() -> Result {
    let given = json!({
        "require_limit_for_gpu": true, "sources": ["slice", "kai"], "context_mem": "300Mi",
        "driver_libraries": "/run/nvidia/driver/usr/lib",
    });
    let (none, first) = settings_of(&[])?;
    let (set, second) = settings_of(&["--set-json", &format!("settings={given}")])?;
    expect(none == json!({}) && set == given, || format!("{none} {set}"))?;
    expect(first.is_string() && second.is_string() && first != second, || first.to_string())
}

fn files() -> Result {
    let objects = with(ALL)?;
    let file = |name: &str| fs::read_to_string(chart::directory().join("files").join(name));
    let map = chart::object(&objects, "ConfigMap", "gpucap-dashboard")?;
    let text = map["data"]["gpucap.json"].as_str().unwrap_or_default();
    expect(text.trim_end() == file("dashboard.json")?.trim_end(), || text.to_owned())?;
    expect(map["metadata"]["labels"]["grafana_dashboard"] == "1", || map["metadata"].to_string())?;
    for (name, path) in [("gpucap", "rules.yml"), ("gpucap-hami", "hami.yml")] {
        let rules = chart::object(&objects, "PrometheusRule", name)?;
        let own: Value = serde_yaml_ng::from_str(&file(path)?).map_err(Stop::fail)?;
        expect(own["groups"].is_array() && rules["spec"] == own, || rules.to_string())?;
    }
    Ok(())
}

fn scraped() -> Result {
    let annotations = |options: &str| -> Result<Value> {
        let set = chart::object(&with(options)?, "DaemonSet", "gpucap")?;
        Ok(set["spec"]["template"]["metadata"]["annotations"]["prometheus.io/scrape"].clone())
    };
    let found = [
        annotations("uninstall=false")?,
        annotations("metrics.enabled=true")?,
        annotations("metrics.enabled=true,metrics.podMonitor.enabled=true")?,
    ];
    expect(found == [Value::Null, json!("true"), Value::Null], || format!("{found:?}"))?;
    let objects = with(ALL)?;
    let spec = |kind: &str, name: &str| -> Result<Value> {
        Ok(chart::object(&objects, kind, name)?["spec"].take())
    };
    let selector = json!({"matchLabels": {"app.kubernetes.io/name": "gpucap"}});
    // No schema of the API has this kind.
    let monitor = json!({
        "selector": selector,
        "podMetricsEndpoints": [{"port": "metrics", "interval": "30s", "honorLabels": true}],
    });
    let found = spec("PodMonitor", "gpucap")?;
    expect(found == monitor, || found.to_string())?;
    let policy = json!({
        "podSelector": selector,
        "policyTypes": ["Ingress"],
        "ingress": [{
            "from": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
            "ports": [{"port": "metrics"}],
        }],
    });
    let found = spec("NetworkPolicy", "gpucap-metrics")?;
    expect(found == policy, || found.to_string())?;
    let service = spec("Service", "gpucap-metrics")?;
    expect(service["selector"] == selector["matchLabels"], || service.to_string())
}

/// The NRI plugin would refuse such a pod, its own among them.
fn unlimited() -> Result {
    let asks = |object: &Value| {
        let annotations = object["spec"]["template"]["metadata"]["annotations"].as_object();
        annotations.is_some_and(|it| it.keys().any(|key| key.starts_with("gpucap/")))
    };
    let objects = with(ALL)?;
    expect(!objects.iter().any(asks), || "a pod template has an annotation gpucap/...".into())
}

fn kept() -> Result {
    let job = chart::object(&with("uninstall=false")?, "Job", "gpucap-is-on-nodes")?;
    let annotations = &job["metadata"]["annotations"];
    expect(annotations["helm.sh/hook"] == "pre-delete", || annotations.to_string())?;
    let spec = &job["spec"]["template"]["spec"];
    let words = spec["containers"][0]["command"].as_array().into_iter().flatten();
    let words: Vec<_> = words.filter_map(Value::as_str).collect();
    let (program, rest) = words.split_first().ok_or_else(|| Stop::fail("no command"))?;
    let said = ended(Command::new(program).args(rest), false)?;
    expect(said.contains("--set uninstall=true"), || said.clone())?;
    let once = job["spec"]["backoffLimit"] == 0 && spec["restartPolicy"] == "Never";
    expect(once, || job["spec"].to_string())
}

fn checkpoints() -> Result {
    let mounted = |options: &str| -> Result<Vec<String>> {
        let options = format!("nri.enabled=true{options}");
        let mut set = chart::object(&with(&options)?, "DaemonSet", "gpucap")?;
        let pod = set["spec"]["template"]["spec"].take();
        let plugin = pod["containers"].as_array().into_iter().flatten();
        let plugin = plugin.filter(|it| it["name"] == "nri").flat_map(|it| {
            it["volumeMounts"].as_array().into_iter().flatten().map(|it| &it["mountPath"])
        });
        let mut paths: Vec<_> = plugin.filter_map(Value::as_str).map(str::to_owned).collect();
        paths.retain(|path| path.starts_with("/var/lib/kubelet") || path.starts_with("/srv"));
        Ok(paths)
    };
    for (settings, expected) in [
        ("", &[][..]),
        (",settings.time_slicing=off", &[]),
        (",settings.time_slicing=enforce", &["/var/lib/kubelet/device-plugins"]),
        (",settings.time_slicing=enforce,settings.kubelet_checkpoint=/srv/a/k", &["/srv/a"]),
        (",settings.dra_checkpoint=/srv/b/c.json,settings.state_dir=/srv/s", &["/srv/s", "/srv/b"]),
    ] {
        let found = mounted(settings)?;
        expect(found == expected, || format!("{settings}: {found:?}"))?;
    }
    Ok(())
}

fn notes() -> Result {
    for (options, words) in [
        ("uninstall=false", &["rollout status daemonset/gpucap", "test gpucap"][..]),
        ("dra.enabled=true", &["slice.gpucap.io"]),
        ("metrics.enabled=true", &["metrics.networkPolicy"]),
        ("uninstall=true", &["uninstall gpucap", "rollout status daemonset/gpucap"]),
    ] {
        let chart = chart::directory().display().to_string();
        let install = ["install", "gpucap", &chart, "--namespace", NAMESPACE, "--dry-run=client"];
        let options = ["--set", options];
        let output = helm(&[&install[..], &options].concat())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let notes = said.split("\nNOTES:\n").nth(1).unwrap_or_default();
        let has = words.iter().all(|word| notes.contains(word));
        expect(has, || format!("{options:?}: {said}{}", String::from_utf8_lossy(&output.stderr)))?;
    }
    Ok(())
}
