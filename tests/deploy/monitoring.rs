//! The alerts and the dashboard of the chart: Prometheus's own `promtool` accepts each expression, each alert
//! fires when it must, and every metric that either names is one that `gpucap metrics` prints.
//!
//! `ci/clients prometheus` fetches promtool; what needs it is skipped aloud without. No Grafana is available to the tests:
//! of the dashboard they hold what it asks of Prometheus, and the form that a panel needs to be shown.

use crate::{ended, expect};
use gpucap_tests::chart;
use gpucap_tests::fetched::program;
use gpucap_tests::{Build, Driver, Result, Scratch, Stop, World, project, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("monitoring: promtool accepts the alerts, and each has a runbook", rules),
        trial("monitoring: each alert fires when it must, and not beside that", alerts),
        trial("monitoring: promtool accepts what the dashboard asks", dashboard),
        trial("monitoring: HAMi's names have the values and labels of ours", of_hami),
        trial("monitoring: each metric that is named is printed", names),
        trial("monitoring: the panels have what Grafana needs, and do not overlap", panels),
    ]
}

/// A file of alerts: these, or their tests.
fn yaml(path: &str) -> Result<Value> {
    serde_yaml_ng::from_str(&fs::read_to_string(project().join(path))?).map_err(Stop::fail)
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[key].as_array().into_iter().flatten()
}

fn rules_of() -> Result<Vec<Value>> {
    let file = yaml("hook/deploy/helm/gpucap/files/rules.yml")?;
    Ok(list(&file, "groups").flat_map(|group| list(group, "rules")).cloned().collect())
}

fn panels_of() -> Result<Vec<Value>> {
    let text = fs::read_to_string(chart::directory().join("files/dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&text).map_err(Stop::fail)?;
    Ok(list(&dashboard, "panels").cloned().collect())
}

/// What the panels ask.
fn questions() -> Result<Vec<String>> {
    let panels = panels_of()?;
    let targets = panels.iter().flat_map(|panel| list(panel, "targets"));
    let questions = targets.filter_map(|target| target["expr"].as_str());
    Ok(questions.map(str::to_owned).collect())
}

fn promtool(words: &[&str]) -> Result<String> {
    let promtool = program("prometheus", "usr/bin/promtool")?;
    ended(Command::new(promtool).args(words).current_dir(project()), true)
}

fn rules() -> Result {
    let said = promtool(&["check", "rules", "hook/deploy/helm/gpucap/files/rules.yml"])?;
    let rules = rules_of()?;
    let found = format!("SUCCESS: {} rules found", rules.len());
    expect(!rules.is_empty() && said.contains(&found), || said.clone())?;
    let manual = fs::read_to_string(project().join("docs/src/metrics.md"))?;
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `Gpucap")?.split_once('`'));
    let rows: Vec<_> = rows.map(|(name, _)| json!(format!("Gpucap{name}"))).collect();
    let alerts: Vec<_> = rules.iter().map(|rule| rule["alert"].clone()).collect();
    expect(rows == alerts, || format!("the manual has {rows:?}, not {alerts:?}"))?;
    for rule in &rules {
        let runbook = rule["annotations"]["runbook"].as_str().unwrap_or_default();
        expect(!runbook.is_empty() && !runbook.contains('\n'), || rule.to_string())?;
    }
    Ok(())
}

fn alerts() -> Result {
    let path = "tests/deploy/alerts.yml";
    let file = yaml(path)?;
    let trials = list(&file, "tests").flat_map(|test| list(test, "alert_rule_test"));
    let firing = trials.filter(|trial| list(trial, "exp_alerts").count() > 0);
    let tested: BTreeSet<_> = firing.map(|trial| trial["alertname"].to_string()).collect();
    let named = rules_of()?.iter().map(|rule| rule["alert"].to_string()).collect();
    expect(tested == named, || format!("tested: {tested:?}, there are: {named:?}"))?;
    let said = promtool(&["test", "rules", path])?;
    expect(said.contains("SUCCESS"), || said.clone())
}

fn of_hami() -> Result {
    let path = "tests/deploy/hami.yml";
    let file = yaml(path)?;
    let tests: Vec<_> = list(&file, "tests").flat_map(|it| list(it, "promql_expr_test")).collect();
    let rules = yaml("hook/deploy/helm/gpucap/files/hami.yml")?;
    let rules = list(&rules, "groups").flat_map(|group| list(group, "rules"));
    for rule in rules {
        let name = rule["record"].as_str().unwrap_or_default();
        let is_in = |test: &&Value| test["expr"].as_str().is_some_and(|it| it.contains(name));
        expect(!name.is_empty() && tests.iter().any(is_in), || rule.to_string())?;
    }
    let said = promtool(&["test", "rules", path])?;
    expect(said.contains("SUCCESS"), || said.clone())
}

fn dashboard() -> Result {
    // promtool checks a question as the expression of a rule; Grafana's variables are in texts, where any text is.
    let questions = questions()?;
    let rule = |(number, expr)| json!({"record": format!("panel:{number}"), "expr": expr});
    let rules: Vec<_> = questions.iter().enumerate().map(rule).collect();
    let groups = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let scratch = Scratch::new()?;
    let path = scratch.path().join("rules.yml");
    fs::write(&path, groups.to_string())?;
    let said = promtool(&["check", "rules", &path.display().to_string()])?;
    let found = format!("SUCCESS: {} rules found", questions.len());
    expect(questions.len() >= 10 && said.contains(&found), || said.clone())
}

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'));
    words.filter(|word| word.starts_with("gpucap_")).map(str::to_owned).collect()
}

/// The names of the samples that `gpucap metrics` prints, whether there are any at the moment or not.
fn printed() -> Result<BTreeSet<String>> {
    let run = World::bare(Driver::Stub).run(&Build::shipped()?.gpucap()?)?;
    let text = run.env("GPUCAP_LEDGER", "").arg("metrics").output()?.success()?.stdout;
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let sample = |(name, kind): (&str, &str)| match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    };
    Ok(types.map(sample).collect())
}

