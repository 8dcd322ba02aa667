//! Tests of the limits file.
