//! Where memory of a pool was freed: it is free once the stream has come there.
//!
//! Only needed once the pool is destroyed: until then the driver says what it holds. An entry is a stream of a context;
//! one that cannot be asked for any more (it was destroyed, or is a thread's own) stands for the whole context.

use gpucap_abi::cuda::{CUcontext, CUstream};

/// The streams of one pool, each once.
#[derive(Default)]
pub(super) struct Frees(Vec<ContextStream>);

/// A stream of a context, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextStream {
    context: u64,
    /// `None`: any of the context.
    stream: Option<u64>,
}

/// From this many streams on, the context is remembered for all of them.
const MOST: usize = 16;
/// `CU_STREAM_PER_THREAD`: another stream for each thread that says it.
const PER_THREAD: u64 = 2;

impl ContextStream {
    /// A stream, as a call in this context names it.
    pub(crate) fn new(context: CUcontext, stream: CUstream, per_thread: bool) -> Self {
        let stream = stream.address();
        let is_own = stream == PER_THREAD || (per_thread && stream == 0);
        Self { context: context.address(), stream: (!is_own).then_some(stream) }
    }

    /// The context and stream to be asked; `None` if only the whole context says anything.
    pub(super) fn stream(self) -> Option<(CUcontext, CUstream)> {
        let stream = CUstream::from_address(self.stream?);
        Some((CUcontext::from_address(self.context), stream))
    }
}

impl Frees {
    pub(super) fn add(&mut self, freed: ContextStream) {
        let whole = ContextStream { stream: None, ..freed };
        if self.0.contains(&freed) || self.0.contains(&whole) {
            return;
        }
        if self.0.len() < MOST {
            self.0.push(freed);
            return;
        }
        self.0.retain(|known| known.context != freed.context);
        self.0.push(whole);
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = ContextStream> {
        self.0.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// All work of a stream is done.
    pub(super) fn done(&mut self, freed: ContextStream) {
        self.0.retain(|known| *known != freed);
    }

    /// All work of a context is done.
    pub(super) fn context_done(&mut self, context: u64) {
        self.0.retain(|known| known.context != context);
    }

    /// A stream is about to end: its work goes on, and its handle may be another one's.
    pub(super) fn stream_ends(&mut self, stream: u64) {
        for known in self.0.iter_mut().filter(|known| known.stream == Some(stream)) {
            known.stream = None;
        }
        let mut seen: Vec<ContextStream> = Vec::new();
        self.0.retain(|known| {
            !seen.contains(known) && {
                seen.push(*known);
                true
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_stream(context: u64, stream: u64) -> ContextStream {
        ContextStream::new(CUcontext::from_address(context), CUstream::from_address(stream), false)
    }

    #[test]
    fn each_stream_is_remembered_once_until_it_is_done() {
        let mut frees = Frees::default();
        [in_stream(64, 128), in_stream(64, 192), in_stream(64, 128)]
            .into_iter()
            .for_each(|it| frees.add(it));
        frees.done(in_stream(64, 128));
        assert_eq!(frees.streams().collect::<Vec<_>>(), [in_stream(64, 192)]);
    }

    #[test]
    fn a_stream_that_ends_and_a_thread_s_own_stand_for_their_context() {
        let mut frees = Frees::default();
        frees.add(in_stream(64, 128));
        frees.stream_ends(128);
        frees.done(in_stream(64, 128)); // another stream of that handle
        assert!(!frees.is_empty());
        frees.context_done(64);
        assert!(frees.is_empty());
        assert!(in_stream(64, PER_THREAD).stream().is_none());
        let null = CUstream::from_address(0);
        assert!(ContextStream::new(CUcontext::from_address(64), null, true).stream().is_none());
    }

    #[test]
    fn of_too_many_streams_the_context_is_remembered() {
        let mut frees = Frees::default();
        for stream in 0..100 {
            frees.add(in_stream(64, 128 + stream));
        }
        assert!(frees.streams().count() <= MOST);
        frees.context_done(64);
        assert!(frees.is_empty());
    }
}
