//! Time that others leave unused: asked for by `gpucap run` and `gpucap cdi`, granted by the node, and refused whole where
//! a word is wrong.

use crate::{ended, expect, gpucap, says};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Key};
use gpucap_core::units::{ComputeLimit, Share};
use gpucap_tests::{Build, Output, Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("run: options of lending become variables", variables),
        trial(
            "run: nothing is run on a word of lending that cannot be used",
            nothing_on_a_bad_word,
        ),
        trial("run: inside a run that lends nothing, nothing is lent", inside_a_run),
        trial(
            "run: beside a limits file, a policy is explained as one that takes away",
            beside_a_file,
        ),
        trial("limit: a word of lending that cannot be used is refused", limit),
        trial("cdi: a device brings the words of lending", cdi),
        trial("explain: what a node lends is its own decision", bundle),
        trial(
            "explain: low priority without a share is refused where nothing is lent",
            low_priority,
        ),
    ]
}

const SHOW: &str = "echo $GPU_CORE_PCT,$GPU_CORE_POLICY,$GPU_CORE_MAX_PCT,$GPU_CORE_PRIORITY";

fn shown(options: &[&str]) -> Result<Output> {
    let words = [&["run"], options, &["--", "sh", "-c", SHOW]].concat();
    gpucap(&words)?.output()?.success()
}

fn variables() -> Result {
    for (options, holds) in [
        (&["--cores", "30", "--core-policy", "burst", "--core-max", "80"][..], "30%,burst,80%,\n"),
        (&["--cores", "30", "--core-max", "80"], "30%,burst,80%,\n"),
        (&["--profile", "2g", "--core-max", "80"], ",burst,80%,\n"),
        (&["--core-max", "50", "--core-policy", "fixed"], ",fixed,50%,\n"),
        (&["--cores", "30", "--core-policy=Fixed"], "30%,fixed,,\n"),
        (&["--core-priority", "low"], ",,,low\n"),
        (&["--core-max", "50", "--gpu", "0"], ",,0=50%,\n"),
    ] {
        let output = shown(options)?;
        expect(output.stdout == holds && output.stderr.is_empty(), || output.to_string())?;
    }
    let without = shown(&["--mem", "1Gi", "--core-policy", "burst"])?;
    says(&without, "GPU_CORE_POLICY=burst changes nothing without a share of time (--cores)")
}

fn nothing_on_a_bad_word() -> Result {
    for (option, value, why) in [
        ("--core-policy", "brust", "not a policy; allowed: fixed, burst"),
        ("--core-policy", "0=burst", "not a policy; allowed: fixed, burst"),
        ("--core-priority", "high", "not a priority; allowed: normal, low"),
        ("--core-max", "0", "a percentage is from 1 to 100; allowed: 1 to 100"),
        (
            "--core-policy=fixed",
            "--core-max=50",
            "--core-policy fixed lends nothing beyond the share",
        ),
    ] {
        let run = gpucap(&["run", "--cores", "30", option, value, "--", "touch", "ran"])?;
        let output = run.output()?;
        ended(&output, 125)?;
        says(&output, why)?;
        expect(output.stderr.lines().count() == 1, || format!("not one line: {output}"))?;
        expect(!run.directory().join("ran").exists(), || format!("{option} {value}: it ran"))?;
    }
    for words in [&["--core-policy", "burst"][..], &["--core-priority", "normal"]] {
        let output = gpucap(&[&["run"], words, &["true"]].concat())?.output()?;
        ended(&output, 125)?;
        says(
            &output,
            "no limit: give --mem, --cores, --profile, --core-max or --core-priority low",
        )?;
    }
    let words = ["run", "--gpu", "0", "--cores", "30", "--core-priority", "low", "true"];
    says(&gpucap(&words)?.output()?, "--core-priority low is for every GPU: give it without --gpu")
}

fn inside_a_run() -> Result {
    let command = Build::shipped()?.gpucap()?.display().to_string();
    let script = format!("\"$0\" run --cores 20 --core-policy burst -- sh -c '{SHOW}'");
    for (outer, holds) in [("fixed", "20%,fixed,,\n"), ("burst", "20%,burst,,\n")] {
        let policy = ["run", "--cores", "30", "--core-policy", outer, "--"];
        let words = [&policy[..], &["sh", "-c", &script, &command]].concat();
        let output = gpucap(&words)?.output()?.success()?;
        expect(output.stdout == holds, || format!("{outer}: {output}"))?;
    }
    let words = ["run", "--cores", "30", "--", "sh", "-c", &script, &command];
    let output = gpucap(&words)?.output()?.success()?;
    expect(output.stdout == "20%,fixed,,\n", || output.to_string())?;
    says(&output, "GPU_CORE_POLICY=fixed holds already and stays; burst would be more")
}

