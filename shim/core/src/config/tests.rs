//! Every form of every variable, and every refusal.

use proptest::prelude::*;

use super::per_gpu::MOST_ENTRIES;
use super::*;
use crate::units::{Bytes, UnitError};
use crate::uuid::Uuid;

const GIB: u64 = 1 << 30;
const UUID: &str = "00000000-0000-0000-0000-000000000001";

fn read(name: &str, value: &[u8]) -> Result<Config, ConfigError> {
    Config::from_lookup(&|asked| (asked == name).then(|| value.to_vec()))
}

fn why(name: &str, value: &str) -> ValueError {
    read(name, value.as_bytes()).expect_err(value).why
}

fn gib(number: u64) -> Amount {
    Amount::Bytes(Bytes(number * GIB))
}

#[test]
fn nothing_set_is_the_default() {
    assert_eq!(Config::from_lookup(&|_| None), Ok(Config::default()));
}

#[test]
fn empty_and_blank_values_count_as_not_set() {
    for row in OPTIONS {
        for blank in ["", " ", "\t\n"] {
            assert_eq!(read(row.name, blank.as_bytes()), Ok(Config::default()), "{}", row.name);
        }
    }
}

#[test]
fn white_space_around_a_value_is_dropped() {
    assert_eq!(read("GPU_MEM_LIMIT", b" 4Gi\n"), read("GPU_MEM_LIMIT", b"4Gi"));
    assert_eq!(read("GPU_CORE_PCT", b"0 = 30 , 1 = 50"), read("GPU_CORE_PCT", b"0=30,1=50"));
}

#[test]
fn a_value_that_is_not_utf8_is_refused() {
    for row in OPTIONS.iter().filter(|row| row.with_file != WithFile::Read) {
        let error = read(row.name, b"\xff1").expect_err(row.name);
        assert_eq!((error.variable, error.why), (row.name, ValueError::NotUtf8));
    }
}

#[test]
fn a_limit_is_for_all_gpus_or_names_them() {
    let uuid = UUID.parse::<Uuid>().expect("a UUID");
    let [gpu, mig] = [Selector::Name(uuid.gpu()), Selector::Name(uuid.mig())];
    for (text, meant) in [
        ("4Gi".into(), PerGpu::Every(gib(4))),
        ("0=4Gi".into(), PerGpu::Listed(vec![(Selector::Index(0), gib(4))])),
        (
            "0=4Gi,1=8Gi".into(),
            PerGpu::Listed(vec![(Selector::Index(0), gib(4)), (Selector::Index(1), gib(8))]),
        ),
        (format!("GPU-{UUID}=4Gi"), PerGpu::Listed(vec![(gpu, gib(4))])),
        (format!("MIG-{UUID}=2Gi"), PerGpu::Listed(vec![(mig, gib(2))])),
        (
            format!("7=1Gi,MIG-{UUID}=2Gi"),
            PerGpu::Listed(vec![(Selector::Index(7), gib(1)), (mig, gib(2))]),
        ),
    ] {
        let config = read("GPU_MEM_LIMIT", text.as_bytes()).expect(&text);
        assert_eq!(config.memory, Some(meant), "{text}");
    }
}

#[test]
fn a_list_that_is_not_clear_is_refused() {
    for (text, error) in [
        ("4Gi,8Gi".into(), ValueError::EntryWithoutGpu),
        ("4Gi,1=8Gi".into(), ValueError::EntryWithoutGpu),
        ("0=4Gi,".into(), ValueError::EntryWithoutGpu),
        (",".into(), ValueError::EntryWithoutGpu),
        ("=4Gi".into(), ValueError::NotAGpu),
        ("a=4Gi".into(), ValueError::NotAGpu),
        ("-1=4Gi".into(), ValueError::NotAGpu),
        ("4294967296=4Gi".into(), ValueError::NotAGpu),
        ("GPU-0000=4Gi".into(), ValueError::NotAGpu),
        ("0=4Gi,0=8Gi".into(), ValueError::GpuTwice),
        ("0=4Gi,00=8Gi".into(), ValueError::GpuTwice),
        (format!("GPU-{UUID}=4Gi,GPU-{UUID}=4Gi"), ValueError::GpuTwice),
        (format!("GPU-{UUID}=4Gi,MIG-{UUID}=4Gi"), ValueError::GpuTwice),
        (
            (0..=MOST_ENTRIES).map(|gpu| format!("{gpu}=1Gi")).collect::<Vec<_>>().join(","),
            ValueError::TooManyGpus,
        ),
        ("0=".into(), ValueError::Unit(UnitError::NotANumber)),
        ("0=0".into(), ValueError::Unit(UnitError::Zero)),
        ("0=1=4Gi".into(), ValueError::Unit(UnitError::UnknownSuffix)),
        ("0=4Gi;1=8Gi".into(), ValueError::Unit(UnitError::UnknownSuffix)),
    ] {
        let text: String = text;
        assert_eq!(why("GPU_MEM_LIMIT", &text), error, "{text}");
    }
}

