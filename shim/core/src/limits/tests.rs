//! The minimum rule: what each source says of a device, and what holds in the end.

mod lending;
mod minimum;
mod node;

use std::collections::BTreeMap;

use super::file::{Entry, Key, Label};
use super::live::{LiveEntries, LiveEntry};
use super::*;
use crate::config::{Slices, ValueError};
use crate::units::{Amount, Bytes, ComputeLimit, Share};

const GIB: u64 = 1 << 30;
const ONE: Uuid = Uuid([1; 16]);
const TWO: Uuid = Uuid([2; 16]);

/// A card of 16 GiB at index 0.
const CARD: DeviceFacts = DeviceFacts {
    uuid: ONE,
    parent: None,
    index: Some(0),
    total_bytes: 16 * GIB,
    slices: Slices::Seven,
};

/// A MIG instance of 4 GiB on that card.
const INSTANCE: DeviceFacts = DeviceFacts {
    uuid: TWO,
    parent: Some(ONE),
    index: Some(0),
    total_bytes: 4 * GIB,
    slices: Slices::Seven,
};

type Variables = BTreeMap<String, String>;

fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
}

fn load(variables: &Variables, file: Option<&LimitsFile>) -> Result<Option<Limits>, Broken> {
    let bytes = file.map(LimitsFile::write);
    let lookup = |name: &str| variables.get(name).map(|value| value.clone().into_bytes());
    Limits::load(&lookup, bytes.as_ref().map(|text| Ok(text.as_bytes())))
}

fn set(pairs: &[(&str, &str)]) -> Limits {
    load(&variables(pairs), None).expect("usable").expect("something is set")
}

fn with(pairs: &[(&str, &str)], file: &LimitsFile) -> Limits {
    load(&variables(pairs), Some(file)).expect("usable").expect("a file is there")
}

fn percent(number: u16) -> Share {
    Share::from_percent(number).expect("a percentage")
}

fn entry(key: Key, gib: u64, core: u16) -> Entry {
    let memory = Amount::Bytes(Bytes(gib * GIB)).into();
    Entry { memory, core: Some(percent(core)), context: Some(300 << 20), ..Entry::new(key) }
}

fn file(entries: Vec<Entry>) -> LimitsFile {
    LimitsFile { source: Label::new("test"), entries, ..LimitsFile::default() }
}

fn open(entries: Vec<Entry>) -> LimitsFile {
    LimitsFile { open: true, ..file(entries) }
}

/// Memory in bytes and time in percent that hold for a device.
fn holds(limits: &Limits, device: &DeviceFacts) -> (Option<u64>, Option<u16>) {
    let Resolved { memory, core, .. } = limits.resolve(device).expect("usable");
    (memory, core.and_then(ComputeLimit::guaranteed).map(Share::percent))
}

#[test]
fn nothing_set_is_no_limits_whatever_the_other_variables_hold() {
    assert_eq!(load(&variables(&[]), None), Ok(None));
    assert_eq!(load(&variables(&[("GPU_MEM_LIMIT", " ")]), None), Ok(None));
    assert_eq!(load(&variables(&[("GPUCAP_LOG", "nonsense")]), None), Ok(None));
}

#[test]
fn one_variable_limits_one_quantity() {
    assert_eq!(holds(&set(&[("GPU_MEM_LIMIT", "4Gi")]), &CARD), (Some(4 * GIB), None));
    assert_eq!(holds(&set(&[("GPU_MEM_LIMIT", "25%")]), &CARD), (Some(4 * GIB), None));
    assert_eq!(holds(&set(&[("GPU_CORE_PCT", "30")]), &CARD), (None, Some(30)));
    assert_eq!(holds(&set(&[("GPU_PROFILE", "1g.5gb")]), &CARD), (Some(5 * GIB), Some(14)));
    assert_eq!(holds(&set(&[("GPU_PROFILE", "1g")]), &CARD), (Some(2 * GIB), Some(14)));
    assert_eq!(holds(&set(&[("GPU_PROFILE", "7g")]), &CARD), (Some(16 * GIB), Some(100)));
}

#[test]
fn profile_and_explicit_variables_give_the_lower_of_each_quantity() {
    let limits = set(&[("GPU_PROFILE", "2g.10gb"), ("GPU_MEM_LIMIT", "4Gi")]);
    assert_eq!(holds(&limits, &CARD), (Some(4 * GIB), Some(28)));
    let limits = set(&[("GPU_PROFILE", "1g.5gb"), ("GPU_MEM_LIMIT", "8Gi"), ("GPU_CORE_PCT", "9")]);
    assert_eq!(holds(&limits, &CARD), (Some(5 * GIB), Some(9)));
}

