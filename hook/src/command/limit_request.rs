//! The limits requested of `gpucap run`, checked, and combined with the limits that are set already.
//!
//! A limit that is set already can only be lowered: for each variable the lower of both values holds. Where the two
//! cannot be compared (25 % of a GPU, or 4 GiB?), the run is refused. Pure: no environment, no file.

use crate::error::{Error, Result};
use gpucap_core::config::{
    Config, Excerpt, GPU_CORE_PCT, GPU_MEM_LIMIT, GPU_PROFILE, OptionRow, PerGpu, Profile,
    Selector, Slices, Value,
};
use gpucap_core::units::{Amount, Doubt, Share};
use gpucap_plan::Card;
use std::fmt::{Display, Write};

/// The limits of a run, or of the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LimitRequest {
    memory: Option<PerGpu<Amount>>,
    core: Option<PerGpu<Share>>,
    profile: Option<PerGpu<Profile>>,
}

/// The words of the options, as they were typed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitOptions<'a> {
    pub(crate) mem: Option<&'a str>,
    pub(crate) cores: Option<&'a str>,
    pub(crate) profile: Option<&'a str>,
    pub(crate) gpus: &'a [String],
}

/// Two values of one variable, joined.
#[derive(Debug, PartialEq)]
pub(crate) struct Joined {
    /// The limits that hold.
    pub(crate) request: LimitRequest,
    /// Notices for the user: one line for each value that was set already.
    pub(crate) notices: Vec<String>,
}

impl LimitRequest {
    /// Checks what was typed.
    ///
    /// # Errors
    /// There is no limit, or a value cannot be used.
    pub(crate) fn parse(words: LimitOptions<'_>) -> Result<Self> {
        let LimitOptions { mem, cores, profile, gpus } = words;
        for gpu in gpus {
            gpu.parse::<Selector>().map_err(|why| Error::Option {
                option: "--gpu",
                held: Excerpt::new(gpu.as_bytes()),
                why,
                allowed: "0 (as nvidia-smi counts), GPU-<uuid>, MIG-<uuid>",
            })?;
        }
        let request = Self {
            memory: option("--mem", &GPU_MEM_LIMIT, mem, gpus)?,
            core: option("--cores", &GPU_CORE_PCT, cores, gpus)?,
            profile: option("--profile", &GPU_PROFILE, profile, gpus)?,
        };
        if request.is_empty() { Err(Error::NoLimit) } else { Ok(request) }
    }

    /// What the environment says already.
    pub(crate) fn of(config: &Config) -> Self {
        let Config { memory, core, profile, .. } = config.clone();
        Self { memory, core, profile }
    }

    /// Whether nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limits that hold if `self` is set already and `asked` is asked for: the lower ones.
    ///
    /// # Errors
    /// If two values cannot be compared.
    pub(crate) fn lowered_by(&self, asked: &Self) -> Result<Joined> {
        let mut notices = Vec::new();
        let request = Self {
            memory: join(&GPU_MEM_LIMIT, &self.memory, &asked.memory, &mut notices)?,
            core: join(&GPU_CORE_PCT, &self.core, &asked.core, &mut notices)?,
            profile: join(&GPU_PROFILE, &self.profile, &asked.profile, &mut notices)?,
        };
        Ok(Joined { request, notices })
    }

    /// Returns the first value all of whose GPUs are missing on a machine with these GPUs. For MIG instances this is
    /// unknown.
    pub(crate) fn of_no_gpu(&self, cards: &[Card]) -> Option<String> {
        let is_here = |gpu: &Selector| match gpu {
            Selector::Index(index) => usize::try_from(*index).is_ok_and(|it| it < cards.len()),
            Selector::Name(name) => {
                let whole = name.uuid.gpu();
                *name != whole || cards.iter().any(|card| card.name == whole)
            }
        };
        let Self { memory, core, profile } = self;
        let memory = memory.as_ref().and_then(|list| missing(&GPU_MEM_LIMIT, list, is_here));
        let core = || core.as_ref().and_then(|list| missing(&GPU_CORE_PCT, list, is_here));
        let profile = || profile.as_ref().and_then(|list| missing(&GPU_PROFILE, list, is_here));
        memory.or_else(core).or_else(profile)
    }

    /// The notice for a request that is unusually small.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = Doubt> {
        let amounts = self.memory.iter().flat_map(PerGpu::values);
        amounts.filter_map(|amount| amount.doubt())
    }

    /// The variables that say it.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let Self { memory, core, profile } = self;
        let memory = memory.as_ref().map(|list| (GPU_MEM_LIMIT.name, list.to_string()));
        let core = core.as_ref().map(|list| (GPU_CORE_PCT.name, list.to_string()));
        let profile = profile.as_ref().map(|list| (GPU_PROFILE.name, list.to_string()));
        [memory, core, profile].into_iter().flatten().collect()
    }
}