#[test]
fn every_value_that_cannot_be_used_is_refused() {
    for value in ["0", "-1", "abc", "200%", "0%", "5gg", "5m", "1e9", "unlimited", "none"] {
        assert!(read("GPU_MEM_LIMIT", value.as_bytes()).is_err(), "{value}");
        assert!(read("GPU_PROFILE", value.as_bytes()).is_err(), "{value}");
    }
    for value in ["0", "-1", "abc", "200%", "101", "30Gi", "5m", "1e1"] {
        assert!(read("GPU_CORE_PCT", value.as_bytes()).is_err(), "{value}");
        assert!(read("GPU_CORE_MAX_PCT", value.as_bytes()).is_err(), "{value}");
        assert_eq!(why("GPU_CORE_POLICY", value), ValueError::NotAPolicy, "{value}");
        assert_eq!(why("GPU_CORE_PRIORITY", value), ValueError::NotAPriority, "{value}");
    }
    assert_eq!(why("GPU_CORE_POLICY", "0=burst"), ValueError::NotAPolicy);
    assert_eq!(why("GPU_CORE_PRIORITY", "high"), ValueError::NotAPriority);
}

#[test]
fn a_profile_is_sevenths_of_the_time_and_the_named_memory() {
    for (text, parts, memory) in [
        ("1g.5gb", 1_428, gib(5)),
        ("1g.10gb", 1_428, gib(10)),
        ("2g.10gb", 2_857, gib(10)),
        ("3g.20gb", 4_285, gib(20)),
        ("4g.20gb", 5_714, gib(20)),
        ("7g.40gb", 10_000, gib(40)),
        ("7g.141GB", 10_000, gib(141)),
        ("1G.5Gb+ME", 1_428, gib(5)),
        ("1g", 1_428, Amount::OfDevice(Share::ONE_EIGHTH)),
        ("2g", 2_857, Amount::OfDevice(Share::ONE_QUARTER)),
        ("3g", 4_285, Amount::OfDevice(Share::ONE_HALF)),
        ("4g", 5_714, Amount::OfDevice(Share::ONE_HALF)),
        ("7g", 10_000, Amount::OfDevice(Share::FULL)),
        ("2g+me", 2_857, Amount::OfDevice(Share::ONE_QUARTER)),
    ] {
        let config = read("GPU_PROFILE", text.as_bytes()).expect(text);
        let Some(PerGpu::Every(profile)) = config.profile else { panic!("{text}") };
        let meant = (profile.core(Slices::Seven).parts(), profile.memory(Slices::Seven));
        assert_eq!(meant, (parts, memory), "{text}");
        assert_eq!(profile.to_string().parse_profile(), profile, "{text}");
    }
    assert_eq!(Share::ONE_EIGHTH.of(40 * GIB), 5 * GIB);
}

trait ParseProfile {
    fn parse_profile(&self) -> Profile;
}

impl ParseProfile for String {
    fn parse_profile(&self) -> Profile {
        Profile::parse(self).expect(self)
    }
}

#[test]
fn seven_slices_of_one_seventh_fit_on_a_card() {
    let one = "1g".to_owned().parse_profile().core(Slices::Seven).parts();
    assert!(one * 7 <= Share::DENOMINATOR && (one + 1) * 7 > Share::DENOMINATOR);
}

