//! The form of a limits file, and the files that are refused.

use proptest::prelude::*;

use super::*;
use crate::config::{Config, Slices};
use crate::limits::DeviceFacts;
use crate::units::{Amount, Bytes, ComputeLimit, Share};
use crate::uuid::Uuid;

const UUID: &str = "GPU-01010101-0101-0101-0101-010101010101";

/// A file with these lines after the version, and a checksum that fits.
fn sealed(lines: &str) -> Vec<u8> {
    seal(&format!("gpucap-limits=1\n{lines}"))
}

fn seal(body: &str) -> Vec<u8> {
    format!("{body}crc32={:08x}\n", super::super::crc32::of(body.as_bytes())).into_bytes()
}

fn why(bytes: &[u8]) -> ContentError {
    LimitsFile::parse(bytes).expect_err("refused").why
}

/// What these variables say.
fn asked(variables: &[(&str, &str)]) -> Config {
    let value = |name: &str| {
        let (_, value) = variables.iter().find(|(own, _)| *own == name)?;
        Some(value.as_bytes().to_vec())
    };
    Config::from_lookup(&value).expect("usable")
}

fn example() -> LimitsFile {
    let gpu = Key::Name(Uuid([1; 16]).gpu());
    LimitsFile {
        source: Label::new("annotation"),
        container: Label::new("4f6c"),
        open: true,
        asked: asked(&[("GPU_MEM_LIMIT", "4Gi"), ("GPU_PROFILE", "0=1g.5gb")]),
        entries: vec![
            Entry {
                key: gpu,
                memory: Amount::Bytes(Bytes(4 << 30)).into(),
                core: Share::from_parts(1_428),
                core_max: Some(Share::FULL),
                low_priority: true,
                context: Some(314_572_800),
            },
            Entry::new(Key::Every),
        ],
    }
}

#[test]
fn the_written_form_is_this() {
    assert_eq!(
        example().write(),
        format!(
            "gpucap-limits=1\nsource=annotation\ncontainer=4f6c\nopen=1\nGPU_MEM_LIMIT=4GiB\nGPU_PROFILE=0=1g.5gb\ngpu={UUID}\n\
             mem=4294967296\ncore=14.28%\ncore_max=100%\ncore_priority=low\ncontext=314572800\ngpu=*\ncrc32=4a7f1a58\n"
        )
    );
}

#[test]
fn the_example_in_the_documentation_is_a_file() {
    let header = include_str!("../file.rs").split("```").nth(1).expect("an example");
    let line = |line: &str| line.strip_prefix("//! ")?.split_whitespace().next().map(str::to_owned);
    let lines: Vec<String> = header.lines().skip(1).filter_map(line).collect();
    let file = LimitsFile::parse((lines.join("\n") + "\n").as_bytes()).expect("a limits file");
    assert_eq!(
        (file.source.to_string().as_str(), file.open, file.entries.len()),
        ("annotation", true, 2)
    );
}

#[test]
fn what_was_written_is_read() {
    for file in [example(), LimitsFile::default()] {
        assert_eq!(LimitsFile::parse(file.write().as_bytes()), Ok(file));
    }
}

#[test]
fn keys_of_a_newer_hook_are_passed_over() {
    let lines = format!("later=1\ngpu={UUID}\nmem=25%\nweight=7\nlater=2\n");
    let file = LimitsFile::parse(&sealed(&lines)).expect("known keys");
    let key = Key::Name(Uuid([1; 16]).gpu());
    let memory = Amount::OfDevice(Share::from_parts(2_500).expect("a share")).into();
    assert_eq!(file.entries, [Entry { memory, ..Entry::new(key) }]);
}

#[test]
fn of_bytes_and_a_part_the_lower_holds() {
    let file = LimitsFile::parse(&sealed("gpu=*\nmem=25%\nmem=1073741824\n")).expect("both");
    let memory = |total_bytes| {
        let device = DeviceFacts {
            uuid: Uuid([1; 16]),
            parent: None,
            index: None,
            total_bytes,
            slices: Slices::Seven,
        };
        file.ask(&device).memory
    };
    assert_eq!(memory(2 << 30), Some(1 << 29));
    assert_eq!(memory(80 << 30), Some(1 << 30));
}

#[test]
fn the_limit_of_time_is_what_the_keys_say() {
    for (lines, limit) in [
        ("core=30%", "30%"),
        ("core=30%\ncore_max=100%", "30% (to 100%)"),
        ("core_max=20%\ncore=30%", "30%"),
        ("core=30%\ncore_priority=normal", "30%"),
        ("core=1%\ncore_max=80%\ncore_priority=low", "low (to 80%)"),
    ] {
        let file = LimitsFile::parse(&sealed(&format!("gpu=*\n{lines}\n"))).expect(lines);
        let found = file.entries[0].compute().expect(lines);
        assert_eq!(found.to_string(), limit, "{lines}");
    }
}

