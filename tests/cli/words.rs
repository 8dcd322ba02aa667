//! The command line itself: help, aliases, colours, files that it names, and the words that choose what is shown.

use crate::look::{begin, ledger_of};
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Build, Output, Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("help: the commands stand in groups, each in one", groups),
        trial("help: -h is shorter than --help, which has the exit status", short_and_long),
        trial("help: where it cannot be written is a failure", unwritable),
        trial("color: always paints without a terminal, never does not", colors),
        trial("config: a file that is named must exist", named_configuration),
        trial("status: ps, ls and list are other names for it", aliases),
        trial("status: a process chooses its ledger", chosen_by_pid),
        trial("status: a GPU chooses the ledgers that use it", chosen_by_gpu),
        trial("status: a word that names nothing is a failure", chosen_by_nothing),
        trial("status: no line is wider than the terminal", terminal_width),
        trial("status: a table has a row for each run, whole in a pipe", table),
        trial("status: one run is shown in full", one_in_full),
        trial("limit: an index is a GPU, as for run", limit_by_index),
        trial("cdi: an index is a GPU, as for run", cdi_by_index),
        trial("cdi: the devices of one container add up", cdi_of_two_gpus),
    ]
}

fn output(words: &[&str]) -> Result<Output> {
    gpucap(words)?.output()
}

fn groups() -> Result {
    let help = output(&["--help"])?.success()?.stdout;
    let headings = ["Run and look:", "Containers on a node:", "For engines:", "Shell:", "Options:"];
    let places: Vec<_> = headings.iter().map(|it| help.find(&format!("\n{it}\n"))).collect();
    let ordered = places.iter().all(Option::is_some) && places.is_sorted();
    expect(ordered, || format!("the headings stand at {places:?} in: {help}"))?;
    for (heading, name) in
        [(0, "run"), (0, "status"), (0, "limit"), (1, "check"), (2, "nri"), (3, "man")]
    {
        let (start, end) = (places[heading].unwrap_or(0), places[heading + 1].unwrap_or(0));
        let line = format!("\n  {name} ");
        let found = help.get(start..end).is_some_and(|part| part.contains(&line));
        expect(found, || format!("{name} is not below {}: {help}", headings[heading]))?;
        expect(help.matches(&line).count() == 1, || format!("{name} is there twice: {help}"))?;
    }
    Ok(())
}

fn unwritable() -> Result {
    for words in [&["--help"][..], &["help", "run"], &["--version"], &["status"]] {
        let shell = "exec \"$@\" >/dev/full";
        let through = ["sh", "-c", shell, "sh"].map(str::as_ref);
        let output = gpucap(words)?.through(&through).output()?;
        ended(&output, 1)?;
        says(&output, "standard output: no space left on device")?;
    }
    Ok(())
}

fn short_and_long() -> Result {
    for words in [&[][..], &["run"], &["status"], &["limit"], &["explain"], &["cdi", "generate"]] {
        let help = |option| output(&[words, &[option]].concat())?.success();
        let (short, long) = (help("-h")?.stdout, help("--help")?.stdout);
        let lengths = (short.lines().count(), long.lines().count());
        expect(lengths.0 < lengths.1, || format!("{words:?}: {lengths:?} lines"))?;
        let is_command = words.is_empty() || long.contains("\nExit status:");
        expect(is_command, || format!("{words:?}: no exit status in {long}"))?;
    }
    Ok(())
}

fn colors() -> Result {
    let _actor = begin()?;
    let painted = |output: &Output| output.stdout.contains("\x1b[");
    for (words, expected) in [
        (&["status"][..], false),
        (&["status", "--color", "auto"], false),
        (&["--color", "never", "status"], false),
        (&["--color", "always", "status"], true),
        (&["status", "--color=always"], true),
        (&["--color=always", "explain"], true),
    ] {
        let run = gpucap(words)?.env("NO_COLOR", "1").output()?;
        expect(painted(&run) == expected, || format!("{words:?}: {run}"))?;
    }
    says(&output(&["--help"])?.success()?, "NO_COLOR")?;
    ended(&output(&["--color", "sometimes", "status"])?, 2)
}

