//! The limits requested of `gpucap run`, checked, and combined with the limits that are set already.
//!
//! A limit that is set already can only be lowered: for each variable the lower of both values holds. Where the two
//! cannot be compared (25 % of a GPU, or 4 GiB?), the run is refused. Pure: no environment, no file.

mod maximum;

use crate::container::effective_limit::EffectiveLimit;
use crate::error::{Error, Result};
use gpucap_core::config::{
    Config, CorePolicy, CorePriority, Excerpt, OptionRow, OwnLimits, PerGpu, Profile, Selector,
    Slices, Value,
};
use gpucap_core::config::{
    GPU_CORE_MAX_PCT, GPU_CORE_PCT, GPU_CORE_POLICY, GPU_CORE_PRIORITY, GPU_MEM_LIMIT, GPU_PROFILE,
};
use gpucap_core::limits::file::Key;
use gpucap_core::units::{Amount, ComputeLimit, Doubt, Share};
use gpucap_plan::Card;
use std::collections::BTreeSet;
use std::fmt::Display;

/// The limits of a run, or of the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LimitRequest {
    memory: Option<PerGpu<Amount>>,
    core: Option<PerGpu<Share>>,
    profile: Option<PerGpu<Profile>>,
    core_policy: Option<CorePolicy>,
    core_max: Option<PerGpu<Share>>,
    core_priority: Option<CorePriority>,
}

/// The options about time that others leave unused.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LendingOptions {
    /// Whether to borrow GPU time that others leave unused, beyond the share: fixed (never) or burst
    #[arg(long, value_name = "POLICY", allow_hyphen_values = true)]
    core_policy: Option<String>,
    /// Most of each GPU's time in percent, borrowed time included: 1 to 100; with a share it implies burst
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    core_max: Option<String>,
    /// normal, or low: no guaranteed time, only what others leave unused, on every GPU
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true)]
    core_priority: Option<String>,
}

/// The words of the options, as they were typed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitOptions<'a> {
    pub(crate) mem: Option<&'a str>,
    pub(crate) cores: Option<&'a str>,
    pub(crate) profile: Option<&'a str>,
    pub(crate) core_policy: Option<&'a str>,
    pub(crate) core_max: Option<&'a str>,
    pub(crate) core_priority: Option<&'a str>,
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

impl LendingOptions {
    /// Adds them to the others.
    pub(crate) fn join<'a>(&'a self, others: LimitOptions<'a>) -> LimitOptions<'a> {
        LimitOptions {
            core_policy: self.core_policy.as_deref(),
            core_max: self.core_max.as_deref(),
            core_priority: self.core_priority.as_deref(),
            ..others
        }
    }
}

impl LimitRequest {
    /// Checks what was typed.
    ///
    /// # Errors
    /// There is no limit, or a value cannot be used.
    pub(crate) fn parse(words: LimitOptions<'_>) -> Result<Self> {
        let LimitOptions { mem, cores, profile, core_policy, core_max, core_priority, gpus } =
            words;
        for gpu in gpus {
            gpu.parse::<Selector>().map_err(|why| Error::Option {
                option: "--gpu",
                held: Excerpt::new(gpu.as_bytes()),
                why,
                allowed: "0 (as nvidia-smi counts), GPU-<uuid>, MIG-<uuid>",
            })?;
        }
        let mut request = Self {
            memory: option("--mem", &GPU_MEM_LIMIT, mem, gpus)?,
            core: option("--cores", &GPU_CORE_PCT, cores, gpus)?,
            profile: option("--profile", &GPU_PROFILE, profile, gpus)?,
            core_policy: word("--core-policy", &GPU_CORE_POLICY, core_policy)?,
            core_max: option("--core-max", &GPU_CORE_MAX_PCT, core_max, gpus)?,
            core_priority: word("--core-priority", &GPU_CORE_PRIORITY, core_priority)?,
        };
        // A maximum beyond a share is asked for to borrow; without a share it is the share.
        let has_both = cores.or(profile).and(core_max).is_some();
        if request.core_policy == Some(CorePolicy::Fixed) && has_both && !request.is_low() {
            return Err(Error::FixedMaximum);
        }
        if request.core_policy.is_none() && has_both && !request.is_low() {
            request.core_policy = Some(CorePolicy::Burst);
        }
        if request.is_low() && !gpus.is_empty() {
            return Err(Error::EveryGpu { option: "--core-priority low" });
        }
        if request.limits() { Ok(request) } else { Err(Error::NoLimit) }
    }

    /// What the environment says already.
    pub(crate) fn of(config: &Config) -> Self {
        let Config { memory, core, profile, core_policy, core_max, core_priority, .. } =
            config.clone();
        Self { memory, core, profile, core_policy, core_max, core_priority }
    }

    /// Whether anything is limited. A policy alone does not.
    pub(crate) fn limits(&self) -> bool {
        self.memory.is_some() || self.has_share() || self.is_low()
    }

    fn has_share(&self) -> bool {
        self.core.is_some() || self.profile.is_some() || self.core_max.is_some()
    }

    fn is_low(&self) -> bool {
        self.core_priority == Some(CorePriority::Low)
    }