#[test]
fn a_gpu_that_the_environment_does_not_list_is_not_limited_by_it() {
    let limits = set(&[("GPU_MEM_LIMIT", "1=4Gi"), ("GPU_CORE_PCT", "0=30")]);
    assert_eq!(holds(&limits, &CARD), (None, Some(30)));
    assert_eq!(holds(&limits, &DeviceFacts { index: Some(1), ..CARD }), (Some(4 * GIB), None));
}

#[test]
fn index_and_uuid_of_the_same_gpu_give_the_lower() {
    let text = format!("0=4Gi,{}=3Gi", ONE.gpu());
    assert_eq!(holds(&set(&[("GPU_MEM_LIMIT", &text)]), &CARD), (Some(3 * GIB), None));
    let text = format!("0=2Gi,{}=3Gi", ONE.gpu());
    assert_eq!(holds(&set(&[("GPU_MEM_LIMIT", &text)]), &CARD), (Some(2 * GIB), None));
}

#[test]
fn a_mig_instance_goes_by_its_own_uuid_and_by_its_card() {
    for (text, memory) in [
        (format!("{}=1Gi", TWO.mig()), Some(GIB)),
        (format!("{}=2Gi", ONE.gpu()), Some(2 * GIB)),
        ("0=3Gi".to_owned(), Some(3 * GIB)),
        (format!("{}=2Gi,{}=1Gi", ONE.gpu(), TWO.mig()), Some(GIB)),
        // A percentage is one of the instance, not of its card.
        (format!("{}=50%", ONE.gpu()), Some(2 * GIB)),
        ("1=1Gi".to_owned(), None),
    ] {
        assert_eq!(holds(&set(&[("GPU_MEM_LIMIT", &text)]), &INSTANCE), (memory, None), "{text}");
    }
    // A limit for an instance does not apply to its GPU.
    let text = format!("{}=1Gi", TWO.mig());
    assert_eq!(holds(&set(&[("GPU_MEM_LIMIT", &text)]), &CARD), (None, None));
}

#[test]
fn more_than_the_card_has_is_clamped_and_said() {
    let above = set(&[("GPU_MEM_LIMIT", "17Gi")]).resolve(&CARD).expect("usable");
    assert_eq!((above.memory, above.clamped), (Some(16 * GIB), true));
    let all = set(&[("GPU_MEM_LIMIT", "16Gi")]).resolve(&CARD).expect("usable");
    assert_eq!((all.memory, all.clamped), (Some(16 * GIB), false));
    let lowered = set(&[("GPU_MEM_LIMIT", "17Gi"), ("GPU_PROFILE", "1g")]);
    assert!(!lowered.resolve(&CARD).expect("usable").clamped);
}

#[test]
fn an_index_that_is_needed_and_not_known_is_broken() {
    let unknown = DeviceFacts { index: None, ..CARD };
    for (name, value) in
        [("GPU_MEM_LIMIT", "1=4Gi"), ("GPU_CORE_PCT", "1=30"), ("GPU_PROFILE", "1=1g.5gb")]
    {
        let limits = set(&[(name, value)]);
        assert!(limits.needs_index(), "{name}");
        let Err(Broken::Variable(error)) = limits.resolve(&unknown) else { panic!("{name}") };
        assert_eq!((error.variable, error.why), (name, ValueError::IndexUnknown));
    }
    let limits = set(&[("GPU_MEM_LIMIT", &format!("{}=4Gi", ONE.gpu()))]);
    assert!(!limits.needs_index());
    assert_eq!(holds(&limits, &unknown), (Some(4 * GIB), None));
}

#[test]
fn a_percentage_that_is_less_than_a_byte_is_broken() {
    let tiny = DeviceFacts { total_bytes: 3, ..CARD };
    let broken = set(&[("GPU_MEM_LIMIT", "25%")]).resolve(&tiny).expect_err("no byte");
    assert_eq!(
        broken.to_string(),
        "GPU_MEM_LIMIT=\"25%\": less than one byte of this GPU; allowed: 4Gi, 4096Mi, 4G, bytes, \
         25%, or per GPU: 0=4Gi,GPU-<uuid>=8Gi"
    );
    let memory = Amount::OfDevice(percent(25)).into();
    let listed = file(vec![Entry { memory, ..Entry::new(Key::Every) }]);
    for file in [listed.clone(), LimitsFile { open: true, ..listed }] {
        let broken = with(&[], &file).resolve(&tiny).expect_err("no byte");
        assert_eq!(broken.to_string(), "/.gpucap/limits gives less than one byte of this GPU");
    }
}

