//! `explain` for people: the answer first, then what it rests on.

use super::facts::Facts;
use super::verdict::Verdict;
use crate::container::effective_limit::Limit;
use crate::node::elf::Loading;
use crate::node::proc::printable;
use crate::terminal::quantity::size;
use crate::terminal::style;
use gpucap_core::config::{
    Config, GPU_CORE_MAX_PCT, GPU_CORE_PCT, GPU_CORE_POLICY, GPU_CORE_PRIORITY, GPU_MEM_LIMIT,
    GPU_PROFILE, PerGpu,
};
use gpucap_core::limits::file::Key;
use gpucap_core::limits::{Limits, LimitsFile, file};
use std::fmt::{Display, Write};
use std::os::unix::ffi::OsStrExt;

/// The lines; the last a remark, if there is one.
pub(super) fn render(facts: &Facts, verdict: &Verdict, remark: &str) -> String {
    let mut text = answer(facts, verdict);
    text.push('\n');
    section(&mut text, "limits", &limits(facts));
    section(&mut text, "library", &library(facts));
    section(&mut text, "ledger", &ledger(facts));
    if !remark.is_empty() {
        section(&mut text, "budget", &[remark.to_owned()]);
    }
    text
}

fn answer(facts: &Facts, verdict: &Verdict) -> String {
    let who = match &facts.process {
        Some(seen) => format!("Process {} ({})", seen.pid, seen.command),
        None => "A program started from here".into(),
    };
    let runs = facts.process.is_some();
    let word = |is: &'static str, would: &'static str| if runs { is } else { would };
    let who = style::bold(&who);
    match verdict {
        Verdict::Limited => {
            format!("{who} {}.\n", style::good(word("is limited", "would be limited")))
        }
        Verdict::NotLimited(why) => {
            let not = style::warn(word("is not limited", "would not be limited"));
            format!("{who} {not}: {}.\n", why.says())
        }
        Verdict::Broken(broken) => {
            let none = style::bad(word("is allowed no GPU work", "would be allowed no GPU work"));
            format!("{who} {none}: its limits are invalid.\n  {broken}\n")
        }
    }
}

/// A heading, and the text behind it.
fn section(text: &mut String, name: &str, lines: &[String]) {
    for (at, line) in lines.iter().enumerate() {
        let heading = if at == 0 { name } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}   {line}", style::dim(&format!("{heading:<7}")));
    }
}

fn limits(facts: &Facts) -> Vec<String> {
    let mut lines = match &facts.limits {
        Ok(Some(limits)) => sources(limits, facts),
        Ok(None) => vec!["none".into()],
        Err(broken) => vec![broken.clone()],
    };
    if !facts.has_file {
        lines.push(format!("{}: there is none", file::PATH));
    }
    lines
}

/// What each source says.
fn sources(limits: &Limits, facts: &Facts) -> Vec<String> {
    let effective = &facts.effective;
    let Config { memory, core, profile, core_max, core_policy, core_priority, .. } =
        limits.config();
    let file = limits.file();
    // What a run inside has set is no part of what it was started with, even if it is the same.
    let own = |variable: &str| limits.config().own_limits.contains(variable);
    let asked = file.map(|file| &file.asked);
    let mut lines: Vec<String> = file.into_iter().flat_map(|file| of_file(file, facts)).collect();
    lines.extend(memory.as_ref().map(|list| {
        let earlier =
            asked.and_then(|asked| asked.memory.as_ref()).filter(|_| !own(GPU_MEM_LIMIT.name));
        of_variable(GPU_MEM_LIMIT.name, list, earlier, "memory")
    }));
    lines.extend(core.as_ref().map(|list| {
        let earlier =
            asked.and_then(|asked| asked.core.as_ref()).filter(|_| !own(GPU_CORE_PCT.name));
        of_variable(GPU_CORE_PCT.name, list, earlier, "time")
    }));
    lines.extend(profile.as_ref().map(|list| {
        let earlier =
            asked.and_then(|asked| asked.profile.as_ref()).filter(|_| !own(GPU_PROFILE.name));
        of_variable(GPU_PROFILE.name, list, earlier, "memory and time")
    }));
    lines.extend(core_max.as_ref().map(|list| {
        let earlier =
            asked.and_then(|asked| asked.core_max.as_ref()).filter(|_| !own(GPU_CORE_MAX_PCT.name));
        of_variable(GPU_CORE_MAX_PCT.name, list, earlier, "at most this of the time")
    }));
    if lines.len() > 1 {
        lines.push("if several of these limit a GPU, the lowest applies".into());
    }
    lines.extend(core_policy.map(|policy| {
        let is_known = asked.is_some_and(|asked| asked.core_policy == Some(policy));
        of_policy(GPU_CORE_POLICY.name, &policy, is_known, facts.has_file)
    }));
    lines.extend(core_priority.map(|priority| {
        let is_known = asked.is_some_and(|asked| asked.core_priority == Some(priority));
        of_policy(GPU_CORE_PRIORITY.name, &priority, is_known, facts.has_file)
    }));
    let amounts = memory.iter().flat_map(PerGpu::values).filter_map(|amount| amount.doubt());
    let in_file = effective.iter().filter_map(|effective| effective.now.memory.bytes?.doubt());
    for doubt in in_file.chain(amounts).map(|doubt| doubt.to_string()) {
        if !lines.contains(&doubt) {
            lines.push(doubt);
        }
    }
    lines
}