fn named_configuration() -> Result {
    for words in [&["status"][..], &["metrics"], &["gc"], &["limit", "x", "--reset"]] {
        let words = [words, &["--config", "/nosuch/gpucap.json"]].concat();
        let output = output(&words)?;
        ended(&output, 1)?;
        says(&output, "gpucap: /nosuch/gpucap.json: no such file or directory")?;
    }
    output(&["status"])?.success().map(drop)
}

fn aliases() -> Result {
    let help = |name| output(&[name, "--help"])?.success();
    let status = help("status")?.stdout;
    for name in ["ps", "ls", "list"] {
        let same = help(name)?;
        expect(same.stdout == status, || format!("{name}: {same}"))?;
    }
    let versions = (output(&["version"])?.success()?, output(&["--version"])?.success()?);
    expect(versions.0.stdout == versions.1.stdout, || versions.0.to_string())?;
    says(&output(&["--help"])?.success()?, "[aliases: ps, ls]")
}

fn chosen_by_pid() -> Result {
    let (one, other) = (begin()?, begin()?);
    let (pid, ledgers) = (one.pid().to_string(), [ledger_of(&one)?, ledger_of(&other)?]);
    for words in [&["status", &pid][..], &["status", &pid, "--json"]] {
        let output = output(words)?.success()?;
        says(&output, &ledgers[0])?;
        expect(!output.stdout.contains(&ledgers[1]), || format!("both: {output}"))?;
    }
    Ok(())
}

fn chosen_by_gpu() -> Result {
    let actor = begin()?;
    let ledger = ledger_of(&actor)?;
    let whole = output(&["status", &actor.pid().to_string()])?.success()?;
    let gpu = whole.stdout.split_whitespace().find(|word| word.starts_with("GPU-"));
    let gpu = gpu.unwrap_or_default().to_owned();
    for word in [&gpu, gpu.get(..16).unwrap_or_default()] {
        says(&output(&["status", word, "--verbose"])?.success()?, &ledger)?;
    }
    let missing = "GPU-00000000-0000-0000-0000-00000000abcd";
    ended(&output(&["status", missing])?, 1)
}

fn chosen_by_nothing() -> Result {
    let _actor = begin()?;
    for word in ["default/nosuch", "nosuch", "4294967295", "GPU-", ""] {
        let output = output(&["status", word])?;
        ended(&output, 1)?;
        says(&output, "`gpucap status`")?;
        expect(output.stdout.is_empty(), || output.to_string())?;
    }
    Ok(())
}

fn table() -> Result {
    let (one, other) = (begin()?, begin()?);
    let seen = output(&["status"])?.success()?;
    let heading = "GPU CONTAINER MEMORY TIME REFUSED PROCS";
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = seen.stdout.lines().next().map(words);
    expect(title.as_deref() == Some(heading), || seen.to_string())?;
    for actor in [&one, &other] {
        let name = format!("/run-{} ", actor.pid());
        let rows: Vec<&str> = seen.stdout.lines().filter(|line| line.contains(&name)).collect();
        let whole = rows.iter().all(|row| row.contains("356 MiB / 2 GiB"));
        expect(rows.len() == 1 && whole, || seen.to_string())?;
        // A GPU's name has 40 signs.
        let gpu = rows[0].split_whitespace().find(|word| word.starts_with("GPU-"));
        expect(gpu.is_some_and(|gpu| gpu.len() == 40), || seen.to_string())?;
    }
    expect(!seen.stdout.contains('…'), || seen.to_string())
}

fn one_in_full() -> Result {
    let (one, _other) = (begin()?, begin()?);
    let ledger = ledger_of(&one)?;
    let run = format!("run-{}", one.pid());
    let user = ledger.split('-').nth(1).unwrap_or_default();
    for name in [&run, &format!("user-{user}/{run}"), &ledger] {
        let seen = output(&["status", name])?.success()?;
        says(&seen, &format!("Run of process {}", one.pid()))?;
        says(&seen, &ledger)?;
    }
    Ok(())
}