fn names() -> Result {
    let printed = printed()?;
    for name in ["dashboard.json", "rules.yml", "hami.yml"] {
        let named = named(&fs::read_to_string(chart::directory().join("files").join(name))?);
        let unknown: Vec<_> = named.difference(&printed).collect();
        expect(named.len() >= 4 && unknown.is_empty(), || format!("{name}: {unknown:?}"))?;
    }
    // The alerts are tested on series of those names, too.
    let tested = named(&fs::read_to_string(project().join("tests/deploy/alerts.yml"))?);
    let unknown: Vec<_> = tested.difference(&printed).collect();
    expect(unknown.is_empty(), || format!("alerts.yml: {unknown:?}"))
}

/// Left, top, right and bottom edge on the dashboard.
fn place(panel: &Value) -> Option<[u64; 4]> {
    let of = |key: &str| panel["gridPos"][key].as_u64();
    Some([of("x")?, of("y")?, of("x")? + of("w")?, of("y")? + of("h")?])
}

fn panels() -> Result {
    let panels = panels_of()?;
    let mut seen: Vec<[u64; 4]> = Vec::new();
    let mut ids = BTreeSet::new();
    for panel in &panels {
        let source = &panel["datasource"];
        let has = ["timeseries", "stat"].contains(&panel["type"].as_str().unwrap_or_default())
            && panel["title"].is_string()
            && list(panel, "targets").count() > 0
            && list(panel, "targets").all(|target| target["datasource"] == *source)
            && *source == json!({"type": "prometheus", "uid": "${datasource}"})
            && ids.insert(panel["id"].as_u64());
        expect(has, || panel.to_string())?;
        let own = place(panel).ok_or_else(|| Stop::fail(panel))?;
        let meets =
            |it: &[u64; 4]| own[0] < it[2] && it[0] < own[2] && own[1] < it[3] && it[1] < own[3];
        expect(own[2] <= 24 && !seen.iter().any(meets), || format!("{}: {own:?}", panel["title"]))?;
        seen.push(own);
    }
    expect(panels.len() >= 10, || format!("{} panels", panels.len()))
}