#[test]
fn an_older_library_holds_every_entry_to_a_share() {
    let percent = |number| Share::from_percent(number).expect("a share");
    let (low, burst) =
        (ComputeLimit::low_priority(percent(50)), ComputeLimit::burst(percent(30), percent(50)));
    let fixed = ComputeLimit::fixed(percent(30));
    for (limit, asked, share) in [
        (low, None, 1),
        (low, Some(percent(20)), 20),
        (low, Some(percent(80)), 50),
        (burst, Some(percent(80)), 30),
        (fixed, None, 30),
    ] {
        let entry = Entry::new(Key::Every).with_compute(Some(limit), asked);
        assert_eq!((entry.core, entry.compute()), (Some(percent(share)), Some(limit)));
    }
    assert_eq!(Entry::new(Key::Every).with_compute(None, None), Entry::new(Key::Every));
}

#[test]
fn a_version_we_do_not_know_is_refused() {
    for first in ["gpucap-limits=2", "gpucap-limits=", "gpucap-limits=01", "limits=1", ""] {
        assert_eq!(why(&seal(&format!("{first}\n"))), ContentError::Version, "{first}");
    }
    assert_eq!(why(&seal("open=1\ngpucap-limits=1\n")), ContentError::Version);
}

#[test]
fn a_line_that_says_nothing_clear_is_refused() {
    for (lines, error) in [
        ("\n", ContentError::NotAPair),
        ("open\n", ContentError::NotAPair),
        ("open=yes\n", ContentError::Value),
        ("open=1\nopen=0\n", ContentError::Twice),
        ("source=a\nsource=a\n", ContentError::Twice),
        ("container=a\ncontainer=a\n", ContentError::Twice),
        ("GPU_MEM_LIMIT=\n", ContentError::Value),
        ("GPU_CORE_PCT=200\n", ContentError::Value),
        ("GPU_PROFILE=1g\nGPU_PROFILE=1g\n", ContentError::Twice),
        ("mem=1\n", ContentError::WithoutGpu),
        ("core=1\n", ContentError::WithoutGpu),
        ("context=1\n", ContentError::WithoutGpu),
        ("gpu=0\n", ContentError::Value),
        ("gpu=\n", ContentError::Value),
        ("gpu=*\ngpu=*\n", ContentError::Twice),
        ("gpu=*\nmem=0\n", ContentError::Value),
        ("gpu=*\nmem=-1\n", ContentError::Value),
        ("gpu=*\nmem=\n", ContentError::Value),
        ("gpu=*\nmem=1\nmem=1\n", ContentError::Twice),
        ("gpu=*\nmem=1%\nmem=2%\n", ContentError::Twice),
        ("gpu=*\ncore=0\n", ContentError::Value),
        ("gpu=*\ncore=101\n", ContentError::Value),
        ("gpu=*\ncore=1\ncore=1\n", ContentError::Twice),
        ("core_max=1\n", ContentError::WithoutGpu),
        ("core_priority=low\n", ContentError::WithoutGpu),
        ("gpu=*\ncore=1\ncore_max=0\n", ContentError::Value),
        ("gpu=*\ncore=1\ncore_max=1\ncore_max=1\n", ContentError::Twice),
        ("gpu=*\ncore=1\ncore_priority=high\n", ContentError::Value),
        ("gpu=*\ncore=1\ncore_priority=low\ncore_priority=low\n", ContentError::Twice),
        ("gpu=*\ncore=1\ncore_priority=low\ncore_priority=normal\n", ContentError::Twice),
        ("gpu=*\ncore_max=100\n", ContentError::WithoutShare),
        ("gpu=*\ncore_priority=low\n", ContentError::WithoutShare),
        ("gpu=*\ncontext=x\n", ContentError::Value),
        ("gpu=*\ncontext=1\ncontext=1\n", ContentError::Twice),
    ] {
        assert_eq!(why(&sealed(lines)), error, "{lines}");
    }
    let card_and_instance = format!("gpu={UUID}\ngpu={}\n", UUID.replace("GPU", "MIG"));
    assert_eq!(why(&sealed(&card_and_instance)), ContentError::Twice);
}

