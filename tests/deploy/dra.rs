//! The DRA driver's manifests: they agree with the driver, and give it no more than it asks for.

use crate::manifests::{daemonset, with};
use crate::{ended, expect};
use gpucap_tests::chart::{self, NAMESPACE};
use gpucap_tests::{Build, Result, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("dra: the driver knows the words of its pod, and its places are the node's", words),
        trial("dra: its rights are those of what it asks for", rights),
        trial("dra: its role is bound to its pod, and its policy to its slices", bound),
        trial("dra: the class has the driver's devices", class),
    ]
}

const DRA: &str = "dra.enabled=true";

fn object(kind: &str, name: &str) -> Result<Value> {
    chart::object(&with(DRA)?, kind, name)
}

fn pod() -> Result<Value> {
    Ok(daemonset("gpucap-dra", DRA)?["spec"]["template"]["spec"].take())
}

/// What the driver says of its options, by their names.
fn help() -> Result<String> {
    ended(Command::new(Build::dra()?).arg("--help"), true)
}

/// The default of an option.
fn default(help: &str, option: &str) -> Result<String> {
    let text =
        help.split(&format!("--{option} ")).nth(1).and_then(|it| it.split("[default: ").nth(1));
    let text = text.and_then(|it| it.split(']').next()).map(str::to_owned);
    text.ok_or_else(|| Stop::fail(format!("{option} in: {help}")))
}

fn words() -> Result {
    let (pod, help) = (pod()?, help()?);
    let container = &pod["containers"][0];
    for word in container["args"].as_array().into_iter().flatten() {
        let option = word.as_str().and_then(|it| it.split('=').next()).unwrap_or_default();
        expect(!option.is_empty() && help.contains(&format!("{option} <")), || word.to_string())?;
    }
    let asks = container["args"][0].as_str().unwrap_or_default();
    let program = default(&help, "asks")?;
    expect(asks.ends_with(&program), || asks.to_owned())?;
    // Each blank parts two words: a node without such a command has no empty one.
    let bare = daemonset("gpucap-dra", "dra.enabled=true,node.run=")?;
    let bare = &bare["spec"]["template"]["spec"]["containers"][0]["args"][0];
    expect(*bare == format!("--asks=nsenter -t 1 -m {program}"), || bare.to_string())?;
    expect(
        container["env"][0]["name"] == "NODE_NAME" && help.contains("[env: NODE_NAME=]"),
        || help.clone(),
    )?;
    let (kubelet, cdi) = (default(&help, "kubelet")?, default(&help, "cdi")?);
    let places = [format!("{kubelet}/plugins"), format!("{kubelet}/plugins_registry"), cdi];
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    let mounts: Vec<_> = mounts.map(|it| (it["name"].clone(), it["mountPath"].clone())).collect();
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    let volumes: Vec<_> =
        volumes.map(|it| (it["name"].clone(), it["hostPath"]["path"].clone())).collect();
    // The kubelet and engines read them by the same paths.
    let found: Vec<_> = mounts.iter().map(|it| it.1.clone()).collect();
    expect(mounts == volumes && found == places.map(Value::from), || {
        format!("{mounts:?} {volumes:?}")
    })
}

fn rights() -> Result {
    let role = object("ClusterRole", "gpucap-dra")?;
    let expected = json!([
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
        {
            "apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
            "verbs": ["get", "list", "create", "update", "delete"],
        },
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ]);
    expect(role["rules"] == expected, || role.to_string())?;
    let installer = daemonset("gpucap", DRA)?["spec"]["template"]["spec"].take();
    let installer = &installer["initContainers"][0]["securityContext"];
    let own = &pod()?["containers"][0]["securityContext"];
    expect(own == installer, || format!("{own}, not {installer}"))
}

fn bound() -> Result {
    let account = object("ServiceAccount", "gpucap-dra")?["metadata"]["name"].take();
    let binding = object("ClusterRoleBinding", "gpucap-dra")?;
    let role = object("ClusterRole", "gpucap-dra")?["metadata"]["name"].take();
    let subject = json!([{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]);
    expect(binding["subjects"] == subject && binding["roleRef"]["name"] == role, || {
        binding.to_string()
    })?;
    let spec = pod()?;
    // It needs the token that the others have not.
    expect(
        spec["serviceAccountName"] == account && spec["automountServiceAccountToken"].is_null(),
        || spec["serviceAccountName"].to_string(),
    )?;
    let policy = object("ValidatingAdmissionPolicy", "gpucap-dra")?;
    let condition = &policy["spec"]["matchConditions"][0]["expression"];
    let account = account.as_str().unwrap_or_default();
    let user =
        format!("request.userInfo.username == \"system:serviceaccount:{NAMESPACE}:{account}\"");
    expect(*condition == user, || condition.to_string())?;
    for name in ["gpucap-dra", "gpucap-dra-claims"] {
        let binding = object("ValidatingAdmissionPolicyBinding", name)?;
        expect(binding["spec"]["policyName"] == name, || binding.to_string())?;
    }
    let policy = object("ValidatingAdmissionPolicy", "gpucap-dra-claims")?.to_string();
    let driver = default(&help()?, "name")?;
    expect(policy.contains(&format!("it.driver == \\\"{driver}\\\"")), || policy)
}

fn class() -> Result {
    let class = object("DeviceClass", "slice.gpucap.io")?;
    let driver = default(&help()?, "name")?;
    let expression = &class["spec"]["selectors"][0]["cel"]["expression"];
    expect(*expression == format!("device.driver == \"{driver}\""), || expression.to_string())?;
    expect(class["metadata"]["name"] == driver, || class.to_string())
}