#[test]
fn a_profile_is_slices_of_the_model() {
    for (text, slices, parts, memory) in [
        ("1g.6gb", Slices::Four, 2_500, gib(6)),
        ("2g.12gb+me", Slices::Four, 5_000, gib(12)),
        ("4g.96gb+gfx", Slices::Four, 10_000, gib(96)),
        ("1g.24gb+me.all", Slices::Four, 2_500, gib(24)),
        ("1g.24gb-me", Slices::Four, 2_500, gib(24)),
        ("1g", Slices::Four, 2_500, Amount::OfDevice(Share::ONE_QUARTER)),
        ("3g", Slices::Four, 7_500, Amount::OfDevice(Share::THREE_QUARTERS)),
        ("7g", Slices::Four, 10_000, Amount::OfDevice(Share::FULL)),
        ("1g.16gb", Slices::Two, 5_000, gib(16)),
        ("2g", Slices::Two, 10_000, Amount::OfDevice(Share::FULL)),
    ] {
        let profile = text.to_owned().parse_profile();
        assert_eq!(
            (profile.core(slices).parts(), profile.memory(slices)),
            (parts, memory),
            "{text}"
        );
    }
    for (model, slices) in [
        ("NVIDIA A30", Slices::Four),
        ("NVIDIA A30X", Slices::Four),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", Slices::Four),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", Slices::Four),
        ("NVIDIA RTX PRO 5000 Blackwell", Slices::Four),
        ("NVIDIA RTX PRO 4500 Blackwell", Slices::Two),
        ("NVIDIA A100-SXM4-80GB", Slices::Seven),
        ("NVIDIA H100 80GB HBM3", Slices::Seven),
        ("NVIDIA GB200", Slices::Seven),
        ("NVIDIA A30 MIG 1g.6gb", Slices::Seven),
        ("NVIDIA RTX A3000", Slices::Seven),
        ("", Slices::Seven),
    ] {
        assert_eq!(Slices::of_model(model), slices, "{model}");
    }
}

#[test]
fn a_name_that_mig_does_not_have_is_no_profile() {
    for text in [
        "0g.5gb",
        "5g.20gb",
        "6g",
        "8g.80gb",
        "1g.",
        "1g.gb",
        "1g.0gb",
        "1g.5",
        "1g.5g",
        "1g.+5gb",
        "1g.5gib",
        "1g.4.5gb",
        "1g.65536gb",
        "1g.5gb+gfx+me",
        "1g.5gb-gfx",
        "1g.5gb+me.none",
        "1g.5gb+me+me",
        "1c.1g.5gb",
        "mig-1g.5gb",
        "+me",
        "g",
        ".5gb",
    ] {
        assert_eq!(why("GPU_PROFILE", text), ValueError::NotAProfile, "{text}");
    }
}

#[test]
fn the_other_variables_have_their_forms() {
    let ledger = read("GPUCAP_LEDGER", b"/dev/shm/ledger").expect("a path").ledger;
    assert_eq!(ledger.as_ref().map(LedgerPath::as_str), Some("/dev/shm/ledger"));
    assert_eq!(why("GPUCAP_LEDGER", "ledger"), ValueError::NotAPath);
    assert_eq!(why("GPUCAP_LEDGER", "/a\0b"), ValueError::NotAPath);

    let price = |text: &str| read("GPUCAP_CONTEXT_MEM", text.as_bytes()).expect(text).context_mem;
    assert_eq!(price("300Mi"), Some(ContextPrice(300 << 20)));
    assert_eq!(price("0"), Some(ContextPrice(0)));
    assert_eq!(why("GPUCAP_CONTEXT_MEM", "-1"), ValueError::Unit(UnitError::Negative));

    let level = |text: &str| read("GPUCAP_LOG", text.as_bytes()).expect(text).log;
    assert_eq!(level("off"), LogLevel::Off);
    assert_eq!(level("Error"), LogLevel::Error);
    assert_eq!(level("warn"), LogLevel::Warn);
    assert_eq!(level("info"), LogLevel::Info);
    assert_eq!(level("DEBUG"), LogLevel::Debug);
    assert_eq!(level("3"), LogLevel::Warn, "a level that is none stops nothing");
    assert_eq!(read("GPUCAP_LOG", b"\xff").map(|config| config.log), Ok(LogLevel::Warn));
    assert!(LogLevel::Off < LogLevel::Error && LogLevel::Info < LogLevel::Debug);
}

