//! What a driver does for the kubelet.

use crate::message::{Claim, Device};
use std::fmt::Display;

/// What the kubelet asks of a driver. Any call may come any number of times, and several at once.
pub trait Plugin: Send + Sync + 'static {
    /// Why a claim fails: the kubelet shows it in the events of the pod, and asks again.
    type Error: Display + Send;

    /// The name of the driver, which classes and claims name.
    fn name(&self) -> &str;

    /// Prepares a claim, and returns its devices: no container of it starts before.
    ///
    /// # Errors
    /// It cannot be prepared. The other claims of the call are, all the same.
    fn prepare(
        &self,
        claim: &Claim,
    ) -> impl Future<Output = Result<Vec<Device>, Self::Error>> + Send;

    /// Undoes what was prepared for a claim; one that is not known is undone already.
    ///
    /// # Errors
    /// It cannot be undone.
    fn unprepare(&self, claim: &Claim) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// The kubelet has registered the plugin, or has a reason not to.
    fn registered(&self, outcome: Result<(), &str>);
}
