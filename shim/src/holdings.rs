//! What this process holds: one table for each kind of object, with what was charged for it.
//!
//! A table charges and refunds through the [budget](crate::budget) and knows no other table, but where one kind of object
//! is made of another.

pub(crate) mod allocations;
pub(crate) mod code;
pub(crate) mod contexts;
pub(crate) mod graphs;
pub(crate) mod handles;
pub(crate) mod pools;
