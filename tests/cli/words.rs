//! The command line itself: help, aliases, colours, files that it names, and the words that choose what is shown.

use crate::look::begin;
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Output, Result, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("color: always paints without a terminal, never does not", colors),
        trial("config: a file that is named must exist", named_configuration),
        trial("status: ps and ls are other names for it", aliases),
    ]
}

fn output(words: &[&str]) -> Result<Output> {
    gpucap(words)?.output()
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
    for name in ["ps", "ls"] {
        let same = help(name)?;
        expect(same.stdout == status, || format!("{name}: {same}"))?;
    }
    says(&output(&["--help"])?.success()?, "[aliases: ps, ls]")
}