#[test]
fn next_to_a_file_the_environment_can_only_lower() {
    let file = file(vec![entry(Key::Name(ONE.gpu()), 4, 30)]);
    assert_eq!(holds(&with(&[], &file), &CARD), (Some(4 * GIB), Some(30)));
    let higher = [("GPU_MEM_LIMIT", "8Gi"), ("GPU_CORE_PCT", "90")];
    assert_eq!(holds(&with(&higher, &file), &CARD), (Some(4 * GIB), Some(30)));
    let lower = [("GPU_MEM_LIMIT", "2Gi"), ("GPU_CORE_PCT", "10")];
    assert_eq!(holds(&with(&lower, &file), &CARD), (Some(2 * GIB), Some(10)));
    let percent = [("GPU_MEM_LIMIT", "12.5%"), ("GPU_PROFILE", "1g.5gb")];
    assert_eq!(holds(&with(&percent, &file), &CARD), (Some(2 * GIB), Some(14)));
}

#[test]
fn a_gpu_that_the_file_does_not_list_is_refused() {
    let file = file(vec![entry(Key::Name(TWO.gpu()), 4, 30)]);
    let limits = with(&[("GPU_MEM_LIMIT", "8Gi")], &file);
    let resolved = limits.resolve(&CARD).expect("usable");
    assert!(resolved.refused);
    assert_eq!(resolved.memory, Some(0));
    assert!(with(&[], &LimitsFile::default()).resolve(&CARD).expect("usable").refused);
    assert!(with(&[], &open(vec![])).resolve(&CARD).expect("usable").refused);
}

#[test]
fn a_gpu_that_the_file_lists_without_limits_is_free() {
    let limits = with(&[], &file(vec![Entry::new(Key::Name(ONE.gpu()))]));
    assert_eq!(limits.resolve(&CARD), Ok(Resolved::default()));
    assert!(!limits.has_compute() && limits.has_file());
}

#[test]
fn the_entry_for_every_gpu_holds_where_no_other_does() {
    let file = file(vec![entry(Key::Every, 1, 10), entry(Key::Name(ONE.gpu()), 4, 30)]);
    let limits = with(&[], &file);
    assert_eq!(holds(&limits, &CARD), (Some(4 * GIB), Some(30)));
    assert_eq!(holds(&limits, &DeviceFacts { uuid: TWO, ..CARD }), (Some(GIB), Some(10)));
}

#[test]
fn the_file_knows_an_instance_by_its_card() {
    let limits = with(&[], &file(vec![entry(Key::Name(ONE.gpu()), 3, 30)]));
    assert_eq!(holds(&limits, &INSTANCE), (Some(3 * GIB), Some(30)));
    let both = file(vec![entry(Key::Name(ONE.gpu()), 3, 20), entry(Key::Name(TWO.mig()), 2, 30)]);
    assert_eq!(holds(&with(&[], &both), &INSTANCE), (Some(2 * GIB), Some(20)));
}

#[test]
fn a_card_is_asked_for_only_where_it_may_be_meant() {
    let by_hand = |value: &str| set(&[("GPU_MEM_LIMIT", value)]);
    let (one, two) = (ONE.gpu(), TWO.mig());
    assert!(!by_hand("4Gi").needs_parent(TWO));
    assert!(!by_hand(&format!("{two}=4Gi")).needs_parent(TWO));
    assert!(by_hand(&format!("{one}=4Gi")).needs_parent(TWO));
    assert!(by_hand(&format!("{one}=4Gi,{two}=8Gi")).needs_parent(TWO));
    assert!(!by_hand(&format!("{one}=4Gi,{}=8Gi", TWO.gpu())).needs_parent(TWO));
    let file = file(vec![Entry::new(Key::Every), entry(Key::Name(one), 3, 30)]);
    assert!(with(&[], &file).needs_parent(TWO));
}

#[test]
fn the_price_of_a_context_comes_from_the_file() {
    let mut free = Entry::new(Key::Every);
    free.context = Some(0);
    let limits = with(&[], &file(vec![free, entry(Key::Name(ONE.gpu()), 4, 30)]));
    let card = |uuid| DeviceFacts {
        uuid,
        parent: None,
        index: None,
        total_bytes: GIB,
        slices: Slices::Seven,
    };
    assert_eq!(limits.context_price(&card(ONE)), Some(300 << 20));
    assert_eq!(limits.context_price(&card(TWO)), Some(0));
    assert_eq!(limits.context_price(&INSTANCE), Some(300 << 20), "that of its card");
    let by_hand = set(&[("GPUCAP_CONTEXT_MEM", "1Gi"), ("GPU_CORE_PCT", "5")]);
    assert_eq!(by_hand.context_price(&card(ONE)), None);
}

