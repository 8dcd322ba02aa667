//! What a runtime says over the Node Resource Interface (NRI), and what a plugin answers.
//!
//! containerd (1.7 and later) and CRI-O ask their plugins before they make a container. [`Session`] is one connection:
//! bytes in, bytes out. Of a container it makes a [`Creation`], which the caller plans for and answers with an
//! [`Adjustment`] or a refusal.
//!
//! * [`frame`]: connections in one stream of bytes, messages in each of them.
//! * [`message`]: the protocol's messages, and their fields, as far as they are used.
//! * [`creation`]: a container as the planner's input, and the additions to it.
//!
//! Pure: sockets, files and time are the caller's. No bytes make it panic, and however they are cut it holds no more than
//! one message of each connection, of at most [`frame::LONGEST`] bytes.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod creation;
pub mod frame;
pub mod message;
mod session;

pub use creation::{Adjustment, Creation};
pub use session::{Answer, Name, NameError, Refused, Session};
