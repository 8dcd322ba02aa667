//! `status` for people, in short: a table with one row for each container or run and each of its GPUs.
//!
//! On a terminal no row is wider than that: the name of a GPU and that of a container are cut, the numbers never. In a
//! pipe or a file nothing is cut.

use super::view::{Device, LedgerView, Status};
use crate::container::effective_limit::{EffectiveLimit, Limit};
use crate::container::ledgers::DENIED;
use crate::terminal::quantity::{exact, size};
use crate::terminal::style;
use crate::terminal::table::{Cell, Column, Table};
use gpucap_core::limits::file::{Key, MemoryLimit};
use gpucap_plan::Card;

/// Stands for what is not limited, and for time that is not measured.
pub(crate) const NONE: &str = "-";
/// Stands before memory that is beyond its limit: the meaning does not depend on a colour.
pub(crate) const BEYOND: &str = "! ";
const COLUMNS: &[Column] = &[
    Column::left("GPU").at_least(10),
    Column::left("CONTAINER").ends_at_least(12),
    Column::right("MEMORY"),
    Column::right("TIME"),
    Column::right("REFUSED"),
    Column::right("PROCS"),
];

/// The lines, on a machine with these GPUs.
pub(super) fn render(status: &Status, cards: &[Card], columns: Option<usize>) -> String {
    let mut text = remarks(status);
    if !status.ledgers.is_empty() {
        let mut table = Table::new(0, 2, COLUMNS);
        status.ledgers.iter().flat_map(|it| rows(it, cards)).for_each(|row| table.row(row));
        text.insert(0, table.render(columns));
    }
    text.join("\n")
}

/// What is not in a ledger that can be read.
pub(crate) fn remarks(status: &Status) -> Vec<String> {
    let mut text = Vec::new();
    if !status.unused.is_empty() {
        let count = status.unused.len();
        let (runs, have) = if count == 1 { ("run", "has") } else { ("runs", "have") };
        text.push(format!("{count} {runs} of gpucap {have} not used a GPU yet.\n"));
    }
    let (denied, others): (Vec<_>, Vec<_>) =
        status.unreadable.iter().partition(|(_, why)| why == DENIED);
    for (path, why) in others {
        text.push(format!("{}: {}\n", path.display(), style::warn(why)));
    }
    if text.is_empty() && status.ledgers.is_empty() {
        text.push("No process with limits found, as far as this user can see.\n".into());
    }
    // On a machine of several users that is as it should be.
    match denied.len() {
        0 => {}
        1 => text.push(format!("1 ledger of another user is not shown: {DENIED}.\n")),
        count => text.push(format!("{count} ledgers of other users are not shown: {DENIED}.\n")),
    }
    text
}

/// The GPUs that are used, and those that may be.
fn rows(ledger: &LedgerView, cards: &[Card]) -> Vec<[Cell; 6]> {
    let label = ledger.label();
    let mut rows: Vec<_> = ledger.devices.iter().map(|it| used(it, &label, cards)).collect();
    rows.extend(ledger.unused().map(|effective| unused(effective, &label, cards)));
    if rows.is_empty() {
        rows.push([NONE, &label, NONE, NONE, "0", "0"].map(|word| word.to_owned().into()));
    }
    rows
}

fn used(device: &Device, label: &str, cards: &[Card]) -> [Cell; 6] {
    let held = device.held().map_or_else(|| NONE.to_owned(), size);
    let memory = format!("{held} / {}", limit(device));
    let time = match (device.is_timed(), device.compute()) {
        (false, _) => NONE.to_owned(),
        (true, None) => device.time.percent(),
        (true, Some(share)) => format!("{} / {share}", device.time.percent()),
    };
    [
        gpu(&device.name(), cards).into(),
        label.to_owned().into(),
        if device.beyond_limit() > 0 {
            Cell::bad(format!("{BEYOND}{memory}"))
        } else {
            memory.into()
        },
        time.into(),
        exact(device.refusals).into(),
        exact(device.users() as u64).into(),
    ]
}

fn unused(effective: &EffectiveLimit, label: &str, cards: &[Card]) -> [Cell; 6] {
    let time =
        effective.now.core.map_or_else(|| NONE.to_owned(), |share| format!("0.0% / {share}"));
    let (gpu, zero) = (gpu(&effective.gpu.to_string(), cards), || "0".to_owned());
    let memory = format!("0 / {}", memory(effective.now));
    [gpu, label.to_owned(), memory, time, zero(), zero()].map(Into::into)
}

