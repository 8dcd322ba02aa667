//! `gpucap run`, and the stage of a container that is refused.

use crate::{demo_program, ended, expect, gpucap, says};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Key};
use gpucap_core::process::Stat;
use gpucap_core::units::{Amount, Bytes};
use gpucap_tests::{Build, Output, Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("run: the program sees the limit as its card", the_program_sees_the_limit),
        trial("run: nothing is run on a value that cannot be used", nothing_on_a_bad_value),
        trial("run: a failure before the program has a code of its own", codes),
        trial("run: without room for the ledger nothing is run", no_room),
        trial("run: the program needs no -- before it", no_dashes),
        trial("an error names the word that is wrong", blame),
        trial("a name in an error cannot send control sequences", harmless),
        trial("run: the program's end is the end of the run", the_program_ends_it),
        trial("run: inside a run the limit is only lowered and the ledger stays", inside_a_run),
        trial("run: what cannot be compared with the outer limit is refused", incomparable),
        trial("run: inside a container with limits they are only lowered", inside_a_container),
        trial("run: limits that hold are passed on without a word", silent),
        trial("run: a limit into which nothing fits holds, and is doubted", doubted),
        trial("run: a variable whose name is nearly that of a limit is said to be so", near),
        trial("run: a program out of reach is said to be so", out_of_reach),
        trial("run: the ledger of a run that is over is swept", swept),
        trial("gc: the ledger of a run whose pid namespace is over is removed", swept_elsewhere),
        trial("gc: of root removes the ledgers of all users' runs that are over", swept_of_others),
        trial("hook: a stage that is not known is refused", stage),
    ]
}

fn the_program_sees_the_limit() -> Result {
    let output = gpucap(&["run", "--mem", "1Gi", "--", &demo_program()?])?.output()?.success()?;
    says(&output, "1024 MiB in all, 768 MiB free")?;
    says(&output, "256MiB /   1024MiB |")
}

fn harmless() -> Result {
    for words in [
        &["run", "--mem", "1Gi", "--", "./no\x1b[31m\nsuch"][..],
        &["limit", "no\x1b[31m\nsuch", "--mem", "1Gi"],
        &["configure", "podman", "--undo", "--file", "/proc/1/no\x1b[31m\nsuch/x/"],
        &["explain", "/no\x1b[31m\nsuch"],
    ] {
        let output = gpucap(words)?.output()?;
        let is_plain = !output.stderr.contains('\x1b') && output.stderr.lines().count() <= 1;
        expect(is_plain, || output.to_string())?;
    }
    Ok(())
}

fn no_room() -> Result {
    let there = Command::new("unshare").args(["--mount", "true"]).output()?;
    if !there.status.success() {
        return Err(Stop::skip("mount namespaces are needed (root)"));
    }
    for (size, code) in [("16k", 125), ("1m", 0)] {
        let shell = format!("mount -t tmpfs -o size={size} own /dev/shm && exec \"$@\"");
        let through = ["unshare", "--mount", "sh", "-c", &shell, "sh"].map(str::as_ref);
        let run = gpucap(&["run", "--mem", "1Gi", "--", "touch", "ran"])?.through(&through);
        let output = run.output()?;
        ended(&output, code)?;
        expect(run.directory().join("ran").exists() == (code == 0), || output.to_string())?;
        if code != 0 {
            says(&output, "cannot be made: no space left on device")?;
        }
    }
    Ok(())
}

fn nothing_on_a_bad_value() -> Result {
    for (option, value) in
        [("--mem", "5gg"), ("--mem", "0"), ("--mem", "-1"), ("--cores", "101"), ("--profile", "9g")]
    {
        let run = gpucap(&["run", option, value, "--", "touch", "ran"])?;
        let output = run.output()?;
        ended(&output, 125)?;
        says(&output, "allowed: ")?;
        expect(output.stderr.lines().count() == 1, || format!("not one line: {output}"))?;
        expect(!run.directory().join("ran").exists(), || format!("{option} {value}: it ran"))?;
    }
    let good = gpucap(&["run", "--mem", "5Gi", "--", "touch", "ran"])?;
    good.output()?.success()?;
    expect(good.directory().join("ran").exists(), || "with a good value nothing ran".into())
}

fn codes() -> Result {
    for (words, code) in [
        (&["run", "--", "true"][..], 125),
        (&["run", "--mem", "1Gi", "--", "no-such-program"], 127),
        (&["run", "--mem", "1Gi", "--", ""], 127),
        (&["run", "--mem", "1Gi", "--gpu", "0", "--gpu", "0", "--", "true"], 0),
        (&["run", "--mem", "1Gi", "--", "/etc/passwd"], 126),
        (&["run", "--mem", "1Gi"], 125),
        (&["run"], 125),
        (&["run", "--memory", "1Gi", "--", "true"], 125),
        (&["run", "--mem", "x", "true"], 125),
        (&["run", "--bad", "1Gi", "true"], 125),
        (&["--color", "never", "run", "--memory", "1Gi", "--", "true"], 125),
        (&["--color=never", "run"], 125),
        (&["run", "--help"], 0),
        (&["nothing"], 2),
    ] {
        ended(&gpucap(words)?.output()?, code)?;
    }
    Ok(())
}

