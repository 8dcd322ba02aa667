//! The parts of the compute limit by themselves. `bench/src/accuracy` measures how exactly they hold a share together.

mod admission;
mod allowance;
mod bucket;
mod charging;
mod costs;
mod dead;
mod desk;
mod example;
mod gang;
mod late;
mod late_reports;
mod lending;
mod meter;
mod protocol;
mod queues;
mod settlement;
mod spacing;
mod timeline;
mod turns;
mod unknown;
mod waits;
mod watch;
