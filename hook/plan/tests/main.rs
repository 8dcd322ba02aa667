//! The plan as its users know it: from documents to limits.
//!
//! * [`golden`]: what each convention means, case by case.

mod case;
mod golden;
