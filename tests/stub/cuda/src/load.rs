//! What happens when the library is loaded: the call that the real one makes.
//!
//! The constructors of the real libcuda 470 to 555 call `sched_get_priority_max` through a slot
//! that the loader binds, before any caller of `dlopen` gets its handle. Nothing else happens here.

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = loaded;

extern "C" fn loaded() {
    // SAFETY: it only looks up a constant of the system; any policy is a valid question.
    std::hint::black_box(unsafe { libc::sched_get_priority_max(libc::SCHED_RR) });
}
