//! The plan for people: the answer first, then what each source said.

use crate::terminal::style;
use gpucap_core::units::Bytes;
use gpucap_plan::{Cap, Caps, Decision, Plan};
use std::fmt::Write;
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
            let cap = Cap { memory: entry.memory, core: entry.core };
            // Writing to a String cannot fail.
            let _ = write!(text, "  {}: {}", entry.key, said(cap));
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
        for line in lines(&grant.caps) {
            let _ = writeln!(text, "    {line}");
        }
    }
    for note in &decision.notes {
        let _ = writeln!(text, "  {} {note}", style::dim("note:"));
    }
    text
}

fn lines(caps: &Caps) -> Vec<String> {
    let mut lines: Vec<String> =
        caps.named.iter().map(|(name, cap)| format!("{name}: {}", said(*cap))).collect();
    let others = if lines.is_empty() { "every GPU" } else { "any other GPU" };
    lines.push(match caps.others {
        Some(cap) => format!("{others}: {}", said(cap)),
        None => format!("{others}: refused"),
    });
    lines
}

fn said(cap: Cap) -> String {
    match cap.core {
        Some(core) => format!("memory {}, time {core}", cap.memory),
        None => format!("memory {}, time not throttled", cap.memory),
    }
}
