//! The minimum rule as a property: whatever is added, no limit rises.

use proptest::prelude::*;

use super::*;

/// Texts of one variable, for GPUs that may or may not be the one asked about.
fn value(of: &'static str) -> impl Strategy<Value = String> {
    let one = prop::sample::select(match of {
        "GPU_MEM_LIMIT" => vec!["1Gi", "4Gi", "64Gi", "10%", "100%", "5000000000"],
        "GPU_CORE_PCT" => vec!["1", "30", "100", "12.5"],
        _ => vec!["1g", "2g.10gb", "7g", "7g.80gb", "4g.20gb"],
    });
    let gpu = prop::sample::select(vec![
        String::new(),
        "0=".into(),
        "1=".into(),
        format!("{}=", ONE.gpu()),
    ]);
    (gpu, one).prop_map(|(gpu, value)| format!("{gpu}{value}"))
}

fn environment() -> impl Strategy<Value = Variables> {
    let maybe = |name: &'static str| {
        prop::option::of(value(name))
            .prop_map(move |value| value.map(|value| (name.to_owned(), value)))
    };
    (maybe("GPU_MEM_LIMIT"), maybe("GPU_CORE_PCT"), maybe("GPU_PROFILE"))
        .prop_map(|(memory, core, profile)| [memory, core, profile].into_iter().flatten().collect())
}

fn resolved(variables: &Variables, file: Option<&LimitsFile>, device: &DeviceFacts) -> Resolved {
    load(variables, file)
        .expect("usable")
        .map_or_else(Resolved::default, |limits| limits.resolve(device).expect("usable"))
}

/// No limit of `lower` is above that of `upper`.
fn at_most(lower: Resolved, upper: Resolved) -> bool {
    let memory = lower.memory.unwrap_or(u64::MAX) <= upper.memory.unwrap_or(u64::MAX);
    let none = Share::DENOMINATOR + 1;
    let parts = |core: Option<Share>| core.map_or(none, Share::parts);
    memory && parts(lower.core) <= parts(upper.core) && (lower.refused || !upper.refused)
}

proptest! {
    #[test]
    fn adding_a_variable_never_raises_a_limit(all in environment(), total in 100_u64..1 << 40) {
        for device in [DeviceFacts { total_bytes: total, ..CARD }, INSTANCE] {
            let together = resolved(&all, None, &device);
            for name in all.keys() {
                let mut fewer = all.clone();
                fewer.remove(name);
                prop_assert!(at_most(together, resolved(&fewer, None, &device)), "{}", name);
            }
            prop_assert!(together.memory.is_none_or(|memory| memory <= device.total_bytes));
        }
    }

    #[test]
    fn adding_a_file_or_variables_never_raises_a_limit(
        all in environment(), gib in 1_u64..100, core in 1_u16..=100, mine: bool, open: bool,
    ) {
        let key = if mine { Key::Name(ONE.gpu()) } else { Key::Name(Uuid([9; 16]).gpu()) };
        let file = LimitsFile { open, ..file(vec![entry(key, gib, core)]) };
        for device in [CARD, INSTANCE] {
            let together = resolved(&all, Some(&file), &device);
            prop_assert!(at_most(together, resolved(&all, None, &device)));
            prop_assert!(at_most(together, resolved(&Variables::new(), Some(&file), &device)));
        }
    }

    #[test]
    fn no_environment_raises_a_limit_of_an_open_file(values: [String; 3]) {
        let listed = open(vec![entry(Key::Every, 4, 30)]);
        let names = ["GPU_MEM_LIMIT", "GPU_CORE_PCT", "GPU_PROFILE"].map(str::to_owned);
        let all: Variables = names.into_iter().zip(values).collect();
        let device = DeviceFacts { index: None, ..CARD };
        let together = resolved(&all, Some(&listed), &device);
        prop_assert!(at_most(together, resolved(&Variables::new(), Some(&listed), &device)));
    }
}
