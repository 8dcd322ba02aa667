//! One connection to a runtime, from the first word to the last.
//!
//! The only place that reads and writes the socket. A runtime that accepts nothing, or sends nothing before it has
//! listed its containers, is disconnected: it may have died with the socket open, or be one that never asks.
//! Afterwards it may be silent for as long as no container is made.

use super::ready::Ready;
use crate::error::{Result, reason};
use crate::terminal::output;
use gpucap_nri::{Answer, Creation, Name, Session};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a runtime may be silent before it is ready, and how long it may take nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a connection ended.
#[derive(Debug)]
pub(super) struct End {
    /// It came so far that the runtime asked us.
    pub(super) was_ready: bool,
    /// What ended it.
    pub(super) why: String,
}

/// Answers a runtime until the connection ends.
///
/// # Errors
/// If the ready file cannot be made.
pub(super) fn serve(
    mut stream: UnixStream,
    name: &Name,
    plan: &dyn Fn(&Creation) -> Answer,
    ready: &Ready,
) -> Result<End> {
    let (mut session, greeting) = Session::open(name);
    let mut served = patient(&stream).and_then(|()| stream.write_all(&greeting));
    let mut was_ready = false;
    let mut bytes = [0; 16 << 10];
    let why = loop {
        let came = match served.and_then(|()| stream.read(&mut bytes)) {
            Ok(0) => break "the runtime closed the connection".into(),
            Ok(came) => came,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {
                served = Ok(());
                continue;
            }
            Err(why) => break reason_of(&why),
        };
        let said = match session.receive(&bytes[..came], &mut |creation| plan(creation)) {
            Ok(said) => said,
            Err(refused) => break format!("the runtime does not want the plugin: {}", refused.0),
        };
        served = stream.write_all(&said);
        if served.is_ok() && session.is_ready() != was_ready {
            was_ready = session.is_ready();
            ready.set(was_ready)?;
            if was_ready {
                served = stream.set_read_timeout(None);
                output::notice(format!("nri: {} asks {name}", session.runtime()));
            }
        }
    };
    ready.set(false)?;
    Ok(End { was_ready, why })
}

fn patient(stream: &UnixStream) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))
}

fn reason_of(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("the runtime did nothing for {} s", PATIENCE.as_secs())
        }
        _ => reason(why),
    }
}
