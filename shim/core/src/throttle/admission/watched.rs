//! Whether anything looks at what is in flight between the calls of the program. Where nothing does, or did for a while, each
//! launch is measured by itself.

/// What is known of that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watched {
    is_missing: bool,
    measures_each_until: u64,
}

impl Watched {
    /// Sets whether anything does. Returns whether that is new.
    pub(super) const fn set(&mut self, watched: bool) -> bool {
        core::mem::replace(&mut self.is_missing, !watched) == watched
    }

    /// Returns whether nothing does.
    pub(super) const fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Nothing did: each launch is measured until this time.
    pub(super) fn measure_each_until(&mut self, until: u64) {
        self.measures_each_until = self.measures_each_until.max(until);
    }

    /// Returns whether each launch is.
    pub(super) const fn measures_each(&self, now: u64) -> bool {
        self.is_missing || now < self.measures_each_until
    }
}
