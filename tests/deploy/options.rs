//! The options of the chart: `values.yaml` describes each, the schema has each, and the manual's table is made of them.
//!
//! An option is a key with a comment above it; a key without one is a section. `BLESS=1` renews the table:
//! `BLESS=1 cargo test -p gpucap-tests --test deploy -- options`.

use crate::expect;
use gpucap_tests::chart::{self, helm};
use gpucap_tests::{Build, Result, Scratch, Stop, project, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("options: each is described, and in the schema, which has no other", described),
        trial("options: the manual's table is theirs", table),
        trial("options: a wrong value is refused, with its place", refused),
        trial("options: what the manual sets, Helm takes", shown),
        trial("options: the node's settings are those that the manual has", settings),
        trial("options: Helm refuses the settings that the hook refuses", hook),
    ]
}

/// An option: its keys from the root, and the comment.
struct Described {
    path: Vec<String>,
    meaning: String,
}

impl Described {
    fn pointer(&self, between: &str) -> String {
        self.path.iter().map(|key| format!("{between}/{key}")).collect()
    }
}

fn read(file: &str) -> Result<String> {
    Ok(fs::read_to_string(chart::directory().join(file))?)
}

fn values() -> Result<Value> {
    serde_yaml_ng::from_str(&read("values.yaml")?).map_err(Stop::fail)
}

fn schema() -> Result<Value> {
    serde_json::from_str(&read("values.schema.json")?).map_err(Stop::fail)
}

/// The options and the sections, in the order of the file.
fn options() -> Result<(Vec<Described>, Vec<Vec<String>>)> {
    let (mut options, mut sections) = (Vec::new(), Vec::new());
    let (mut path, mut meaning): (Vec<(usize, String)>, Vec<&str>) = (Vec::new(), Vec::new());
    // Lines that are deeper than an option are its default.
    let mut inside = None;
    for line in read("values.yaml")?.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if text.is_empty() {
            meaning.clear();
            continue;
        }
        if inside.is_some_and(|option| depth > option) {
            continue;
        }
        inside = None;
        if let Some(comment) = text.strip_prefix("# ") {
            meaning.push(comment);
            continue;
        }
        let (key, _) = text.split_once(':').ok_or_else(|| Stop::fail(line))?;
        path.retain(|(outer, _)| *outer < depth);
        path.push((depth, key.to_owned()));
        let keys = path.iter().map(|(_, key)| key.clone()).collect();
        if meaning.is_empty() {
            sections.push(keys);
        } else {
            options.push(Described { path: keys, meaning: meaning.join(" ") });
            inside = Some(depth);
        }
        meaning.clear();
    }
    Ok((options, sections))
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

fn described() -> Result {
    let (values, schema) = (values()?, schema()?);
    let (options, sections) = options()?;
    expect(options.len() > 20, || format!("{} options", options.len()))?;
    for path in [vec![]].iter().chain(&sections) {
        let of =
            |between: &str| path.iter().map(|key| format!("{between}/{key}")).collect::<String>();
        let section = values.pointer(&of("")).ok_or_else(|| Stop::fail(of("")))?;
        let known = schema.pointer(&of("/properties")).ok_or_else(|| Stop::fail(of("")))?;
        let mut allowed = keys(&known["properties"]);
        if path.is_empty() {
            // Helm itself adds it where the chart is a part of another one.
            allowed.remove("global");
        }
        let fits = !allowed.is_empty() && known["additionalProperties"] == false;
        expect(fits && keys(section) == allowed, || format!("{path:?}: {allowed:?}"))?;
    }
    for option in &options {
        let place = option.pointer("");
        expect(values.pointer(&place).is_some(), || place.clone())?;
        expect(schema.pointer(&option.pointer("/properties")).is_some(), || place.clone())?;
        expect(!option.meaning.ends_with('.'), || option.meaning.clone())?;
    }
    // Nothing is neither: each leaf is an option or within one.
    let count = options.len() + sections.len();
    let lines = read("values.yaml")?;
    let outer = lines.lines().filter(|line| line.starts_with(|sign: char| sign.is_alphabetic()));
    expect(count > outer.count() && sections.iter().all(|it| it.len() < 3), || count.to_string())
}