fn no_dashes() -> Result {
    for (words, printed) in [
        (&["run", "--mem", "1Gi", "echo", "a", "--mem", "b"][..], "a --mem b\n"),
        (&["run", "--mem=1Gi", "echo", "-n", "a"], "a"),
        (&["run", "--mem", "1Gi", "echo", "a", "--", "--help"], "a -- --help\n"),
        (&["run", "--mem", "1Gi", "--", "echo", "--", "a"], "-- a\n"),
        (&["run", "--mem", "1Gi", "echo", "--color", "never"], "--color never\n"),
    ] {
        let output = gpucap(words)?.output()?.success()?;
        expect(output.stdout == printed, || format!("{words:?}: {output}"))?;
    }
    Ok(())
}

fn blame() -> Result {
    let pid = u32::MAX.to_string();
    for (words, why) in [
        (
            &["run", "--gpu", "foo", "--mem", "1Gi", "--", "true"][..],
            "--gpu \"foo\": a GPU is named",
        ),
        (&["limit", "x", "--mem", "50%"], "a percentage cannot be given here"),
        (&["explain", "--pid", &pid], "there is no process 4294967295"),
    ] {
        says(&gpucap(words)?.output()?, why)?;
    }
    Ok(())
}

fn the_program_ends_it() -> Result {
    let shell = |script| gpucap(&["run", "--mem", "1Gi", "--", "sh", "-c", script])?.output();
    ended(&shell("exit 7")?, 7)?;
    let output = shell("kill -TERM $$")?;
    expect(output.signal() == Some(15), || format!("not ended by signal 15: {output}"))
}

fn inside_a_run() -> Result {
    let command = Build::shipped()?.gpucap()?.display().to_string();
    let script = "echo ledger=$GPUCAP_LEDGER; \"$0\" run --mem \"$1\" -- \
                  sh -c 'echo inner=$GPUCAP_LEDGER preload=$LD_PRELOAD; exec \"$0\"' \"$2\"";
    let program = demo_program()?;
    for (asked, holds) in [("4Gi", 2048), ("1Gi", 1024)] {
        let words = ["run", "--mem", "2Gi", "--", "sh", "-c", script, &command, asked, &program];
        let output = gpucap(&words)?.output()?.success()?;
        let outer = output.value("ledger")?;
        expect(outer.starts_with("/dev/shm/gpucap-"), || format!("no ledger: {output}"))?;
        says(&output, &format!("inner={outer} "))?;
        says(&output, &format!("{holds} MiB in all"))?;
        says(&output, "under a budget already")?;
        let named = output.stdout.matches("libgpucap.so").count();
        expect(named == 1, || format!("the library is named {named} times: {output}"))?;
    }
    Ok(())
}

fn incomparable() -> Result {
    let run = gpucap(&["run", "--mem", "25%", "--", "touch", "ran"])?.env("GPU_MEM_LIMIT", "4Gi");
    let output = run.output()?;
    ended(&output, 125)?;
    says(&output, "GPU_MEM_LIMIT=4GiB is set already")?;
    expect(!run.directory().join("ran").exists(), || "it ran".into())
}

fn inside_a_container() -> Result {
    let mut entry = Entry::new(Key::Every);
    entry.memory = Amount::Bytes(Bytes(2 << 30)).into();
    let file = LimitsFile { entries: vec![entry], ..LimitsFile::default() }.write();
    for (asked, total) in [("4Gi", 2048), ("1Gi", 1024)] {
        let words = ["run", "--mem", asked, "--", &demo_program()?];
        let output = gpucap(&words)?.limits_file(&file)?.output()?.success()?;
        says(&output, &format!("{total} MiB in all"))?;
        says(&output, "this container has limits already")?;
    }
    let words = ["run", "--mem", "1Gi", "--", "sh", "-c", "echo ledger=$GPUCAP_LEDGER."];
    let output = gpucap(&words)?.limits_file(&file)?.output()?.success()?;
    expect(output.value("ledger")? == ".", || format!("a second ledger: {output}"))
}

fn silent() -> Result {
    for limit in [["--mem", "1Gi"], ["--cores", "30"], ["--profile", "1g.5gb"]] {
        let output = gpucap(&["run", limit[0], limit[1], "--", "true"])?.output()?.success()?;
        expect(output.stderr.is_empty(), || format!("not silent: {output}"))?;
    }
    Ok(())
}

fn doubted() -> Result {
    let words = ["run", "--mem", "4", "--", "sh", "-c", "echo $GPU_MEM_LIMIT"];
    let output = gpucap(&words)?.output()?.success()?;
    let doubt = "gpucap: nothing fits into 4 bytes; is 4Gi meant?\n";
    expect(output.stdout == "4\n" && output.stderr == doubt, || output.to_string())
}

