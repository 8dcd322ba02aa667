//! The minimum rule as a property: whatever is added, no limit rises.

use proptest::prelude::*;

use super::*;

/// Texts of one variable, for GPUs that may or may not be the one asked about.
fn value(of: &'static str) -> impl Strategy<Value = String> {
    let one = prop::sample::select(match of {
        "GPU_MEM_LIMIT" => vec!["1Gi", "4Gi", "64Gi", "10%", "100%", "5000000000"],
        "GPU_CORE_PCT" | "GPU_CORE_MAX_PCT" => vec!["1", "30", "100", "12.5"],
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
    let quantities = [maybe("GPU_MEM_LIMIT"), maybe("GPU_CORE_PCT"), maybe("GPU_PROFILE")];
    (quantities, maybe("GPU_CORE_MAX_PCT"))
        .prop_map(|(all, most)| all.into_iter().flatten().chain(most).collect())
}

/// The same, with policies.
fn policies() -> impl Strategy<Value = Variables> {
    let one = |name: &'static str, values: &[&'static str]| {
        prop::option::of(prop::sample::select(values.to_vec()))
            .prop_map(move |value| value.map(|value| (name.to_owned(), value.to_owned())))
    };
    let policy = one("GPU_CORE_POLICY", &["fixed", "burst"]);
    (environment(), policy, one("GPU_CORE_PRIORITY", &["normal", "low"]))
        .prop_map(|(all, policy, priority)| all.into_iter().chain(policy).chain(priority).collect())
}

fn resolved(variables: &Variables, file: Option<&LimitsFile>, device: &DeviceFacts) -> Resolved {
    load(variables, file)
        .expect("usable")
        .map_or_else(Resolved::default, |limits| limits.resolve(device).expect("usable"))
}

/// No limit of `lower` is above that of `upper`.
fn at_most(lower: Resolved, upper: Resolved) -> bool {
    let memory = lower.memory.unwrap_or(u64::MAX) <= upper.memory.unwrap_or(u64::MAX);
    memory && time_at_most(lower.core, upper.core) && (lower.refused || !upper.refused)
}

/// Neither the guarantee nor the most is above that of `upper`.
fn time_at_most(lower: Option<ComputeLimit>, upper: Option<ComputeLimit>) -> bool {
    let parts = |core: Option<ComputeLimit>| {
        core.map_or([Share::DENOMINATOR + 1; 2], |core| {
            [core.guaranteed().map_or(0, Share::parts), core.most().parts()]
        })
    };
    parts(lower).iter().zip(parts(upper)).all(|(lower, upper)| *lower <= upper)
}

fn is_policy(name: &str) -> bool {
    ["GPU_CORE_POLICY", "GPU_CORE_PRIORITY"].contains(&name)
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
        all in policies(), gib in 1_u64..100, core in 1_u16..=100, mine: bool, open: bool,
        lent in prop::option::of(1_u16..=100), low_priority: bool,
    ) {
        let key = if mine { Key::Name(ONE.gpu()) } else { Key::Name(Uuid([9; 16]).gpu()) };
        let core_max = lent.map(|lent| percent(lent.max(core)));
        let entry = Entry { core_max, low_priority, ..entry(key, gib, core) };
        let file = LimitsFile { open, ..file(vec![entry]) };
        for device in [CARD, INSTANCE] {
            let together = resolved(&all, Some(&file), &device);
            let node = resolved(&Variables::new(), Some(&file), &device);
            prop_assert!(at_most(together, node));
            // Where the node lends nothing, no variable does.
            let borrows = |it: Resolved| it.core.is_some_and(ComputeLimit::borrows);
            prop_assert!(borrows(node) || !borrows(together));
            let shares: Variables = all.clone().into_iter().filter(|(name, _)| !is_policy(name)).collect();
            let alone = resolved(&shares, None, &device);
            prop_assert!(together.memory.unwrap_or(u64::MAX) <= alone.memory.unwrap_or(u64::MAX));
            if borrows(node) || alone.core.is_none() {
                continue;
            }
            prop_assert!(time_at_most(together.core, alone.core), "{:?} {:?}", together, alone);
        }
    }

    #[test]
    fn no_policy_raises_a_guarantee(all in policies()) {
        for device in [CARD, INSTANCE] {
            let shares: Variables = all.clone().into_iter().filter(|(name, _)| !is_policy(name)).collect();
            let guaranteed = |all| {
                resolved(all, None, &device).core.map(|core| core.guaranteed().map_or(0, Share::parts))
            };
            let [with, without] = [guaranteed(&all), guaranteed(&shares)].map(|it| it.unwrap_or(u16::MAX));
            prop_assert!(with <= without);
        }
    }

    #[test]
    fn no_environment_raises_a_limit_of_an_open_file(values: [String; 6]) {
        let listed = open(vec![entry(Key::Every, 4, 30)]);
        let names = [
            "GPU_MEM_LIMIT", "GPU_CORE_PCT", "GPU_PROFILE",
            "GPU_CORE_POLICY", "GPU_CORE_MAX_PCT", "GPU_CORE_PRIORITY",
        ].map(str::to_owned);
        let all: Variables = names.into_iter().zip(values).collect();
        let device = DeviceFacts { index: None, ..CARD };
        let together = resolved(&all, Some(&listed), &device);
        prop_assert!(at_most(together, resolved(&Variables::new(), Some(&listed), &device)));
    }
}