/// The index by which nvidia-smi counts, and the model, all of which are NVIDIA's; the UUID where either is not known.
pub(crate) fn gpu(name: &str, cards: &[Card]) -> String {
    let Some(index) = index(name, cards) else { return name.to_owned() };
    let model = cards.get(index).map_or("", |card| &card.model);
    let model = model.strip_prefix("NVIDIA ").unwrap_or(model);
    format!("{index} {}", if model.is_empty() { name } else { model })
}

/// Returns the index by which nvidia-smi counts; `None` of a MIG instance, and where the driver lists no GPUs.
pub(crate) fn index(name: &str, cards: &[Card]) -> Option<usize> {
    cards.iter().position(|card| card.name.to_string() == name)
}

/// The memory limit of a device that is used: one value, a range, or none.
pub(crate) fn limit(device: &Device) -> String {
    match (device.limit(), device.process_limits(), device.effective) {
        (Some(limit), ..) => size(limit),
        (None, Some((lowest, highest)), _) => format!("{} to {}", size(lowest), size(highest)),
        (None, None, effective) => effective.map_or_else(|| NONE.to_owned(), |it| memory(it.now)),
    }
}

/// The memory limit that the host has set.
pub(crate) fn memory(limit: Limit) -> String {
    match limit.memory {
        MemoryLimit { bytes: Some(bytes), part: None } => size(bytes.0),
        MemoryLimit::NONE => NONE.to_owned(),
        percent => percent.to_string(),
    }
}