/// What a variable says; one that the container was started with is in the limits file already.
fn of_variable<T: Display + PartialEq>(
    name: &str,
    list: &PerGpu<T>,
    earlier: Option<&PerGpu<T>>,
    what: &str,
) -> String {
    if earlier == Some(list) {
        return format!("{name}={list}: what was requested at the start, and part of the above");
    }
    let gpus = match list {
        PerGpu::Every(_) => "of each GPU",
        PerGpu::Listed(_) => "of the GPUs named; the others stay without a limit",
    };
    format!("{name}={list}: {what} {gpus}")
}

/// What a variable says of lending.
fn of_policy(name: &str, held: &impl Display, is_known: bool, has_file: bool) -> String {
    match (is_known, has_file) {
        (true, _) => {
            format!("{name}={held}: what was requested at the start; the above is what is granted")
        }
        (false, true) => {
            format!("{name}={held}: beside a limits file it can only take lending away")
        }
        (false, false) => format!("{name}={held}: how time that others leave unused may be used"),
    }
}

/// A limits file, or the limits of a run: what holds now, and what held at the start.
fn of_file(limits: &LimitsFile, facts: &Facts) -> Vec<String> {
    let (heading, changed_by) = if facts.has_file {
        (format!("{} (from {}):", file::PATH, limits.source), "the host")
    } else {
        ("the run:".into(), "`gpucap limit`")
    };
    let mut lines = vec![heading];
    for effective in &facts.effective {
        let mut line = format!("  {}: {}", effective.gpu, words(effective.now));
        if effective.now != effective.at_start {
            let start = words(effective.at_start);
            // Writing to a String cannot fail.
            let _ = write!(line, " (changed by {changed_by}; at start: {start})");
        }
        lines.push(line);
    }
    if facts.has_file && !facts.effective.iter().any(|effective| effective.gpu == Key::Every) {
        lines.push("  any other GPU is refused".into());
    }
    lines
}

fn words(Limit { memory, core }: Limit) -> String {
    let core = core.map_or_else(String::new, |core| format!(", time {core}"));
    format!("memory {memory}{core}")
}

fn library(facts: &Facts) -> Vec<String> {
    let mut lines = Vec::new();
    for asking in &facts.asked_by {
        let there = if asking.is_there { "" } else { ", where there is no file" };
        let library = printable(asking.library.as_os_str().as_bytes());
        lines.push(format!("{} names {library}{there}", asking.list));
    }
    if facts.asked_by.is_empty() {
        lines.push("named neither in LD_PRELOAD nor in /etc/ld.so.preload".into());
    }
    if let Some(seen) = &facts.process {
        lines.push(match &seen.mapped {
            Some(file) => format!("mapped in the process: {file}"),
            None => "not mapped in the process".into(),
        });
        lines.push(match &seen.loading {
            Loading::Glibc(loader) => format!("the program is dynamic, loaded by {loader}"),
            Loading::Foreign(loader) => {
                format!("the program is dynamic, loaded by {loader}: not glibc")
            }
            Loading::Static => "the program is statically linked".into(),
            Loading::Script(_) | Loading::Unknown => {
                "the program's file is of no kind we know".into()
            }
        });
    }
    lines
}

fn ledger(facts: &Facts) -> Vec<String> {
    if matches!(facts.limits, Ok(None)) {
        return vec!["none".into()];
    }
    let mut lines = vec![printable(facts.ledger.as_os_str().as_bytes())];
    let holds = match &facts.holds {
        Ok(holds) => holds,
        Err(why) => return [lines, vec![format!("what it holds is not known: {why}")]].concat(),
    };
    for held in holds {
        let mut line = format!(
            "GPU-{}: holds {} ({} for contexts), limit {}",
            held.uuid,
            size(held.used),
            size(held.context),
            size(held.limit)
        );
        if held.refusals > 0 {
            let _ = write!(line, ", {} refused", held.refusals);
        }
        lines.push(line);
    }
    if holds.is_empty() && facts.process.is_some() {
        lines.push("the process has used no GPU yet".into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Why;
    use super::*;

    fn facts(memory: &str) -> Facts {
        let lookup = |name: &str| (name == "GPU_MEM_LIMIT").then(|| memory.as_bytes().to_vec());
        Facts {
            process: None,
            limits: Limits::load(&lookup, None).map_err(|broken| broken.to_string()),
            has_file: false,
            effective: Vec::new(),
            asked_by: Vec::new(),
            ledger: "/dev/shm/gpucap-0-1".into(),
            holds: Ok(Vec::new()),
        }
    }

    #[test]
    fn a_limit_into_which_nothing_fits_is_doubted_once() {
        let lines = limits(&facts("0=4,1=4,2=2Gi"));
        assert_eq!(lines.iter().filter(|it| it.contains("meant?")).count(), 1);
    }

    #[test]
    fn the_answer_comes_first_and_what_it_rests_on_below() {
        let facts = facts("2Gi");
        let text = style::plain(&render(&facts, &Verdict::NotLimited(Why::Missing), ""));
        let expected = "\
A program started from here would not be limited: the file that is to be preloaded is not there.

  limits    GPU_MEM_LIMIT=2GiB: memory of each GPU
            /.gpucap/limits: there is none
  library   named neither in LD_PRELOAD nor in /etc/ld.so.preload
  ledger    /dev/shm/gpucap-0-1
";
        assert_eq!(text, expected);
    }
}