fn table() -> Result {
    let (begin, end) = ("<!-- options: made by tests/deploy -->\n", "<!-- end of options -->");
    let path = project().join("docs/src/kubernetes.md");
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(begin).ok_or_else(|| Stop::fail("no table"))?;
    let (shown, after) = rest.split_once(end).ok_or_else(|| Stop::fail("the table has no end"))?;
    let values = values()?;
    let mut expected = "| option | default | meaning |\n|---|---|---|\n".to_owned();
    for option in options()?.0 {
        let default = values.pointer(&option.pointer("")).cloned().unwrap_or_default();
        let default = default
            .as_str()
            .filter(|it| !it.is_empty())
            .map_or_else(|| default.to_string(), str::to_owned);
        let name = option.path.join(".");
        expected += &format!("| `{name}` | `{default}` | {} |\n", option.meaning);
    }
    if env::var_os("BLESS").is_some() {
        fs::write(&path, [before, begin, &expected, end, after].concat())?;
        return Ok(());
    }
    expect(shown == expected, || format!("BLESS=1 renews it:\n{expected}"))
}

/// Options that Helm must refuse, and the place that it has to name.
const WRONG: &[(&str, &str)] = &[
    ("nope=1", "nope"),
    ("image.repository=", "/image/repository"),
    ("image.tag=a b", "/image/tag"),
    ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
    ("image.pullSecrets[0]=registry", "/image/pullSecrets/0"),
    ("nodeSelector=gpu", "/nodeSelector"),
    ("nodeSelector.a=true", "/nodeSelector/a"),
    ("priorityClassName=High", "/priorityClassName"),
    ("maxUnavailable=0", "/maxUnavailable"),
    ("maxUnavailable=101%", "/maxUnavailable"),
    ("maxUnavailable=some", "/maxUnavailable"),
    ("settings=none", "/settings"),
    ("uninstall=yes", "/uninstall"),
    ("node.containerd=config.toml", "/node/containerd"),
    ("node.restart=", "/node/restart"),
    ("node.run=7", "/node/run"),
    ("node.kubelet=", "/node/kubelet"),
    ("node.kubelet=/var/lib/a: b", "/node/kubelet"),
    ("runtimeClass.tolerations[0].operator=Is", "/runtimeClass/tolerations/0/operator"),
    ("runtimeClass.required.resources[0]=gpu", "/runtimeClass/required/resources/0"),
    ("runtimeClass.required.namespaces.a=1", "/runtimeClass/required/namespaces/a"),
    ("runtimeClass.required.enabled=true", "runtimeClass.required.namespaces"),
    ("nri=true", "/nri"),
    ("nri.enable=true", "enable"),
    ("nri.enabled=1", "/nri/enabled"),
    ("dra.image.repository=a@b", "/dra/image/repository"),
    ("dra.image.tag=a b", "/dra/image/tag"),
    ("dra.interval=0", "/dra/interval"),
    ("dra.interval=3601", "/dra/interval"),
    ("dra.interval=30s", "/dra/interval"),
    ("dra.cardKind=gpu", "/dra/cardKind"),
    ("metrics.podMonitor.enabled=true", "/metrics/podMonitor/enabled"),
    ("metrics.dashboard.enabled=true", "/metrics/dashboard/enabled"),
    ("metrics.enabled=true,metrics.podMonitor.interval=30", "/metrics/podMonitor/interval"),
    ("metrics.enabled=true,metrics.networkPolicy.enabled=true", "/metrics/networkPolicy/from"),
    ("metrics.enabled=true,metrics.rules.hami=true", "/metrics/rules/hami"),
    ("metrics.dashboard.labels.a=1", "/metrics/dashboard/labels/a"),
    ("validate.resource=", "/validate/resource"),
];