/// The title with the ledger's path has more than 60 columns, and is one line where there are 80.
fn terminal_width() -> Result {
    if !Path::new("/usr/bin/script").exists() {
        return Err(Stop::skip("no script(1), which makes a terminal"));
    }
    let actor = begin()?;
    let (pid, ledger) = (actor.pid().to_string(), ledger_of(&actor)?);
    let command = Build::shipped()?.gpucap()?.display().to_string();
    for (columns, lines) in [(60, 1), (132, 0)] {
        let on_terminal = |words: &str| -> Result<Output> {
            let line = format!("stty cols {columns} && '{command}' status {words} --color never");
            let run = gpucap(&[])?.program("/usr/bin/script".as_ref()).arg("-qec").arg(&line);
            let output = run.arg("/dev/null").output()?.success()?;
            // Other tests' ledgers may be refused here, with their paths.
            let lines = output.stdout.lines().filter(|line| !line.contains(": "));
            let wide = lines.map(|line| line.trim_end().chars().count()).max();
            expect(wide.is_some_and(|wide| wide <= columns), || format!("{wide:?}: {output}"))?;
            Ok(output)
        };
        let table = on_terminal("")?;
        let row = table.stdout.lines().find(|line| line.contains(&format!("{pid} ")));
        let cut = row.is_some_and(|row| row.contains("356 MiB / 2 GiB") && row.contains('…'));
        expect(cut == (columns == 60), || table.to_string())?;
        let output = on_terminal(&pid)?;
        let own = output.stdout.lines().filter(|line| line.trim_end() == ledger).count();
        expect(own == lines, || format!("at {columns}: {output}"))?;
    }
    Ok(())
}

/// Without a container: the option is accepted, and what is missing is the container.
fn limit_by_index() -> Result {
    let output = output(&["limit", "nosuch", "--mem", "1Gi", "--gpu", "0"])?;
    ended(&output, 1)?;
    says(&output, "limit: \"nosuch\": no container or run goes by it here")
}

/// An index is looked up on this machine; a UUID is taken as it is.
fn cdi_by_index() -> Result {
    let generate = |gpu| output(&["cdi", "generate", "own", "--mem", "1Gi", "--gpu", gpu]);
    let uuid = "GPU-00000000-0000-0000-0000-00000000abcd";
    says(&generate(uuid)?.success()?, &format!("\"GPU_MEM_LIMIT={uuid}=1GiB\""))?;
    let index = generate("4294967295")?;
    ended(&index, 1)?;
    says(&index, "gpucap: cdi: ")?;
    let word = generate("first")?;
    ended(&word, 2)?;
    says(&word, "or give its index")
}

/// An engine merges devices so: variables of one name have the last one's value, hooks are all there.
fn cdi_of_two_gpus() -> Result {
    let gpus =
        ["GPU-00000000-0000-0000-0000-00000000000a", "GPU-00000000-0000-0000-0000-00000000000b"];
    let (mut env, mut hooks) = (Value::Null, Vec::new());
    for (gpu, mem) in gpus.iter().zip(["1Gi", "2Gi"]) {
        let words = ["cdi", "generate", "own", "--gpu", gpu, "--mem", mem, "--cores", "30"];
        let file: Value =
            serde_json::from_str(&output(&words)?.success()?.stdout).map_err(Stop::fail)?;
        let mut edits = file["devices"][0]["containerEdits"].clone();
        env = edits["env"].take();
        let each = edits["hooks"].as_array().into_iter().flatten();
        hooks.extend(each.filter(|it| it["hookName"] == "createRuntime").cloned());
    }
    let scratch = Scratch::new()?;
    let config = json!({
        "ociVersion": "1.0.2", "root": {"path": "rootfs"}, "hooks": {"createRuntime": hooks},
        "linux": {"namespaces": [{"type": "mount"}]},
        "process": {"args": ["a"], "env": env, "cwd": "/"},
    });
    fs::write(scratch.path().join("config.json"), config.to_string())?;
    let said = output(&["explain", &scratch.path().display().to_string()])?.success()?;
    for (gpu, limit) in gpus.iter().zip(["memory 1GiB, time 30%", "memory 2GiB, time 30%"]) {
        says(&said, &format!("{gpu}: {limit}"))?;
    }
    Ok(())
}