    /// The limits that hold if `self` is set already and `asked` is asked for: the lower ones.
    ///
    /// # Errors
    /// If two values cannot be compared.
    pub(crate) fn lowered_by(&self, asked: &Self) -> Result<Joined> {
        let mut notices = Vec::new();
        let most = self.most_of_low(asked).or_else(|| self.core_max.clone());
        let request = Self {
            memory: join(&GPU_MEM_LIMIT, &self.memory, &asked.memory, &mut notices)?,
            core: join(&GPU_CORE_PCT, &self.core, &asked.core, &mut notices)?,
            profile: join(&GPU_PROFILE, &self.profile, &asked.profile, &mut notices)?,
            core_policy: self.policy_lowered_by(asked, &mut notices),
            core_max: join(&GPU_CORE_MAX_PCT, &most, &asked.core_max, &mut notices)?,
            core_priority: lower(self.core_priority, asked.core_priority),
        };
        if request.core_policy == Some(CorePolicy::Burst)
            && !request.has_share()
            && !request.is_low()
        {
            let name = GPU_CORE_POLICY.name;
            notices.push(format!("{name}=burst changes nothing without a share of time (--cores)"));
        }
        notices.extend(request.vain_maximum());
        Ok(Joined { request, notices })
    }

    /// What is set where it is asked for more: in place of each amount with which the run was started that this is in,
    /// unless a run inside it has set that, the one that holds now.
    pub(crate) fn as_of_now(
        &self,
        start: &Self,
        now: &Self,
        own: &OwnLimits,
        asked: &Self,
    ) -> Self {
        fn amount<T: Clone + PartialEq>(
            row: &OptionRow,
            own: &OwnLimits,
            [set, start, now, asked]: [&Option<T>; 4],
        ) -> Option<T> {
            let is_inherited = set == start && !own.contains(row.name);
            let changed = now.clone().filter(|_| is_inherited && asked.is_some());
            changed.or_else(|| set.clone())
        }
        let Self { memory, core, core_max, .. } = self;
        Self {
            memory: amount(
                &GPU_MEM_LIMIT,
                own,
                [memory, &start.memory, &now.memory, &asked.memory],
            ),
            core: amount(&GPU_CORE_PCT, own, [core, &start.core, &now.core, &asked.core]),
            core_max: amount(
                &GPU_CORE_MAX_PCT,
                own,
                [core_max, &start.core_max, &now.core_max, &asked.core_max],
            ),
            ..self.clone()
        }
    }

    /// What holds of a run now, if that is the same for all GPUs.
    pub(crate) fn of_effective(all: &[EffectiveLimit]) -> Self {
        let [EffectiveLimit { gpu: Key::Every, now, .. }] = all else { return Self::default() };
        let amount = now.memory.amounts().next().filter(|_| now.memory.amounts().count() == 1);
        let most = now.core.filter(|core| core.borrows()).map(ComputeLimit::most);
        Self {
            memory: amount.map(PerGpu::Every),
            core: now.core.and_then(ComputeLimit::guaranteed).map(PerGpu::Every),
            core_max: most.map(PerGpu::Every),
            ..Self::default()
        }
    }

    /// The policy; where time is limited and none is set, that is `fixed`.
    fn policy(&self) -> Option<CorePolicy> {
        let fixed = || (self.has_share() && !self.is_low()).then_some(CorePolicy::Fixed);
        self.core_policy.or_else(fixed)
    }

    /// The lower of both policies.
    fn policy_lowered_by(&self, asked: &Self, notices: &mut Vec<String>) -> Option<CorePolicy> {
        let lower = lower(self.policy(), asked.core_policy);
        if let Some(more) = asked.core_policy.filter(|more| Some(*more) > lower) {
            let name = GPU_CORE_POLICY.name;
            notices.push(format!("{name}=fixed holds already and stays; {more} would be more"));
        }
        // What is not set and not asked for need not be said.
        if asked.core_policy.is_none() { self.core_policy } else { lower }
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
        let Self { memory, core, profile, core_max, .. } = self;
        let memory = memory.as_ref().and_then(|list| missing(&GPU_MEM_LIMIT, list, is_here));
        let core = || core.as_ref().and_then(|list| missing(&GPU_CORE_PCT, list, is_here));
        let profile = || profile.as_ref().and_then(|list| missing(&GPU_PROFILE, list, is_here));
        let most = || core_max.as_ref().and_then(|list| missing(&GPU_CORE_MAX_PCT, list, is_here));
        memory.or_else(core).or_else(profile).or_else(most)
    }

    /// The notice for a request that is unusually small.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = Doubt> {
        let amounts = self.memory.iter().flat_map(PerGpu::values);
        amounts.filter_map(|amount| amount.doubt())
    }

    /// The variables that say it.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let Self { memory, core, profile, core_policy, core_max, core_priority } = self;
        let memory = memory.as_ref().map(|list| (GPU_MEM_LIMIT.name, list.to_string()));
        let core = core.as_ref().map(|list| (GPU_CORE_PCT.name, list.to_string()));
        let profile = profile.as_ref().map(|list| (GPU_PROFILE.name, list.to_string()));
        let policy = core_policy.map(|policy| (GPU_CORE_POLICY.name, policy.to_string()));
        let most = core_max.as_ref().map(|list| (GPU_CORE_MAX_PCT.name, list.to_string()));
        let priority = core_priority.map(|priority| (GPU_CORE_PRIORITY.name, priority.to_string()));
        [memory, core, profile, policy, most, priority].into_iter().flatten().collect()
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
        // One that is named twice is one.
        let named: BTreeSet<_> = gpus.iter().map(|gpu| format!("{gpu}={value}")).collect();
        text = named.into_iter().collect::<Vec<_>>().join(",");
    }
    match PerGpu::parse(&text) {
        Ok(list) => Ok(Some(list)),
        Err(why) => Err(Error::Option { option, held, why, allowed: row.allowed }),
    }
}

/// A value that is for every GPU.
fn word<T: Value>(option: &'static str, row: &OptionRow, typed: Option<&str>) -> Result<Option<T>> {
    let Some(value) = typed.map(str::trim) else { return Ok(None) };
    let held = Excerpt::new(value.as_bytes());
    let wrong = |why| Error::Option { option, held, why, allowed: row.allowed };
    T::parse(value).map(Some).map_err(wrong)
}

fn lower<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
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
mod tests;
