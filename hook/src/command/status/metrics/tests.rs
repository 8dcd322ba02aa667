//! What the metrics say of made-up ledgers, and that the manual names each of them.

use super::super::text::tests::{raised, status};
use super::*;
use std::collections::BTreeSet;

const MANUAL: &str = include_str!("../../../../../docs/src/metrics.md");

#[test]
fn a_container_is_labelled_by_its_names() {
    let text = render(&raised());
    let id = format!("4f6c1e2d3a4b{}", "0".repeat(52));
    let labels = format!(
        "kind=\"container\",namespace=\"default\",pod=\"train\",container=\"main\",\
         id=\"{id}\",gpu=\"GPU-01010101-0101-0101-0101-010101010101\""
    );
    for (name, value) in [
        ("memory_limit_bytes", "2147483648.0"),
        ("memory_used_bytes", "1610612736.0"),
        ("memory_peak_bytes", "2147483648.0"),
        ("memory_refusals_total", "3.0"),
        ("core_guaranteed_ratio", "0.6"),
        ("core_max_ratio", "0.6"),
        ("core_used_ratio", "0.312"),
        ("core_busy_seconds_total", "75.9"),
        ("core_borrowed_seconds_total", "0.25"),
        ("core_waited_seconds_total", "3.0"),
        ("core_debt_seconds", "0.011000001"),
        ("launches_total", "12345.0"),
        ("last_launch_timestamp_seconds", "1790000000.0"),
        ("processes", "2.0"),
    ] {
        let line = format!("\ngpucap_{name}{{{labels}}} {value}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
    for (kind, bytes) in [("alloc", "1073741824.0"), ("context", "536870912.0"), ("pool", "0.0")] {
        let labels = format!("{labels},memory=\"{kind}\"");
        let line = format!("\ngpucap_memory_held_bytes{{{labels}}} {bytes}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
    assert!(text.ends_with("\ngpucap_unreadable 0.0\n# EOF\n"), "{text}");
}

#[test]
fn an_unknown_value_has_no_sample() {
    let text = render(&status());
    let of = r#"{kind="run",ledger="/dev/shm/gpucap-0-run-4026531836-4242-88",gpu="GPU-"#;
    assert!(
        text.contains(&format!("gpucap_memory_limit_bytes{of}")),
        "the processes' limit: {text}"
    );
    assert!(!text.contains("gpucap_core_max_ratio{"), "{text}");
    assert!(!text.contains("gpucap_core_busy_seconds_total{"), "nothing measured: {text}");
    assert!(!text.contains("gpucap_last_launch_timestamp_seconds{"), "{text}");
    assert!(text.contains("\ngpucap_unreadable 1.0\n"), "{text}");
}

#[test]
fn a_gpu_that_was_given_and_not_used_has_its_limits() {
    let mut idle = raised();
    idle.ledgers[0].devices.clear();
    let text = render(&idle);
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let of_gpu = |line: &str| line.split("{kind=").next().map(str::to_owned);
    let names: Vec<_> = samples.iter().map(|line| of_gpu(line)).collect();
    let expected = [
        "gpucap_memory_limit_bytes",
        "gpucap_core_guaranteed_ratio",
        "gpucap_core_max_ratio",
        concat!("gpucap_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        "gpucap_containers 1.0",
        "gpucap_run_dir_present 1.0",
        "gpucap_unreadable 0.0",
    ];
    assert_eq!(names, expected.map(|it| Some(it.to_owned())));
}

#[test]
fn a_missing_directory_of_records_is_not_reported_as_no_containers() {
    let none = render(&Status::default());
    assert!(none.contains("\ngpucap_run_dir_present 0.0\n"), "{none}");
    assert!(!none.contains("\ngpucap_containers "), "{none}");
    let empty = render(&Status { containers: Some(0), ..Status::default() });
    assert!(empty.contains("\ngpucap_containers 0.0\n"), "{empty}");
}

#[test]
fn refused_containers_are_counted_by_reason() {
    let refused = vec![("image", 0), ("request", 3)];
    let text = render(&Status { containers: Some(0), refused, ..Status::default() });
    for line in ["{reason=\"image\"} 0\n", "{reason=\"request\"} 3\n"] {
        assert!(text.contains(&format!("\ngpucap_containers_refused_total{line}")), "{text}");
    }
    let none = render(&Status::default());
    assert!(!none.contains("gpucap_containers_refused_total{"), "{none}");
}

#[test]
fn names_of_people_do_not_break_the_form() {
    let mut odd = raised();
    let names = odd.ledgers[0].container.as_mut().and_then(|it| it.record.names.as_mut());
    names.expect("names").pod = "a\"b\\c\nd".into();
    assert!(render(&odd).contains(r#"pod="a\"b\\c\nd""#));
}

#[test]
fn the_manual_has_each_metric() {
    let rows = MANUAL.lines().filter(|line| line.starts_with("| `gpucap_"));
    let documented: BTreeSet<String> =
        rows.map(|row| row.split('|').take(4).collect::<Vec<_>>().join("|")).collect();
    let unit = |unit: &Option<Unit>| unit.as_ref().map_or("", Unit::as_str).to_owned();
    let row = |name: &str, of: &str, kind: MetricType, help: &str| {
        let part = |text: &str| if text.is_empty() { String::new() } else { format!("_{text}") };
        let ending = match kind {
            MetricType::Counter => "_total",
            MetricType::Info => "_info",
            _ => "",
        };
        format!("| `gpucap_{name}{}{ending}` | {} | {help} ", part(of), kind.as_str())
    };
    let mut rendered: BTreeSet<String> =
        METRICS.iter().map(|it| row(it.name, &unit(&it.unit), it.kind, it.help)).collect();
    let (name, of, help) = OF_KINDS;
    rendered.insert(row(name, of.as_str(), MetricType::Gauge, help));
    rendered.extend(node::METRICS.map(|(name, kind, help)| row(name, "", kind, help)));
    rendered
        .extend(sampled::METRICS.map(|(name, of, kind, help)| row(name, &unit(&of), kind, help)));
    assert_eq!(documented, rendered);
}
