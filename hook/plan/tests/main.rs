//! The plan as its users know it: from documents to limits.
//!
//! * [`allowed`]: what a plan lets a container use.
//! * [`asked`]: what the container said itself goes with the limits.
//! * [`calibration`]: what was measured of the cards, and what comes of it.
//! * [`documents`]: what others wrote is read leniently, what the administrator wrote strictly.
//! * [`fuzz`]: the entries of the fuzz targets, which [`properties`] calls with random bytes.
//! * [`golden`]: what each convention means, case by case.
//! * [`properties`]: what holds for any container.

mod allowed;
mod asked;
mod calibration;
mod case;
mod documents;
#[path = "../../fuzz/src/planner.rs"]
#[expect(unreachable_pub, reason = "part of a crate for the fuzzer")]
mod fuzz;
mod golden;
mod properties;
