//! The maximum of GPU time: what it is where a share without lending becomes low priority, and when it changes nothing.
//!
//! Without lending a share is its own maximum. Variables may set another one all the same, and the library then takes the
//! lower of both without a word. The options of one command may not: [`LimitRequest::parse`] refuses them. Pure.

use super::LimitRequest;
use gpucap_core::config::{
    CorePolicy, GPU_CORE_MAX_PCT, GPU_CORE_POLICY, PerGpu, Profile, Selector, Slices,
};
use gpucap_core::units::Share;

impl LimitRequest {
    /// The most that low priority may have where a share without lending is set.
    pub(super) fn most_of_low(&self, asked: &Self) -> Option<PerGpu<Share>> {
        let becomes_low = asked.is_low() && !self.is_low();
        let is_fixed = becomes_low && self.policy() == Some(CorePolicy::Fixed);
        let of_profile = self.profile.as_ref().map(|list| match list {
            PerGpu::Every(profile) => PerGpu::Every(profile.core(Slices::default())),
            PerGpu::Listed(entries) => {
                let share =
                    |(gpu, profile): &(Selector, Profile)| (*gpu, profile.core(Slices::default()));
                PerGpu::Listed(entries.iter().map(share).collect())
            }
        });
        let shares = [&self.core, &of_profile, &self.core_max].into_iter().flatten().cloned();
        let lowest = shares.reduce(|one, two| match (&one, &two) {
            (PerGpu::Every(a), PerGpu::Every(b)) => PerGpu::Every(*a.min(b)),
            // Which is the lower one for each GPU is not said in one value: one that is for all GPUs.
            (PerGpu::Listed(_), PerGpu::Every(_)) => two,
            _ => one,
        });
        lowest.filter(|_| is_fixed)
    }

    /// The notice for a maximum that lowers no share, where no time is lent beyond the share.
    pub(super) fn vain_maximum(&self) -> Option<String> {
        let is_fixed = self.policy() == Some(CorePolicy::Fixed) && !self.is_low();
        let most = self.core_max.as_ref().filter(|_| is_fixed)?;
        let share_of = |gpu| {
            let of_profile = |profile: Profile| profile.core(Slices::default());
            let core = self.core.as_ref().and_then(|list| value_for(list, gpu));
            let profile = self.profile.as_ref().and_then(|list| value_for(list, gpu));
            core.into_iter().chain(profile.map(of_profile)).min()
        };
        let is_vain = |gpu, most: Share| share_of(gpu).is_some_and(|share| share <= most);
        let is_vain = match most {
            PerGpu::Every(most) => is_vain(None, *most),
            PerGpu::Listed(all) => all.iter().all(|(gpu, most)| is_vain(Some(*gpu), *most)),
        };
        let (name, policy) = (GPU_CORE_MAX_PCT.name, GPU_CORE_POLICY.name);
        is_vain.then(|| {
            format!("{name}={most} changes nothing without {policy}=burst: the share is fixed")
        })
    }
}

/// The value for this GPU, or for those that no value names. `None` if the list has none.
fn value_for<T: Copy>(list: &PerGpu<T>, gpu: Option<Selector>) -> Option<T> {
    match list {
        PerGpu::Every(value) => Some(*value),
        PerGpu::Listed(all) => {
            let (_, value) = all.iter().find(|(named, _)| Some(*named) == gpu)?;
            Some(*value)
        }
    }
}