impl LedgerView {
    /// The GPUs that the container may use and has not used. `*`, any other one, counts where there is none else.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &EffectiveLimit> {
        let limits = self.container.as_ref().map_or(&[][..], |it| &it.effective);
        // An instance that is limited under the name of its GPU: which GPU it is on is not known.
        let is_listed = |gpu| limits.iter().any(|it| it.gpu == gpu);
        let by_gpu = self.devices.iter().filter_map(|it| it.effective).any(|it| !is_listed(it.gpu));
        let limits = if self.of_gpu || by_gpu { &[] } else { limits };
        limits.iter().filter(|effective| match effective.gpu {
            Key::Name(name) => self.devices.iter().all(|device| device.uuid != name.uuid),
            Key::Every => self.devices.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::{raised, section, status};
    use super::*;
    use crate::error::reason;
    use gpucap_core::config::Slices;
    use gpucap_core::units::{ComputeLimit, Share};
    use gpucap_core::uuid::Uuid;
    use std::io;

    fn table(status: &Status, width: Option<usize>) -> String {
        let name = Uuid([1; 16]).gpu();
        style::plain(&render(
            status,
            &[Card { name, minor: None, slices: Slices::default(), model: "NVIDIA H200".into() }],
            width,
        ))
    }

    fn both() -> Status {
        let mut both = status();
        both.ledgers.insert(0, raised().ledgers.remove(0));
        both
    }

    const NUMBERS: [&str; 3] = [
        "         MEMORY         TIME  REFUSED  PROCS",
        "1.5 GiB / 2 GiB  31.2% / 60%        3      2",
        "1.5 GiB / 2 GiB            -        3      2",
    ];

    #[test]
    fn each_container_and_run_has_a_row_for_each_gpu() {
        let gpu = "0 H200";
        let names = ["CONTAINER         ", "default/train/main", "user-0/run-4242   "];
        let gpus = ["GPU   ", gpu, gpu];
        let numbers = NUMBERS.iter().zip(gpus).zip(names);
        let rows = numbers.map(|((numbers, gpu), name)| format!("{gpu}  {name}  {numbers}\n"));
        let rest = "\n1 run of gpucap has not used a GPU yet.\n\n1 ledger of another user is not shown: permission denied.\n";
        assert_eq!(table(&both(), None), rows.collect::<String>() + rest);
    }

    #[test]
    fn what_this_user_may_not_read_is_counted_in_one_line() {
        let why = io::Error::from_raw_os_error(libc::EACCES);
        let denied = ["/dev/shm/gpucap-1-2", "/dev/shm/gpucap-2-2", "/proc/9/root/.gpucap/ledger"];
        let unreadable = denied.map(|path| (path.into(), reason(&why))).to_vec();
        let mut seen = Status { unreadable, ..Status::default() };
        let none = "No process with limits found, as far as this user can see.\n\n";
        let counted = "3 ledgers of other users are not shown: permission denied.\n";
        assert_eq!(table(&seen, None), format!("{none}{counted}"));
        seen.unreadable.insert(1, ("/dev/shm/gpucap-3-3".into(), "not a regular file".into()));
        let other = "/dev/shm/gpucap-3-3: not a regular file\n\n";
        assert_eq!(table(&seen, None), format!("{other}{counted}"));
    }

    #[test]
    fn a_gpu_of_which_the_driver_does_not_say_enough_goes_by_its_name() {
        let name = Uuid([1; 16]).gpu();
        let card = |model: &str| {
            [Card { name, minor: None, slices: Slices::default(), model: model.into() }]
        };
        let name = name.to_string();
        assert_eq!(gpu(&name, &card("NVIDIA A100-SXM4-80GB")), "0 A100-SXM4-80GB");
        assert_eq!(gpu(&name, &card("Tesla T4")), "0 Tesla T4");
        assert_eq!(gpu(&name, &card("")), format!("0 {name}"));
        assert_eq!(gpu(&name, &[]), name);
    }

    #[test]
    fn the_manual_shows_the_table_of_a_terminal() {
        let mut shown = both();
        shown.ledgers[0].devices[0].used = 15 << 28;
        shown.unused.clear();
        shown.unreadable.clear();
        assert_eq!(format!("```text\n{}```\n", table(&shown, Some(80))), section("table"));
    }

    #[test]
    fn on_a_terminal_names_give_way_and_numbers_stay() {
        let mut long = both();
        for ledger in &mut long.ledgers {
            let names = ledger.container.as_mut().and_then(|it| it.record.names.as_mut());
            names.into_iter().for_each(|names| names.pod = "pod-".repeat(16));
        }
        for width in [72, 80, 120] {
            let text = table(&long, Some(width));
            let rows: Vec<&str> = text.lines().take(3).collect();
            assert!(rows.iter().all(|row| row.chars().count() <= width), "{text}");
            let whole = rows.iter().zip(NUMBERS).all(|(row, end)| row.ends_with(end));
            assert!(whole, "{text}");
            assert!(rows[1].contains('…') && rows[1].contains("/main "), "{text}");
        }
        assert!(!table(&long, None).contains('…'));
    }

    #[test]
    fn what_is_lent_is_shown_behind_the_guarantee() {
        let share = |percent| Share::from_percent(percent).expect("a share");
        for (limit, shown) in [
            (ComputeLimit::burst(share(30), Share::FULL), " 30% (to 100%) "),
            (ComputeLimit::low_priority(share(80)), " low (to 80%) "),
        ] {
            let mut lent = raised();
            let device = &mut lent.ledgers[0].devices[0];
            device.effective.as_mut().expect("a limit").now.core = Some(limit);
            assert!(table(&lent, None).contains(shown), "{}", table(&lent, None));
            let text = style::plain(&super::super::text::render(&lent, 80));
            assert!(text.contains(&format!("(limit{})", shown.trim_end())), "{text}");
        }
    }

    #[test]
    fn memory_over_the_limit_is_marked() {
        let mut over = raised();
        over.ledgers[0].devices[0].used = 15 << 28;
        assert!(table(&over, None).contains("  ! 3.75 GiB / 2 GiB  31.2%"));
        let text = style::plain(&super::super::text::render(&over, 80));
        assert!(text.contains("3.75 GiB of 2 GiB   over the limit by 1.75 GiB\n"), "{text}");
        assert!(!table(&raised(), None).contains('!'));
    }

    #[test]
    fn a_container_without_a_gpu_in_use_shows_what_it_may_use() {
        let mut idle = raised();
        idle.ledgers[0].devices.clear();
        let text = table(&idle, None);
        let row = "default/train/main  0 / 2 GiB  0.0% / 60%        0      0";
        assert_eq!(
            text.lines().last().and_then(|it| it.split_once("  ")).map(|it| it.1),
            Some(row)
        );
        idle.ledgers[0].of_gpu = true;
        assert!(table(&idle, None).ends_with("default/train/main       -     -        0      0\n"));
        assert_eq!(
            table(&Status::default(), None),
            "No process with limits found, as far as this user can see.\n"
        );
    }
}
