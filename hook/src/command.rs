//! What the command can do: one module each, and the words by which it is called.

mod calibrate;
mod cdi;
mod check;
mod configure;
mod demo;
mod explain;
mod gc;
mod gpu;
mod help;
mod hook;
mod limit;
mod limit_request;
mod metrics;
pub(crate) mod nri;
mod pages;
mod run;
pub(crate) mod runtime;
mod status;
mod top;

use crate::error::Result;
use crate::exit::Exit;
use crate::terminal::output;
use crate::terminal::style::Color;
use clap::{CommandFactory, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  gpucap run --mem 4Gi --cores 30 python train.py
  gpucap status
  gpucap explain --pid 4242

Exit status: each command's --help has its own; include/gpucap.h has all of them.";

/// Limits the GPU memory and GPU time of programs and containers.
#[derive(Debug, Parser)]
#[command(name = "gpucap", bin_name = "gpucap", version, max_term_width = 100)]
#[command(after_help = EXAMPLES, after_long_help = variables(), help_template = template())]
pub(crate) struct Line {
    /// Colours in the output: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_possible_values = true, hide_default_value = true, display_order = 900)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program, and everything that it starts, under limits
    Run(run::Options),
    /// Show limits and usage of each container and process
    #[command(visible_aliases = ["ps", "ls"], alias = "list")]
    Status(status::Options),
    /// Show the status live, or one sample of it
    Top(top::Options),
    /// Print or serve the status in OpenMetrics format
    Metrics(metrics::Options),
    /// Show whether a process is limited, by what, and if not, why
    Explain(explain::Options),
    /// Demonstrate the limits, on this machine's GPU or on a stub driver
    Demo(demo::Options),
    /// Check whether the library can be loaded in an image
    Check(check::Options),
    /// Register the hook with a container engine
    Configure(configure::Options),
    /// Measure the memory of a CUDA context on each GPU, and test for limits of the driver
    Calibrate(calibrate::Options),
    /// Change the limits of a container or run that works
    Limit(limit::Options),
    /// Remove the state of containers that have ended, and unused ledgers
    Gc(gc::Options),
    /// Act as an OCI runtime wrapper: inject limits, then exec the next runtime
    Runtime(runtime::Options),
    /// Describe slices as CDI devices
    Cdi(cdi::Options),
    /// Act as an NRI plugin of containerd or CRI-O: set the limits for all programs in a container
    Nri(nri::Options),
    /// Print a completion script for a shell
    Completions(pages::Completions),
    /// Write a manual page for each command
    Man(pages::Man),
    #[command(hide = true)]
    Hook(hook::Options),
    /// Print the version
    #[command(hide = true)]
    Version,
}

/// The variables that the library reads, in a container or under `gpucap run`.
fn variables() -> String {
    let variables = gpucap_core::config::help().replace('\n', "\n  ");
    format!("{EXAMPLES}\n\n{}\n  {}", help::VARIABLES, variables.trim_end())
}

/// The help's form.
fn template() -> String {
    help::template(&Command::augment_subcommands(clap::Command::new("gpucap")))
}

impl Line {
    /// Whether the words are of `gpucap run`, as far as they can be understood.
    pub(crate) fn is_run() -> bool {
        let seen = Self::command().ignore_errors(true).try_get_matches();
        seen.is_ok_and(|seen| seen.subcommand_name() == Some(run::NAME))
    }

    /// Executes the command.
    pub(crate) fn execute(self) -> Result<Exit> {
        self.color.choose();
        match self.command {
            Command::Run(options) => run::execute(&options),
            Command::Status(options) => status::execute(&options),
            Command::Top(options) => top::execute(&options),
            Command::Metrics(options) => metrics::execute(&options),
            Command::Explain(options) => explain::execute(&options),
            Command::Demo(options) => demo::execute(&options),
            Command::Check(options) => check::execute(&options),
            Command::Configure(options) => configure::execute(&options),
            Command::Calibrate(options) => calibrate::execute(&options),
            Command::Limit(options) => limit::execute(&options),
            Command::Gc(options) => gc::execute(&options),
            Command::Runtime(options) => runtime::execute(&options),
            Command::Cdi(options) => cdi::execute(&options),
            Command::Nri(options) => nri::execute(&options),
            Command::Completions(options) => pages::complete(&options, Self::command()),
            Command::Man(options) => pages::describe(&options, Self::command()),
            Command::Hook(options) => hook::execute(options),
            Command::Version => output::print(&Self::command().render_version()).map(|()| Exit::OK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_of_one_piece() {
        Line::command().debug_assert();
    }

    #[test]
    fn each_command_documents_its_exit_status_and_has_an_example() {
        let line = Line::command();
        let seen = line.get_subcommands().filter(|command| !command.is_hide_set());
        let silent = seen.filter(|command| {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            [help::EXAMPLES, help::EXIT_STATUS].iter().any(|part| !help.contains(part))
        });
        let silent: Vec<_> = silent.map(clap::Command::get_name).collect();
        assert_eq!(silent, Vec::<&str>::new());
    }

    #[test]
    fn the_help_has_every_variable() {
        let help = Line::command().render_long_help().to_string();
        for row in gpucap_core::config::OPTIONS {
            assert!(help.contains(row.name) && help.contains(row.help), "{}", row.name);
        }
    }
}