#[test]
fn time_is_limited_by_any_source_that_speaks_of_it() {
    assert!(!set(&[("GPU_MEM_LIMIT", "4Gi")]).has_compute());
    assert!(set(&[("GPU_CORE_PCT", "1=30")]).has_compute());
    assert!(set(&[("GPU_PROFILE", "1g")]).has_compute());
    assert!(with(&[], &file(vec![entry(Key::Every, 4, 100)])).has_compute());
}

#[test]
fn memory_is_limited_by_any_source_that_speaks_of_it() {
    assert!(!set(&[("GPU_CORE_PCT", "30")]).has_memory());
    assert!(set(&[("GPU_MEM_LIMIT", "1=25%")]).has_memory());
    assert!(set(&[("GPU_PROFILE", "1g")]).has_memory());
    assert!(with(&[], &file(vec![entry(Key::Every, 4, 100)])).has_memory());
}

#[test]
fn next_to_a_file_the_variables_of_policy_are_not_even_read() {
    let pairs = [("GPUCAP_LEDGER", "not a path"), ("GPUCAP_LOG", "debug")];
    let limits = with(&pairs, &file(vec![Entry::new(Key::Every)]));
    assert_eq!(limits.config().ledger, None);
    assert_eq!(limits.config().log, crate::config::LogLevel::Debug);
    let pairs = variables(&[("GPUCAP_LEDGER", "not a path"), ("GPU_CORE_PCT", "5")]);
    assert!(matches!(load(&pairs, None), Err(Broken::Variable(error))
        if error.variable == "GPUCAP_LEDGER"));
}

#[test]
fn a_bad_variable_is_broken_with_and_without_a_file() {
    let listed = file(vec![entry(Key::Every, 4, 30)]);
    for file in [None, Some(&listed)] {
        for name in ["GPU_MEM_LIMIT", "GPU_CORE_PCT", "GPU_PROFILE"] {
            assert!(load(&variables(&[(name, "abc")]), file).is_err(), "{name}");
        }
    }
}

#[test]
fn a_bad_variable_that_limits_nothing_is_ignored_with_and_without_a_file() {
    let listed = file(vec![entry(Key::Every, 4, 30)]);
    for file in [None, Some(&listed)] {
        let pairs = variables(&[("GPU_MEM_LIMIT", "2Gi"), ("GPUCAP_LOG", "loud")]);
        let limits = load(&pairs, file).expect("usable").expect("limits");
        assert_eq!(limits.config().log, crate::config::LogLevel::Warn);
        assert_eq!(holds(&limits, &CARD).0, Some(2 * GIB));
        let ignored: Vec<_> = limits.ignored().iter().map(|error| error.variable).collect();
        assert_eq!(ignored, ["GPUCAP_LOG"]);
    }
}

#[test]
fn where_the_administrator_is_open_a_bad_variable_lifts_no_limit_of_the_file() {
    let listed = open(vec![entry(Key::Every, 4, 30)]);
    let limits = with(&[("GPU_MEM_LIMIT", "abc"), ("GPU_CORE_PCT", "10")], &listed);
    assert_eq!(holds(&limits, &CARD), (Some(4 * GIB), Some(10)));
    assert_eq!(limits.ignored().len(), 1);
    let limits = with(&[("GPU_MEM_LIMIT", "0=1Gi")], &listed);
    assert!(limits.open());
    assert_eq!(holds(&limits, &DeviceFacts { index: None, ..CARD }), (Some(4 * GIB), Some(30)));
}

#[test]
fn only_the_file_can_open() {
    assert!(!set(&[("GPU_MEM_LIMIT", "4Gi")]).open());
    assert!(!with(&[], &file(vec![])).open());
    let mut bytes = open(vec![]).write().into_bytes();
    bytes[0] ^= 1;
    assert!(Limits::load(&|_| None, Some(Ok(&bytes))).is_err());
}

#[test]
fn a_file_that_may_not_be_believed_is_broken_and_says_why() {
    for (problem, line) in [
        (
            FileProblem::Writable,
            "/.gpucap/limits is not on a read-only mount; only the hook may place it",
        ),
        (
            FileProblem::Unreadable(13),
            "/.gpucap/limits cannot be read: permission denied (errno 13)",
        ),
        (
            FileProblem::NotAFile,
            "/.gpucap/limits is not a regular file; only the hook may place it",
        ),
        (FileProblem::TooLong, "/.gpucap/limits is longer than 65536 bytes"),
    ] {
        let broken = Limits::load(&|_| None, Some(Err(problem))).expect_err(line);
        assert_eq!(broken.to_string(), line);
    }
}
