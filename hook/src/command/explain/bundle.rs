//! `gpucap explain BUNDLE`: what the hook would do with a container, and which source said what.
//!
//! It asks the planner as the hook does, and applies nothing. `--state` has what a runtime would say on the hook's
//! standard input; without it, the annotations are those of `config.json`.

mod json;
mod text;

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::node::inputs::{self, Inputs};
use crate::terminal::output;
use gpucap_plan::{Plan, State, decide};
use std::path::Path;

/// Prints the plan for the container of this bundle, on a node with this configuration; as text
/// for people, or as JSON.
pub(super) fn execute(
    bundle: &Path,
    state: Option<&Path>,
    config: &Path,
    json: bool,
) -> Result<Exit> {
    let state = state.map(read_state).transpose()?;
    let gathered = Inputs::of_bundle(config, bundle, state).map_err(Error::Container)?;
    let decision = decide(&gathered.sources());
    output::print(&match json {
        false => text::render(&decision, bundle),
        true => json::render(&decision),
    })?;
    Ok(match decision.plan {
        Plan::Limits(_) => Exit::OK,
        Plan::NotAsked => Exit::NOT_LIMITED,
        Plan::Refuse(_) => Exit::BROKEN,
    })
}

fn read_state(path: &Path) -> Result<State> {
    let bytes = inputs::read(path).map_err(|why| Error::File { path: path.to_owned(), why })?;
    State::parse(&bytes).map_err(Error::Container)
}
