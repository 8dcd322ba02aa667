//! What a source of limits may look at: the documents of one container, read.
//!
//! Put together once for a decision. A reader of `convention` sees the environment in one of its readings, so that it
//! need not know that a variable can be set twice.

use std::collections::BTreeMap;

use crate::document::card::Card;
use crate::document::container::Container;
use crate::document::env::Reading;
use crate::document::identity::ContainerIdentity;
use crate::document::node::Node;
use crate::document::node_file::NodeFile;

/// The facts of one container.
#[derive(Clone)]
pub(crate) struct Facts<'a> {
    pub(crate) env: &'a Reading<'a>,
    pub(crate) annotations: &'a BTreeMap<String, String>,
    pub(crate) cards: &'a [Card],
    pub(crate) node: &'a Node,
    pub(crate) identities: &'a [ContainerIdentity],
    pub(crate) allocations: &'a [Vec<u8>],
    pub(crate) checkpoint: NodeFile<'a>,
    pub(crate) claims: NodeFile<'a>,
    pub(crate) container: &'a Container,
}
