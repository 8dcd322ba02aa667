//! `gpucap top`: what [`status`] shows, renewed on a terminal until it is ended.
//!
//! Each refresh is one look of `status`; a [`State`] keeps what two of them have to be compared for. As in `status`,
//! nothing is reaped or changed. `--once` prints one sample as text.

mod detail;
mod draw;
mod order;
mod rates;
mod row;
mod state;
mod table;

use super::status;
use super::status::view::Status;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::node::inputs;
use crate::sys;
use crate::terminal::output;
use crate::terminal::screen::{Event, Screen};
use crate::terminal::style;
use gpucap_plan::Node;
use order::Order;
use state::State;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

const AFTER: &str = "\
As root on the host: all limited containers, and runs. In a container: that container. Else: the user's runs.
One row for each container or run and each GPU. MEMORY is what its processes hold, of the limit. TIME is the GPU time
that it used in the last interval, of the compute limit; it is measured only where time is limited. Work
counts when it ends, so TIME may be above 100%. WAIT is how many launches waited for the compute limit, in the mean.
REFUSED counts allocations, PROCS processes. HISTORY is TIME at the last refreshes; its full height is the limit.
Keys: q quits, arrows select, Enter shows one container, Esc goes back, s sorts by the next column, r reverses, / searches.
A narrow terminal shows fewer columns.

Exit status: 0; 1 if there is no such NAME, or without a terminal if --once is not given.

Examples:
  gpucap top
  gpucap top default/train --interval 0.5
  gpucap top --once --sort memory
  gpucap top --once --json | jq '.ledgers[].devices[].time.share_percent'";

/// The words behind `gpucap top`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// Only this, as for `gpucap status`: a container, its id or the beginning of it, NAMESPACE/POD, a run, a PID, or a GPU
    name: Option<String>,
    /// Seconds between two readings, from 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1")]
    interval: Interval,
    /// Sort by this column
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    sort: Order,
    /// Print the table once, from two readings that are one interval apart, and exit
    #[arg(long)]
    once: bool,
    /// Print it as the JSON of `gpucap status`, with the share of time of the interval
    #[arg(long, requires = "once")]
    json: bool,
    /// The node's configuration: where the hook keeps what it knows of containers
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// The time between two readings.
#[derive(Clone, Copy, Debug)]
struct Interval(Duration);

impl FromStr for Interval {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let seconds = text.parse::<f64>().ok().filter(|it| (0.1..=3600.0).contains(it));
        let time = seconds.map(|seconds| Self(Duration::from_secs_f64(seconds)));
        time.ok_or("not a number of seconds from 0.1 to 3600")
    }
}

/// Shows it until the user ends it, or prints it once.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    if !options.once && !Screen::is_there() {
        return Err(Error::NoTerminal);
    }
    let mut view = View {
        options,
        node: inputs::node_or_default(&options.config)?,
        state: State::new(options.sort),
    };
    // What is wrong with the words is said before the terminal is taken.
    view.read()?;
    if options.once {
        thread::sleep(options.interval.0);
        view.read()?;
        output::print(&view.once())?;
    } else {
        let mut screen = Screen::open().map_err(Error::Terminal)?;
        view.show(&mut screen);
    }
    Ok(Exit::OK)
}

struct View<'a> {
    options: &'a Options,
    node: Node,
    state: State,
}

impl View<'_> {
    /// Takes a picture of what is to be shown.
    fn read(&mut self) -> Result {
        let (at_ns, mut status) = (sys::monotonic_ns(), status::all(&self.node));
        let cards = inputs::cards();
        if let Some(name) = &self.options.name {
            let none = || Error::NotShown { command: "top", name: name.clone() };
            status = status.chosen(name, &cards).ok_or_else(none)?;
        }
        self.state.take(status, cards, at_ns);
        Ok(())
    }

    /// Shows it until a key or a signal ends it, or the terminal ends.
    fn show(&mut self, screen: &mut Screen) {
        let (interval, colored) = (self.options.interval.0, screen.is_colored());
        let mut next = Instant::now() + interval;
        loop {
            let drawn = screen.draw(|frame| draw::frame(frame, &mut self.state, interval, colored));
            // A terminal that has ended takes nothing.
            if drawn.is_err() {
                return;
            }
            match screen.next(next.saturating_duration_since(Instant::now())) {
                Event::Ended => return,
                Event::Keys(keys) => {
                    if !keys.into_iter().all(|key| self.state.press(key)) {
                        return;
                    }
                }
                Event::Resized | Event::Nothing => {}
            }
            if Instant::now() >= next {
                // What goes by the name may have ended, and may come again.
                if self.read().is_err() {
                    self.state.take(Status::default(), Vec::new(), sys::monotonic_ns());
                }
                next = Instant::now() + interval;
            }
        }
    }

    /// The sample of `--once`.
    fn once(&self) -> String {
        if self.options.json {
            return status::json::render(&self.state.status);
        }
        let mut text = status::table::remarks(&self.state.status);
        if !self.state.rows.is_empty() {
            text.insert(0, table::once(&self.state.rows, style::columns()));
        }
        text.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::rates::Counters;
    use super::row::Row;
    use super::*;
    use crate::command::status::text::tests::{raised, status as run};

    pub(super) const SECOND: u64 = 1_000_000_000;

    /// The container and the run that the manual shows.
    pub(super) fn status() -> Status {
        let mut both = run();
        both.ledgers.insert(0, raised().ledgers.remove(0));
        both.unused.clear();
        both.unreadable.clear();
        both
    }

    fn before() -> Status {
        let mut before = status();
        let device = &mut before.ledgers[0].devices[0];
        device.time.busy_ns -= SECOND / 4;
        device.waited_ns -= 3 * SECOND / 2;
        before
    }

    /// Two readings of them, one second apart.
    pub(super) fn state() -> State {
        let mut state = State::new(Order::default());
        state.take(before(), vec![], SECOND);
        state.take(status(), vec![], 2 * SECOND);
        state
    }

    /// The rows of the same, in the order of status.
    pub(super) fn sampled() -> Vec<Row> {
        let before = Counters::of(&before(), SECOND);
        let rates = Counters::of(&status(), 2 * SECOND).since(&before);
        row::rows(&status(), &rates, &[])
    }

    #[test]
    fn an_interval_is_bounded() {
        for text in ["0.1", "1", "3600", "2.5"] {
            assert!(text.parse::<Interval>().is_ok(), "{text}");
        }
        for text in ["0", "-1", "3601", "NaN", "inf", "", "1s"] {
            assert!(text.parse::<Interval>().is_err(), "{text}");
        }
    }
}
