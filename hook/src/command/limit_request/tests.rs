//! What is typed becomes variables, and nothing that is set already rises.

use super::*;

fn mem(value: &str) -> LimitRequest {
    LimitRequest::parse(LimitOptions { mem: Some(value), ..LimitOptions::default() })
        .expect("a limit")
}

fn profile(value: &str) -> LimitRequest {
    LimitRequest::parse(LimitOptions { profile: Some(value), ..LimitOptions::default() })
        .expect("a limit")
}

fn refusal(words: LimitOptions<'_>) -> String {
    LimitRequest::parse(words).expect_err("refused").to_string()
}

#[test]
fn options_become_variables() {
    let words = LimitOptions {
        mem: Some("4Gi"),
        cores: Some("30"),
        profile: Some("1g.5gb"),
        ..LimitOptions::default()
    };
    let variables = LimitRequest::parse(words).expect("limits").variables();
    let expected = [("GPU_MEM_LIMIT", "4GiB"), ("GPU_CORE_PCT", "30%"), ("GPU_PROFILE", "1g.5gb")];
    assert_eq!(variables, expected.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn a_gpu_gets_the_value_and_the_others_none() {
    // One that is named twice is one.
    let gpus = ["0".to_owned(), "2".to_owned(), "0".to_owned()];
    let words = LimitOptions { mem: Some("4Gi"), gpus: &gpus, ..LimitOptions::default() };
    let variables = LimitRequest::parse(words).expect("limits").variables();
    assert_eq!(variables, [("GPU_MEM_LIMIT", "0=4GiB,2=4GiB".to_owned())]);
}

#[test]
fn what_cannot_be_used_is_refused_with_what_can() {
    assert_eq!(
        refusal(LimitOptions { mem: Some("5gg"), ..LimitOptions::default() }),
        "--mem \"5gg\": unknown suffix (known: Ki Mi Gi Ti, K M G T, with or without B); \
         allowed: 4Gi, 4096Mi, 4G, bytes, 25%, or per GPU: 0=4Gi,GPU-<uuid>=8Gi"
    );
    for words in [
        LimitOptions::default(),
        LimitOptions { mem: Some(""), ..LimitOptions::default() },
        LimitOptions { mem: Some("0"), ..LimitOptions::default() },
        LimitOptions { cores: Some("101"), ..LimitOptions::default() },
        LimitOptions { profile: Some("9g"), ..LimitOptions::default() },
        LimitOptions { mem: Some("1Gi"), gpus: &["x".into()], ..LimitOptions::default() },
        LimitOptions { mem: Some("1=1Gi"), gpus: &["0".into()], ..LimitOptions::default() },
    ] {
        assert!(LimitRequest::parse(words).is_err(), "{words:?}");
    }
}

#[test]
fn a_limit_of_no_gpu_of_this_machine_is_found() {
    let uuid = |digit: char| {
        format!("GPU-{}", "00000000-0000-0000-0000-000000000000".replace('0', &digit.to_string()))
    };
    let card = |digit| Card {
        name: uuid(digit).parse().expect("a name"),
        minor: None,
        slices: Slices::default(),
        model: String::new(),
    };
    let cards = [card('1'), card('2')];
    let of = |value: String| mem(&value).of_no_gpu(&cards);
    assert_eq!(of("9=1Gi".into()).as_deref(), Some("GPU_MEM_LIMIT=9=1GiB"));
    assert!(of(format!("{}=1Gi,2=1Gi", uuid('3'))).is_some());
    for here in
        ["1Gi", "25%", "1=1Gi", "9=1Gi,0=2Gi", "MIG-33333333-3333-3333-3333-333333333333=1Gi"]
    {
        assert_eq!(of(here.into()), None, "{here}");
    }
    assert_eq!(of(format!("{}=1Gi", uuid('2'))), None);
    let gpus = ["9".to_owned()];
    let words = LimitOptions {
        cores: Some("30"),
        profile: Some("1g.5gb"),
        gpus: &gpus,
        ..LimitOptions::default()
    };
    let found = LimitRequest::parse(words).expect("limits").of_no_gpu(&cards);
    assert_eq!(found.as_deref(), Some("GPU_CORE_PCT=9=30%"));
}

#[test]
fn what_is_wrong_with_a_gpu_is_said_of_the_gpu() {
    let gpus = ["foo".to_owned()];
    let said = refusal(LimitOptions { mem: Some("1Gi"), gpus: &gpus, ..LimitOptions::default() });
    let why = "--gpu \"foo\": a GPU is named by its index, GPU-<uuid> or MIG-<uuid>; allowed: ";
    assert!(said.starts_with(why), "{said}");
}

#[test]
fn what_is_set_already_is_never_raised() {
    let joined =
        |set: LimitRequest, asked: LimitRequest| set.lowered_by(&asked).expect("comparable");
    assert_eq!(joined(mem("2Gi"), mem("4Gi")).request, mem("2Gi"));
    assert_eq!(joined(mem("4Gi"), mem("2Gi")).request, mem("2Gi"));
    assert_eq!(joined(mem("30%"), mem("20%")).request, mem("20%"));
    assert_eq!(joined(mem("0=2Gi"), mem("0=2Gi")).request, mem("0=2Gi"));
    assert_eq!(joined(profile("2g.10gb"), profile("1g.5gb")).request, profile("1g.5gb"));
    assert_eq!(joined(profile("1g.5gb"), profile("7g.40gb")).request, profile("1g.5gb"));
    let both = joined(mem("2Gi"), profile("1g.5gb")).request;
    assert_eq!(both.variables().len(), 2, "each holds, and the library takes the lower");
    assert_eq!(
        joined(mem("2Gi"), mem("4Gi")).notices,
        ["GPU_MEM_LIMIT=2GiB is set already and stays; 4GiB would be more"]
    );
    assert_eq!(joined(mem("4Gi"), mem("2Gi")).notices, ["GPU_MEM_LIMIT lowered from 4GiB to 2GiB"]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    for (set, asked) in [
        (mem("4Gi"), mem("25%")),
        (mem("0=4Gi"), mem("2Gi")),
        (mem("4Gi"), mem("0=2Gi")),
        (profile("1g.10gb"), profile("2g.5gb")),
        (profile("1g"), profile("2g.10gb")),
    ] {
        assert!(set.lowered_by(&asked).is_err(), "{set:?} {asked:?}");
    }
}

fn time(
    cores: Option<&str>,
    policy: Option<&str>,
    most: Option<&str>,
    priority: Option<&str>,
) -> Result<LimitRequest> {
    LimitRequest::parse(LimitOptions {
        cores,
        core_policy: policy,
        core_max: most,
        core_priority: priority,
        ..LimitOptions::default()
    })
}

#[test]
fn options_of_lending_become_variables() {
    let request = time(Some("30"), Some("burst"), Some("80"), Some("normal")).expect("limits");
    let expected = [
        ("GPU_CORE_PCT", "30%"),
        ("GPU_CORE_POLICY", "burst"),
        ("GPU_CORE_MAX_PCT", "80%"),
        ("GPU_CORE_PRIORITY", "normal"),
    ];
    assert_eq!(request.variables(), expected.map(|(name, value)| (name, value.to_owned())));
    assert!(time(None, None, None, Some("low")).is_ok());
    assert!(time(None, None, Some("80"), None).is_ok());
}

#[test]
fn options_of_lending_that_cannot_be_used_are_refused() {
    let refused = |request: Result<LimitRequest>| request.expect_err("refused").to_string();
    assert_eq!(
        refused(time(Some("30"), Some("brust"), None, None)),
        "--core-policy \"brust\": not a policy; allowed: fixed, burst"
    );
    assert_eq!(
        refused(time(None, None, None, Some("high"))),
        "--core-priority \"high\": not a priority; allowed: normal, low"
    );
    assert!(refused(time(Some("30"), None, Some("0"), None)).starts_with("--core-max \"0\": "));
    assert_eq!(refused(time(None, Some("burst"), None, None)), Error::NoLimit.to_string());
    let fixed = "--core-policy fixed lends nothing beyond the share, so it has no --core-max";
    assert_eq!(refused(time(Some("30"), Some("fixed"), Some("50"), None)), fixed);
    let gpus = ["0".to_owned()];
    let low = LimitOptions { core_priority: Some("low"), gpus: &gpus, ..LimitOptions::default() };
    assert_eq!(refusal(low), "--core-priority low is for every GPU: give it without --gpu");
}

#[test]
fn a_maximum_that_changes_nothing_is_noted() {
    let notices = |variables: &[(&str, &str)]| {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| value.as_bytes().to_vec())
        };
        let set = LimitRequest::of(&Config::from_lookup(&lookup).expect("values"));
        let notices = set.lowered_by(&mem("1Gi")).expect("joined").notices;
        notices.into_iter().filter(|notice| notice.contains("MAX")).collect::<Vec<_>>()
    };
    let (share, most) = (("GPU_CORE_PCT", "30"), ("GPU_CORE_MAX_PCT", "50"));
    let fixed = ("GPU_CORE_POLICY", "fixed");
    let said =
        "GPU_CORE_MAX_PCT=50% changes nothing without GPU_CORE_POLICY=burst: the share is fixed";
    assert_eq!(notices(&[share, most, fixed]), [said]);
    assert_eq!(notices(&[share, most]), [said], "fixed is the default");
    assert_eq!(notices(&[("GPU_PROFILE", "1g.5gb"), most]), [said]);
    assert_eq!(notices(&[share, ("GPU_CORE_MAX_PCT", "0=50,1=40")]).len(), 1);
    for counts in [
        &[share, most, ("GPU_CORE_POLICY", "burst")][..],
        &[share, most, ("GPU_CORE_PRIORITY", "low"), fixed],
        &[share, ("GPU_CORE_MAX_PCT", "20"), fixed],
        &[share, ("GPU_CORE_MAX_PCT", "0=50,1=20")],
        &[most, fixed],
        &[("GPU_CORE_PCT", "0=30"), most],
    ] {
        assert_eq!(notices(counts), [""; 0], "{counts:?}");
    }
}

#[test]
fn a_budget_that_lends_nothing_stays_so() {
    let joined = |set: &LimitRequest, asked: &LimitRequest| set.lowered_by(asked).expect("joined");
    let fixed = time(Some("30"), None, None, None).expect("limits");
    let burst = time(Some("20"), Some("burst"), None, None).expect("limits");
    let Joined { request, notices } = joined(&fixed, &burst);
    assert_eq!(request.core_policy, Some(CorePolicy::Fixed));
    assert!(
        notices
            .contains(&"GPU_CORE_POLICY=fixed holds already and stays; burst would be more".into()),
        "{notices:?}"
    );
    assert_eq!(joined(&burst, &fixed).request.core_policy, Some(CorePolicy::Burst));
    let refusing = time(Some("20"), Some("fixed"), None, None).expect("limits");
    assert_eq!(joined(&burst, &refusing).request.core_policy, Some(CorePolicy::Fixed));
    assert_eq!(joined(&mem("1Gi"), &burst).request.core_policy, Some(CorePolicy::Burst));
    let low = time(None, None, None, Some("low")).expect("limits");
    assert_eq!(joined(&burst, &low).request.core_priority, Some(CorePriority::Low));
    assert_eq!(joined(&low, &burst).request.core_priority, Some(CorePriority::Low));
    let words =
        LimitOptions { mem: Some("1Gi"), core_policy: Some("burst"), ..LimitOptions::default() };
    let alone = LimitRequest::parse(words).expect("a limit");
    let notices = joined(&LimitRequest::default(), &alone).notices;
    assert_eq!(
        notices,
        ["GPU_CORE_POLICY=burst changes nothing without a share of time (--cores)"]
    );
}
