//! The parts of the compute cap by themselves. How exactly they hold a share together, `bench/src/accuracy` tells.

mod batch;
mod bucket;
mod costs;
mod desk;
mod meter;
mod party;
mod queues;
mod settlement;
mod spacing;
mod turns;
