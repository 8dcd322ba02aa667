//! `gpucap metrics`: what [`status`] shows, for Prometheus and all that reads OpenMetrics.
//!
//! Printed once, or served over HTTP. As in `status`, nothing is reaped or changed, and no state is kept between two
//! scrapes: the counters are those of the ledgers. With [`sampling`] it also reads the driver's samples of processes, and
//! publishes usage pages.

mod address;
mod excess;
mod rounding;
mod runs;
mod sampling;
mod serve;

use super::status;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::node::inputs;
use crate::terminal::output;
use address::Address;
use gpucap_plan::Node;
use sampling::Sampling;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;

const AFTER: &str = "\
As root on the host: all limited containers, and runs. The page `metrics` of the documentation has the names, which do
not change.

Exit status: 0, also if there is nothing to show; 1 if it cannot listen.

Examples:
  gpucap metrics
  gpucap metrics --listen :9744";

/// The words behind `gpucap metrics`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// Serve /metrics there until stopped (:PORT: each address of this machine); without it, print the metrics once
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<Address>,
    /// Read the driver's samples of processes too: for metrics of containers without a compute limit, for usage pages of
    /// processes that publish none, and to compare what containers had with their limits (`sampled_excess` of the node
    /// configuration holds those back that had more)
    #[arg(long, requires = "listen")]
    sample: bool,
    /// Command prefix with which to start `gpucap-driver`, where this process may not open the GPUs itself
    #[arg(
        long,
        value_name = "WORDS",
        requires = "sample",
        default_value = "",
        hide_default_value = true
    )]
    through: String,
    /// The node's configuration: where the hook keeps what it knows of containers
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Prints them, or serves them until it is stopped.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let first = inputs::node_or_default(&options.config)?;
    let Some(address) = &options.listen else {
        output::print(&status::metrics(&first, &|_, _| None, BTreeMap::new()))?;
        return Ok(Exit::OK);
    };
    let listening = address.bind().and_then(|socket| {
        let address = socket.local_addr()?;
        Ok((socket, address))
    });
    let (socket, address) =
        listening.map_err(|why| Error::Listen { address: address.to_string(), why })?;
    output::notice(format!("metrics: http://{address}{}", serve::PATH));
    let sampling = &Sampling::default();
    thread::scope(|scope| {
        if options.sample {
            let through: Vec<String> =
                options.through.split_whitespace().map(str::to_owned).collect();
            scope.spawn(move || sampling.follow(&options.config, &through));
        }
        // It may change while this serves.
        serve::serve(&socket, || {
            let node = inputs::node_or_default(&options.config).unwrap_or_default();
            status::metrics(&node, &|budget, gpu| sampling.of(budget, gpu), sampling.unattributed())
        });
    });
    Ok(Exit::OK)
}
