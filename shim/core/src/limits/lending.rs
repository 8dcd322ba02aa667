//! Which part of a device's time a process may have, of what is given to it and of its own variables.
//!
//! Without a limits file the variables mean what they say; next to that of a run, as far as it says nothing of time. Next to one, the node has decided: its limit is what is given,
//! with what it lends, and a variable of the process can only lower it. A share or a most that the process sets lowers
//! both guarantee and most; beside a policy `burst` a share lowers the guarantee alone. A variable that the node knew of
//! is in the limit already, and so says nothing about lending.

use super::Limits;
use super::ask::Ask;
use super::device::DeviceFacts;
use crate::config::{Config, CorePolicy, GPU_CORE_POLICY, GPU_CORE_PRIORITY, Wish};
use crate::units::{ComputeLimit, Share};

impl Limits {
    /// The limit of a device's time: `given` is what the node gives, `inherited` what the variables say that it knew of,
    /// `own` what the others say.
    pub(super) fn time(
        &self,
        device: &DeviceFacts,
        given: Option<ComputeLimit>,
        inherited: Ask,
        own: Ask,
    ) -> Option<ComputeLimit> {
        let Some(file) = &self.file else { return wish(own, &self.config).limit() };
        let Some(given) = given else {
            // Not limited when the container started: the node has prepared no lending.
            let policies = if self.is_run { &self.config } else { &Config::default() };
            return wish(own.lower(inherited), policies).limit();
        };
        // Of a limit that lends nothing, a policy of the process makes none that does.
        let counts = given.borrows() || self.is_run;
        let policies = if counts { &self.config } else { &Config::default() };
        let (known, new) = (wish(inherited, &Config::default()), wish(own, policies));
        let is_named = |variable: &str| self.config.own_limits.contains(variable);
        // One that the node knew of may have been taken back since.
        let is_own_priority = new.is_low()
            && (new.priority != file.asked.core_priority || is_named(GPU_CORE_PRIORITY.name));
        let guarantee = |share| ComputeLimit::burst(share, Share::FULL);
        let share = if new.bursts() { guarantee } else { ComputeLimit::fixed };
        let bounds = [
            known.share.map(guarantee),
            known.most.map(ComputeLimit::fixed),
            new.share.map(share),
            new.most.map(ComputeLimit::fixed),
            is_own_priority.then_some(ComputeLimit::low_priority(Share::FULL)),
        ];
        let limit = bounds.into_iter().flatten().fold(given, ComputeLimit::lower);
        let is_own = new.policy != file.asked.core_policy || is_named(GPU_CORE_POLICY.name);
        if !given.borrows() || is_own && new.policy == Some(CorePolicy::Fixed) {
            let share = given.guaranteed().or_else(|| file.written_share(device));
            return Some(unlent(limit, share));
        }
        Some(limit)
    }
}

/// What variables ask for.
fn wish(ask: Ask, config: &Config) -> Wish {
    Wish {
        share: ask.compute.and_then(ComputeLimit::guaranteed),
        most: ask.core_max,
        policy: config.core_policy,
        priority: config.core_priority,
    }
}

/// The limit without what is lent. Of low priority, at most the share that is written for it.
fn unlent(limit: ComputeLimit, written: Option<Share>) -> ComputeLimit {
    let bound = limit.guaranteed().or(written).map(ComputeLimit::fixed);
    bound.map_or(limit, |bound| limit.lower(bound))
}
