//! Tests of the variables.
