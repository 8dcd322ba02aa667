//! `gpucap-dra`: publishes the cards of a node to Kubernetes' own scheduler, and prepares what it gives.
//!
//! A DRA driver (Dynamic Resource Allocation, Kubernetes 1.36 and later): each card is one device of a ResourceSlice of
//! which several claims may have parts, memory and time. For a claim that the kubelet wants prepared, a CDI device is
//! written whose hook holds its containers to their part ([`gpucap_plan::Slice`]). The hook enforces; nothing here is in
//! the path of a container or of a call of the driver, and a container goes on without this program.
//!
//! It runs as root on the node and is asked by the kubelet alone. What cannot be done is refused in one line.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod api;
mod cards;
mod cdi;
mod checkpoint;
mod claim;
mod devices;
mod driver;
mod error;
mod files;
mod known_cards;
mod log;
mod options;
mod quantity;
mod rounds;

use crate::api::Server;
use crate::cards::Program;
use crate::checkpoint::Checkpoint;
use crate::driver::{Driver, Findings, Kept};
use crate::error::{Error, Result};
use crate::known_cards::KnownCards;
use crate::options::Options;
use crate::rounds::{Rival, Rounds};
use clap::Parser;
use gpucap_kubelet::message::DeviceHealths;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, watch};

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(options)),
        Err(why) => Err(Error::file(Path::new("/"))(why)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            log::line(why);
            ExitCode::FAILURE
        }
    }
}

/// Runs until the node's init or the kubelet ends it.
async fn run(options: Options) -> Result {
    let server = Server::new(options.api.as_deref(), &options.node, &options.name).await?;
    let directory = options.directory();
    let sockets = options.sockets();
    let checkpoint = Checkpoint::open(sockets.directory().join("checkpoint.json"))?;
    let claimed = checkpoint.cards();
    let kept = Mutex::new(Kept::restore(checkpoint, directory.clone()));
    let (known, cards) = KnownCards::open(sockets.directory().join("cards"));
    // The kubelet's calls are answered before the first round has asked.
    let rival = Rival::Unknown;
    let (findings, found) = watch::channel(Findings { cards, refusal: rival.refusal() });
    let (healths, health) = watch::channel(DeviceHealths::default());
    let mut rounds = Rounds {
        program: Program {
            words: options.asks.clone(),
            libraries: options.driver_libraries.clone(),
        },
        server: server.clone(),
        directory,
        pool: options.node.clone(),
        interval: options.interval(),
        known,
        claimed: Some(claimed),
        findings,
        healths,
        rival,
        said: Default::default(),
    };
    // Before the first call: a claim of a card that is not known yet would be refused.
    rounds.refresh_cards().await;
    let driver = Driver {
        name: options.name.clone(),
        pool: options.node.clone(),
        card_kind: options.card_kind(),
        server,
        findings: found,
        kept,
    };
    let signals = || {
        Ok::<_, std::io::Error>((
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        ))
    };
    let (mut terminate, mut interrupt) = signals().map_err(Error::file(Path::new("/")))?;
    let ended = tokio::select! {
        ended = sockets.serve(Arc::new(driver), health) => ended.map_err(Error::from),
        () = rounds.run() => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    sockets.remove();
    ended
}