fn near() -> Result {
    let run = gpucap(&["run", "--cores", "30", "--", "sh", "-c", "echo $GPU_MEM_LIMT"])?;
    let output = run.env("GPU_MEM_LIMT", "2GiB").env("GPU_NAME", "a").output()?.success()?;
    let miss = "gpucap: environment GPU_MEM_LIMT is not read: is GPU_MEM_LIMIT meant?\n";
    expect(output.stdout == "2GiB\n" && output.stderr == miss, || output.to_string())
}

fn out_of_reach() -> Result {
    let program = crate::look::static_program()?.display().to_string();
    let output = gpucap(&["run", "--mem", "1Gi", "--", &program])?.output()?.success()?;
    says(&output, "is statically linked")?;
    // To a user who is its owner it gives no more rights.
    let scratch = Scratch::new()?;
    let own = scratch.path().join("own");
    fs::copy("/bin/true", &own)?;
    fs::set_permissions(&own, fs::Permissions::from_mode(0o4755))?;
    let output = gpucap(&["run", "--mem", "1Gi", "--", &own.display().to_string()])?.output()?;
    expect(output.code() == Some(0) && output.stderr.is_empty(), || output.to_string())
}

fn swept() -> Result {
    let ledger = |output: &Output| output.value("ledger").map(str::to_owned);
    let tell = [
        "run",
        "--mem",
        "1Gi",
        "--",
        "sh",
        "-c",
        "echo ledger=$GPUCAP_LEDGER; test -e $GPUCAP_LEDGER",
    ];
    let first = ledger(&gpucap(&tell)?.output()?.success()?)?;
    let second = ledger(&gpucap(&tell)?.output()?.success()?)?;
    expect(first != second, || "two runs shared a ledger".into())?;
    expect(!Path::new(&first).exists(), || format!("{first} was left"))
}

/// Its maker's number says nothing outside: as root it is known that no process is in there.
fn swept_elsewhere() -> Result {
    let through = ["unshare", "--pid", "--fork", "--mount-proc"];
    let there = Command::new(through[0]).args(&through[1..]).arg("true").output()?;
    let first = fs::read_link("/proc/self/ns/pid")?;
    if !there.status.success() || first != Path::new("pid:[4026531836]") {
        return Err(Stop::skip("the machine's own pid namespace and root are needed"));
    }
    let tell = ["run", "--mem", "1Gi", "--", "sh", "-c", "echo ledger=$GPUCAP_LEDGER"];
    let through = through.map(str::as_ref);
    let output = gpucap(&tell)?.through(&through).output()?.success()?;
    let ledger = output.value("ledger").unwrap_or_default().to_owned();
    gpucap(&["gc"])?.output()?.success()?;
    expect(!Path::new(&ledger).exists(), || format!("{ledger} was left"))
}

fn swept_of_others() -> Result {
    const USER: &str = "60417";
    let through = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--"];
    let through = through.map(str::as_ref);
    let there = Command::new(through[0]).args(&through[1..]).arg("true").output()?;
    if !there.status.success() {
        return Err(Stop::skip("no other user can be had (root)"));
    }
    let tell = |script| -> Result<Output> {
        let words = ["run", "--mem", "1Gi", "--", "sh", "-c", script];
        gpucap(&words)?.through(&through).output()?.success()
    };
    // One of which a child lives on, and one that is over: the later one sweeps what was before it.
    let living = "echo ledger=$GPUCAP_LEDGER; sleep 600 >/dev/null 2>&1 & echo child=$!";
    let (kept, over) = (tell(living)?, tell("echo ledger=$GPUCAP_LEDGER")?);
    let is_there = |run: &Output| {
        let ledger = run.value("ledger").unwrap_or_default();
        let beside = ledger.replace("/gpucap-", &format!("/gpucap-{USER}-runs/gpucap-"));
        [ledger, &beside].map(|file| Path::new(file).exists())
    };
    // Another test may have removed the other one.
    let before = is_there(&kept);
    let swept = gpucap(&["gc"])?.output();
    let after = [is_there(&kept), is_there(&over)];
    let child = kept.value("child").unwrap_or_default();
    Command::new("kill").arg(child).status()?;
    // It ends when it next runs; the process that takes it over may never wait for it.
    let end = Instant::now() + Duration::from_secs(20);
    let lives = || {
        let stat = fs::read(format!("/proc/{child}/stat")).ok();
        stat.and_then(|text| Stat::parse(&text)).is_some_and(|stat| !stat.ended)
    };
    while lives() && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    expect(!lives(), || format!("still there: {kept}"))?;
    swept?.success()?;
    expect(before == [true; 2], || format!("{before:?}: {kept}"))?;
    expect(after == [[true; 2], [false; 2]], || format!("{after:?}: {kept}{over}"))?;
    gpucap(&["gc"])?.output()?.success()?;
    drop(fs::remove_dir(format!("/dev/shm/gpucap-{USER}-runs")));
    expect(is_there(&kept) == [false; 2], || format!("left: {kept}"))
}

fn stage() -> Result {
    let output = gpucap(&["hook", "createContainer"])?.output()?;
    ended(&output, 5)?;
    says(&output, "createContainer")
}