/// Whether Helm takes this option, and what it says.
fn taken(set: &[&str]) -> Result<(bool, String)> {
    let output = chart::template("1.37.0", set)?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn refused() -> Result {
    helm(&["version"])?;
    for (option, place) in WRONG {
        let (well, said) = taken(&["--set", option])?;
        expect(!well && said.contains(place), || format!("{option}: {said}"))?;
    }
    // Each section and each option at the root has its wrong value.
    let (options, sections) = options()?;
    let paths = options.iter().map(|it| &it.path).chain(&sections);
    for root in paths.filter(|path| path.len() == 1).map(|path| &path[0]) {
        expect(WRONG.iter().any(|(option, _)| option.starts_with(root)), || root.clone())?;
    }
    Ok(())
}

/// The first column of a table of the manual.
fn column(page: &str, mark: &str) -> Result<BTreeSet<String>> {
    let page = fs::read_to_string(project().join("docs/src").join(page))?;
    let rows = page.split(mark).nth(1).and_then(|it| it.split("<!-- end").next());
    let rows = rows.unwrap_or_default().lines().filter_map(|row| row.strip_prefix("| `"));
    Ok(rows.filter_map(|row| row.split('`').next().map(str::to_owned)).collect())
}

fn settings() -> Result {
    let schema = schema()?;
    let known = &schema["properties"]["settings"]["properties"];
    let manual = column("node-configuration.md", "<!-- node: ")?;
    let own: BTreeSet<_> = keys(known).into_iter().map(str::to_owned).collect();
    expect(own.len() > 20 && own == manual, || format!("{own:?}, not {manual:?}"))?;
    let sources = schema["definitions"]["sources"]["items"]["enum"].as_array().cloned();
    let sources = sources.unwrap_or_default();
    let sources: BTreeSet<_> =
        sources.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let manual = column("request-formats.md", "<!-- sources: ")?;
    expect(!sources.is_empty() && sources == manual, || format!("{sources:?}, not {manual:?}"))
}

/// Settings, those that are wrong among them: Helm and the hook have to agree.
const SETTINGS: &[(&str, &[&str], &[&str])] = &[
    ("run_dir", &["\"/srv/run\""], &["\"run\"", "1"]),
    ("next_runtime", &["[\"crun\"]"], &["[]", "\"crun\"", "[1]"]),
    ("annotation_domain", &["\"a.b-c\""], &["\"\"", "\"a/b\""]),
    ("sources", &["[]", "[\"slice\",\"kai\"]"], &["[\"other\"]", "\"kai\""]),
    ("require_limit_for_gpu", &["true"], &["\"yes\"", "1"]),
    ("time_slicing", &["\"off\"", "\"enforce\""], &["true", "\"on\""]),
    ("kai_portion", &["\"memory\"", "\"memory-and-time\""], &["\"time\""]),
    ("aliyun_memory_unit", &["\"GiB\"", "\"MiB\""], &["\"GB\""]),
    ("context_mem", &["\"300Mi\""], &["300", "\"much\""]),
    ("no_glibc", &["\"allow\"", "\"refuse\""], &["\"inject\""]),
    ("privileged", &["\"inject\"", "\"refuse\""], &["\"allow\"", "false"]),
    ("native_limits", &["\"off\"", "\"auto\"", "\"required\""], &["\"on\""]),
    ("lending", &["\"off\"", "\"allowed\"", "\"always\""], &["\"on\"", "true"]),
    ("lending_max", &["1", "100"], &["0", "101", "\"80%\""]),
    ("sampled_excess", &["\"report\"", "\"hold\""], &["\"off\"", "true"]),
    ("driver_libraries", &["\"/run/nvidia/driver/usr/lib\""], &["\"lib\""]),
    ("driver_library", &[], &["\"/lib\""]),
];

fn hook() -> Result {
    let scratch = Scratch::new()?;
    let config = json!({
        "ociVersion": "1.0.2", "root": {"path": "rootfs"}, "linux": {"namespaces": [{"type": "mount"}]},
        "process": {"args": ["a"], "env": ["GPU_MEM_LIMIT=1Gi"], "cwd": "/"},
    });
    fs::write(scratch.path().join("config.json"), config.to_string())?;
    let file = scratch.path().join("node.json");
    for (key, right, wrong) in SETTINGS {
        for (values, well) in [(right, true), (wrong, false)] {
            for value in *values {
                fs::write(&file, format!("{{\"{key}\": {value}}}"))?;
                let mut explain = Command::new(Build::shipped()?.gpucap()?);
                explain.arg("explain").arg(scratch.path()).arg("--config").arg(&file);
                let output = explain.output()?;
                let said = String::from_utf8_lossy(&output.stdout);
                // What is wrong with the file is named with the file; all else is about the container.
                let takes = !said.contains("/node.json: ");
                expect(takes == well && !said.is_empty(), || format!("{key}: {value}: {said}"))?;
                let (taken, said) = taken(&["--set-json", &format!("settings.{key}={value}")])?;
                expect(taken == well, || format!("{key}: {value}: {said}"))?;
            }
        }
    }
    Ok(())
}

/// The values behind each `--set` of a page, without a shell's quotes.
fn set_by(page: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(project().join(page))?;
    let mut found = Vec::new();
    for rest in text.split("--set ").skip(1) {
        let mut quoted = false;
        let ends = |sign: char| {
            quoted ^= sign == '\'';
            !quoted && (sign.is_whitespace() || sign == '`' || sign == ')')
        };
        let value = rest.split(ends).next().unwrap_or_default();
        found.push(value.replace('\'', ""));
    }
    Ok(found)
}

fn shown() -> Result {
    for page in ["README.md", "docs/src/getting-started.md", "docs/src/kubernetes.md"] {
        let all = set_by(page)?;
        expect(!all.is_empty(), || format!("{page} sets nothing"))?;
        for value in all {
            let (well, said) = taken(&["--set", &value])?;
            expect(well, || format!("{page}: --set {value}: {said}"))?;
        }
    }
    Ok(())
}