/// A value that names GPUs, none of which exists here.
fn missing<T: Display>(
    row: &OptionRow,
    list: &PerGpu<T>,
    is_here: impl Fn(&Selector) -> bool,
) -> Option<String> {
    let PerGpu::Listed(entries) = list else { return None };
    let none = !entries.iter().any(|(gpu, _)| is_here(gpu));
    none.then(|| format!("{}={list}", row.name))
}

/// A value for the GPUs named, or for all of them, in the form of the variable.
fn option<T: Value>(
    option: &'static str,
    row: &OptionRow,
    typed: Option<&str>,
    gpus: &[String],
) -> Result<Option<PerGpu<T>>> {
    let Some(value) = typed.map(str::trim) else { return Ok(None) };
    let held = Excerpt::new(value.as_bytes());
    let mut text = value.to_owned();
    if !gpus.is_empty() {
        if value.contains(['=', ',']) {
            return Err(Error::GpuTwice { option, held });
        }
        text.clear();
        for gpu in gpus {
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma}{gpu}={value}");
        }
    }
    match PerGpu::parse(&text) {
        Ok(list) => Ok(Some(list)),
        Err(why) => Err(Error::Option { option, held, why, allowed: row.allowed }),
    }
}

fn join<T: Lower + Clone + Display + PartialEq>(
    row: &OptionRow,
    set: &Option<PerGpu<T>>,
    asked: &Option<PerGpu<T>>,
    notices: &mut Vec<String>,
) -> Result<Option<PerGpu<T>>> {
    let (Some(old), Some(new)) = (set, asked) else {
        return Ok(set.clone().or_else(|| asked.clone()));
    };
    let name = row.name;
    if old == new {
        return Ok(Some(old.clone()));
    }
    let lower = match (old, new) {
        (PerGpu::Every(old), PerGpu::Every(new)) => old.lower(new),
        _ => None,
    };
    let Some(lower) = lower else {
        let (set, asked) = (old.to_string(), new.to_string());
        return Err(Error::Incomparable { variable: name, set, asked });
    };
    let lower = PerGpu::Every(lower);
    notices.push(if lower == *old {
        format!("{name}={old} is set already and stays; {new} would be more")
    } else {
        format!("{name} lowered from {old} to {new}")
    });
    Ok(Some(lower))
}

/// Values of which the lower one can sometimes be determined.
trait Lower: Sized {
    fn lower(&self, other: &Self) -> Option<Self>;
}

impl Lower for Share {
    fn lower(&self, other: &Self) -> Option<Self> {
        Some(*self.min(other))
    }
}

impl Lower for Amount {
    fn lower(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Bytes(one), Self::Bytes(two)) => Some(Self::Bytes(*one.min(two))),
            (Self::OfDevice(one), Self::OfDevice(two)) => Some(Self::OfDevice(*one.min(two))),
            _ => None,
        }
    }
}

impl Lower for Profile {
    /// The one that has no more of both memory and time.
    fn lower(&self, other: &Self) -> Option<Self> {
        let within = |one: &Self, two: &Self| {
            // More slices of one kind are no fewer of another.
            let [one_memory, two_memory] = [one, two].map(|it| it.memory(Slices::Seven));
            one.core(Slices::Seven) <= two.core(Slices::Seven)
                && one_memory.lower(&two_memory) == Some(one_memory)
        };
        if within(self, other) { Some(*self) } else { within(other, self).then_some(*other) }
    }
}

#[cfg(test)]
mod tests {
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
            gpus: &[],
        };
        let variables = LimitRequest::parse(words).expect("limits").variables();
        let expected =
            [("GPU_MEM_LIMIT", "4GiB"), ("GPU_CORE_PCT", "30%"), ("GPU_PROFILE", "1g.5gb")];
        assert_eq!(variables, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn a_gpu_gets_the_value_and_the_others_none() {
        let gpus = ["0".to_owned(), "2".to_owned()];
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
            LimitOptions {
                mem: Some("1Gi"),
                gpus: &["0".into(), "0".into()],
                ..LimitOptions::default()
            },
            LimitOptions { mem: Some("1=1Gi"), gpus: &["0".into()], ..LimitOptions::default() },
        ] {
            assert!(LimitRequest::parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_limit_of_no_gpu_of_this_machine_is_found() {
        let uuid = |digit: char| {
            format!(
                "GPU-{}",
                "00000000-0000-0000-0000-000000000000".replace('0', &digit.to_string())
            )
        };
        let card = |digit| Card {
            name: uuid(digit).parse().expect("a name"),
            minor: None,
            slices: Slices::default(),
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
        let said =
            refusal(LimitOptions { mem: Some("1Gi"), gpus: &gpus, ..LimitOptions::default() });
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
        assert_eq!(
            joined(mem("4Gi"), mem("2Gi")).notices,
            ["GPU_MEM_LIMIT lowered from 4GiB to 2GiB"]
        );
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
}