#[test]
fn a_refusal_says_variable_value_reason_and_what_is_allowed_in_one_line() {
    let error = read("GPU_MEM_LIMIT", b"5m\n\x1b[2Jgotcha").expect_err("not a size");
    assert_eq!(
        error.to_string(),
        "GPU_MEM_LIMIT=\"5m\\n\\x1b[2Jgotcha\": unknown suffix (known: Ki Mi Gi Ti, K M G T, with \
         or without B); allowed: 4Gi, 4096Mi, 4G, bytes, 25%, or per GPU: \
         0=4Gi,GPU-<uuid>=8Gi"
    );
    assert!(read("GPU_MEM_LIMIT", b"5m").expect_err("milli").to_string().contains("milli"));
}

#[test]
fn a_long_value_is_cut_in_the_refusal() {
    assert_eq!(Excerpt::new(&[b'x'; 60]).to_string(), format!("\"{}\"", "x".repeat(60)));
    assert_eq!(Excerpt::new(&[b'x'; 61]).to_string(), format!("\"{}...\"", "x".repeat(60)));
    assert_eq!(Excerpt::new("\u{e9}\"".as_bytes()).to_string(), r#""\xc3\xa9\"""#);
}

#[test]
fn help_and_manual_have_a_row_for_every_variable() {
    for row in OPTIONS {
        assert!(help().contains(row.name) && help().contains(row.help), "{}", row.name);
        let cell = format!("| `{}` | {} |", row.name, row.help);
        assert!(manual().contains(&cell), "{cell}");
        assert_eq!(manual().lines().filter(|line| line.contains(&cell)).count(), 1);
    }
    // A bar inside a cell would break the table.
    assert!(manual().lines().all(|line| line.matches('|').count() == 6));
    // `<uuid>` would be a tag of HTML, which is not shown.
    assert!(!manual().replace("\\<", "").contains('<'));
}

#[test]
fn an_example_in_the_table_is_accepted_by_the_parser() {
    for (name, examples) in [
        ("GPU_MEM_LIMIT", vec!["4Gi", "4096Mi", "4G", "25%", "0=4Gi"]),
        ("GPU_CORE_PCT", vec!["1", "100", "0=30"]),
        ("GPU_CORE_POLICY", vec!["fixed", "burst"]),
        ("GPU_CORE_MAX_PCT", vec!["1", "100", "0=80"]),
        ("GPU_CORE_PRIORITY", vec!["normal", "low"]),
        ("GPU_PROFILE", vec!["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb", "1g", "7g"]),
        ("GPUCAP_LOG", vec!["off", "error", "warn", "info", "debug"]),
        ("GPUCAP_CONTEXT_MEM", vec!["0", "300Mi"]),
        ("GPUCAP_OWN_LIMITS", vec!["GPU_MEM_LIMIT,GPU_CORE_PCT"]),
    ] {
        let row = OPTIONS.iter().find(|row| row.name == name).expect(name);
        for example in examples {
            assert!(row.allowed.contains(example), "{name}: {example}");
            assert!(read(name, example.as_bytes()).is_ok(), "{name}: {example}");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(value: Vec<u8>, text in "[0-9gGiIbBmM.=,%+ -]*") {
        for row in OPTIONS {
            let _ = (read(row.name, &value), read(row.name, text.as_bytes()));
        }
    }

    #[test]
    fn a_refusal_is_one_printable_line(value: Vec<u8>) {
        for row in OPTIONS {
            if let Err(error) = read(row.name, &value) {
                let line = error.to_string();
                prop_assert!(line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
                prop_assert!(line.len() < 500);
            }
        }
    }

    #[test]
    fn printed_lists_parse_to_themselves(
        entries in prop::collection::btree_map(0_u32..64, (1_u64.., any::<bool>()), 1..8)
    ) {
        let list: Vec<_> = entries
            .into_iter()
            .map(|(index, (bytes, named))| {
                let selector = if named {
                    Selector::Name(Uuid([u8::try_from(index).unwrap(); 16]).gpu())
                } else {
                    Selector::Index(index)
                };
                (selector, Amount::Bytes(Bytes(bytes)))
            })
            .collect();
        let list = PerGpu::Listed(list);
        prop_assert_eq!(Value::parse(&list.to_string()), Ok(list));
    }
}
