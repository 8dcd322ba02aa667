//! The plan for people: the answer first, then what each source said.

use crate::terminal::style;
use gpucap_core::units::Bytes;
use gpucap_plan::{Decision, DeviceLimit, DeviceLimits, Plan};
use std::fmt::{Display, Write};
use std::path::Path;

/// The lines.
pub(super) fn render(decision: &Decision, bundle: &Path) -> String {
    let who = style::bold(&format!("The container of {}", bundle.display()));
    let mut text = match &decision.plan {
        Plan::Limits(_) => format!("{who} {}.\n", style::good("would be limited")),
        Plan::NotAsked => {
            format!("{who} {}: no limit is requested.\n", style::warn("would not be limited"))
        }
        Plan::Refuse(reason) => format!("{who} {}:\n  {reason}\n", style::bad("would be refused")),
    };
    if let Plan::Limits(file) = &decision.plan {
        text.push('\n');
        for entry in &file.entries {
            let time = time(entry.compute());
            // Writing to a String cannot fail.
            let _ = write!(text, "  {}: memory {}, {time}", entry.key, entry.memory);
            let price = entry.context.map(|bytes| format!(", a context {}", Bytes(bytes)));
            let _ = writeln!(text, "{}", price.unwrap_or_default());
        }
    }
    if !decision.grants.is_empty() {
        let _ =
            writeln!(text, "\n  {}", style::dim("the sources; the lowest value of all applies"));
    }
    for grant in &decision.grants {
        let _ = writeln!(text, "  {} ({}): {}", grant.source, grant.convention, grant.said);
        for line in lines(&grant.by_device) {
            let _ = writeln!(text, "    {line}");
        }
    }
    for note in &decision.notes {
        let _ = writeln!(text, "  {} {note}", style::dim("note:"));
    }
    text
}

fn lines(limits: &DeviceLimits) -> Vec<String> {
    let mut lines: Vec<String> =
        limits.named.iter().map(|(name, limit)| format!("{name}: {}", said(*limit))).collect();
    let others = if lines.is_empty() { "every GPU" } else { "any other GPU" };
    lines.push(match limits.others {
        Some(limit) => format!("{others}: {}", said(limit)),
        None => format!("{others}: refused"),
    });
    lines
}

/// What a source says, and of time no more than that.
fn said(limit: DeviceLimit) -> String {
    let DeviceLimit { memory, core, .. } = limit;
    let mut words = format!("memory {memory}, {}", time(core));
    let most = limit.core_max.map(|most| format!("at most {most}"));
    let policy = limit.core_policy.map(|policy| policy.to_string());
    let priority = limit.core_priority.map(|priority| format!("{priority} priority"));
    for more in most.into_iter().chain(policy).chain(priority) {
        // Writing to a String cannot fail.
        let _ = write!(words, ", {more}");
    }
    words
}

fn time(limit: Option<impl Display>) -> String {
    limit.map_or_else(|| "time not limited".into(), |limit| format!("time {limit}"))
}