#[test]
fn a_file_without_its_checksum_is_refused() {
    let written = example().write();
    for end in 0..written.len() {
        assert_eq!(why(&written.as_bytes()[..end]), ContentError::Checksum, "{end}");
    }
    for text in [
        written.to_uppercase(),
        format!("{written}\n"),
        format!("{written}gpu=*\n"),
        written.replace("4a7f1a58", "4A7F1A58"),
        written.replace('\n', "\r\n"),
    ] {
        assert_eq!(why(text.as_bytes()), ContentError::Checksum);
    }
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let long = |bytes: usize| sealed(&format!("x={}\n", "y".repeat(bytes - 34)));
    assert_eq!(long(MAX_BYTES).len(), MAX_BYTES);
    assert!(LimitsFile::parse(&long(MAX_BYTES)).is_ok());
    assert_eq!(why(&long(MAX_BYTES + 1)), ContentError::TooLong);
}

#[test]
fn a_refusal_names_the_line() {
    let error = LimitsFile::parse(&sealed("gpu=*\nmem=5gg\n")).expect_err("no size");
    assert_eq!(
        error.to_string(),
        "has a value that cannot be used: \"mem=5gg\"; only the hook of the same version may write \
         it"
    );
}

#[test]
fn a_label_stays_in_its_line() {
    let label = Label::new("  a\nopen=1\u{e9}\x1b ");
    assert_eq!(label.to_string(), "a?open=1??");
    assert_eq!(Label::new(&"x".repeat(300)).to_string().len(), Label::LONGEST);
    let file = LimitsFile { source: label, ..LimitsFile::default() };
    assert_eq!(LimitsFile::parse(file.write().as_bytes()), Ok(file));
}

fn memory_limits() -> impl Strategy<Value = MemoryLimit> {
    let bytes = prop::option::of((1_u64..).prop_map(Bytes));
    (bytes, prop::option::of(shares())).prop_map(|(bytes, part)| MemoryLimit { bytes, part })
}

fn shares() -> impl Strategy<Value = Share> {
    (100_u16..=10_000).prop_filter_map("a share", Share::from_parts)
}

fn times() -> impl Strategy<Value = (Share, Option<Share>, bool)> {
    (shares(), prop::option::of(shares()), any::<bool>())
}

fn files() -> impl Strategy<Value = LimitsFile> {
    let limits = (memory_limits(), prop::option::of(times()), any::<Option<u64>>());
    let key = (any::<bool>(), any::<bool>());
    let entries = prop::collection::btree_map(any::<[u8; 16]>(), (key, limits), 0..6);
    let memory = prop::option::of((1_u64..).prop_map(|bytes| bytes.to_string()));
    let said = (memory, prop::option::of(r"[1-9][0-9]?|0=7,1=12\.5"), any::<bool>());
    let said = said.prop_map(|(memory, core, profile)| {
        let profile = profile.then(|| format!("{UUID}=2g.10gb,3=1g"));
        let said = [("GPU_MEM_LIMIT", memory), ("GPU_CORE_PCT", core), ("GPU_PROFILE", profile)];
        let said: Vec<_> =
            said.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        asked(&said)
    });
    let head = (".*", ".*", any::<bool>(), said);
    (head, entries).prop_map(|((source, container, open, asked), entries)| LimitsFile {
        source: Label::new(&source),
        container: Label::new(&container),
        open,
        asked,
        entries: entries
            .into_iter()
            .enumerate()
            .map(|(at, (uuid, ((every, mig), (memory, core, context))))| {
                let key = match (every && at == 0, mig) {
                    (true, _) => Key::Every,
                    (_, true) => Key::Name(Uuid(uuid).mig()),
                    (_, false) => Key::Name(Uuid(uuid).gpu()),
                };
                let entry = Entry { memory, context, ..Entry::new(key) };
                match core {
                    None => entry,
                    Some((core, core_max, low_priority)) => {
                        Entry { core: Some(core), core_max, low_priority, ..entry }
                    }
                }
            })
            .collect(),
    })
}

proptest! {
    #[test]
    fn any_file_that_was_written_is_read_as_it_was(file in files()) {
        prop_assert_eq!(LimitsFile::parse(file.write().as_bytes()), Ok(file));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(
        bytes: Vec<u8>, lines in "([a-z_]{1,13}=[0-9*%]{0,3}\n?){0,9}",
    ) {
        let _ = LimitsFile::parse(&bytes);
        let _ = LimitsFile::parse(&sealed(&lines));
    }

    #[test]
    fn one_wrong_byte_anywhere_is_refused(file in files(), change in 1_u8..) {
        let mut bytes = file.write().into_bytes();
        for at in 0..bytes.len() {
            bytes[at] ^= change;
            prop_assert!(LimitsFile::parse(&bytes).is_err(), "byte {}", at);
            bytes[at] ^= change;
        }
    }
}
