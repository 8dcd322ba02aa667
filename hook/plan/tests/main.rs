//! The plan as its users know it: from documents to limits.
//!
//! * [`documents`]: what others wrote is read leniently, what the administrator wrote strictly.
//! * [`golden`]: what each convention means, case by case.
//! * [`properties`]: what holds for any container.

mod case;
mod documents;
mod golden;
mod properties;