fn beside_a_file() -> Result {
    let share = |percent| Share::from_percent(percent).ok_or_else(|| Stop::fail("no share"));
    let limit = ComputeLimit::burst(share(30)?, share(80)?);
    let entry = Entry::new(Key::Every).with_compute(Some(limit), None);
    let file = LimitsFile { entries: vec![entry], ..LimitsFile::default() }.write();
    let explained = |words: &[&str]| {
        let run = gpucap(words)?.limits_file(&file)?.env("GPU_CORE_POLICY", "fixed");
        run.output()
    };
    let text = explained(&["explain"])?;
    says(&text, "*: memory not limited, time 30% (to 80%)")?;
    says(&text, "GPU_CORE_POLICY=fixed: beside a limits file it can only take lending away")?;
    let json = explained(&["explain", "--json"])?;
    let json: Value = serde_json::from_str(&json.stdout).map_err(Stop::fail)?;
    let limits = &json["limits"];
    let said = (&limits["file"][0]["core_percent"], &limits["file"][0]["core_max_percent"]);
    expect(said == (&json!(30.0), &json!(80.0)), || json.to_string())?;
    expect(limits["GPU_CORE_POLICY"] == "fixed", || json.to_string())
}

fn limit() -> Result {
    for (words, why) in [
        (&["--core-policy", "brust"][..], "not a policy"),
        (&["--core-priority", "high"], "not a priority"),
        (&["--core-max", "101"], "a percentage is from 1 to 100"),
    ] {
        let output = gpucap(&[&["limit", "nosuch"], words].concat())?.output()?;
        ended(&output, 2)?;
        says(&output, why)?;
    }
    for words in
        [&["--core-policy", "burst"][..], &["--core-max", "80"], &["--core-priority", "low"]]
    {
        let output = gpucap(&[&["limit", "nosuch"], words].concat())?.output()?;
        ended(&output, 1)?;
        says(&output, "limit: \"nosuch\": no container or run goes by it here")?;
    }
    Ok(())
}

fn cdi() -> Result {
    let words = ["cdi", "generate", "own", "--cores", "30", "--core-policy", "burst"];
    let output = gpucap(&words)?.output()?.success()?;
    says(&output, "\"GPU_CORE_PCT=30%\"")?;
    says(&output, "\"GPU_CORE_POLICY=burst\"")
}

/// The bundle of a container with this environment, judged on a node with these settings.
fn judged(env: &[&str], node: &Value, words: &[&str]) -> Result<Output> {
    let scratch = Scratch::new()?;
    let bundle = scratch.path();
    let config = json!({
        "ociVersion": "1.0.2", "root": {"path": "rootfs"}, "linux": {"namespaces": [{"type": "mount"}]},
        "process": {"args": ["a"], "env": env, "cwd": "/"},
    });
    fs::write(bundle.join("config.json"), config.to_string())?;
    let file = bundle.join("node.json");
    fs::write(&file, node.to_string())?;
    let (bundle, file) = (bundle.display().to_string(), file.display().to_string());
    let words = [&["explain", &bundle, "--config", &file], words].concat();
    gpucap(&words)?.output()
}

fn bundle() -> Result {
    let env = ["CUDA_DEVICE_SM_LIMIT=30", "GPU_CORE_POLICY=burst"];
    let lent = json!({"lending": "allowed", "lending_max": 80});
    let text = judged(&env, &lent, &[])?;
    says(&text, "*: memory not limited, time 30% (to 80%)")?;
    says(&text, "time not limited, burst")?;
    let output = judged(&env, &lent, &["--json"])?;
    let json: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
    let limit = &json["limits"][0];
    for (key, held) in [
        ("core_percent", json!(30.0)),
        ("core_max_percent", json!(80.0)),
        ("core_policy", json!("burst")),
        ("core_priority", json!("normal")),
    ] {
        expect(limit[key] == held, || format!("{key}: {output}"))?;
    }
    let off = judged(&env, &json!({}), &[])?;
    says(&off, "*: memory not limited, time 30%\n")?;
    says(
        &off,
        "burst is ignored: this node lends no GPU time (lending: off), so the share is fixed",
    )
}

fn low_priority() -> Result {
    let env = ["GPU_MEM_LIMIT=1Gi", "GPU_CORE_PRIORITY=low"];
    let refused = judged(&env, &json!({}), &[])?;
    says(&refused, "would be refused")?;
    says(&refused, "this node lends none (lending: off): nothing would limit its time")?;
    let lent = judged(&env, &json!({"lending": "always"}), &[])?;
    says(&lent, "*: memory 1GiB, time low (to 100%)")
}
