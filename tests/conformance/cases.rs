//! At least one useful call for every row, written as commands for `tools/caller.c`. The program has called
//! `cuInit`, `nvmlInit_v2`, and has the primary context of device 0 (in slot `h`).

mod arrays;
mod code;
mod contexts;
mod copies;
mod fences;
mod general;
mod graphs;
mod memory;
mod nvml;
mod pools;
mod time;

/// The row, and what is called.
pub(crate) type Case = (&'static str, &'static [&'static str]);

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    let parts = [
        general::CASES,
        contexts::CASES,
        code::CASES,
        memory::CASES,
        pools::CASES,
        graphs::CASES,
        arrays::CASES,
        time::LAUNCHES,
        time::ORDER,
        nvml::CASES,
    ];
    [parts.concat(), copies::cases(), fences::cases()].concat()
}

/// Code as text, which any driver can compile: written without a blank, so that it is one word of a command.
macro_rules! kernels {
    () => {
        concat!(
            ".version\t6.0\t.target\tsm_70\t.address_size\t64",
            "\t.visible\t.global\t.u32\tvariable;",
            "\t.visible\t.global\t.attribute(.managed)\t.u32\tmanaged;",
            "\t.visible\t.entry\tkernel(){ret;}",
            "\t.visible\t.entry\tk_10us(){ret;}"
        )
    };
}
pub(crate) use kernels;

/// The same as a file in the program's directory.
pub(crate) const FILE: (&str, &str) = ("image.ptx", kernels!());

/// Buffer 0 as the properties of pinned memory or of a pool, not to be exported.
const PINNED: &str = "poke 0 0 8 1";
/// The same, to be exported as an open file.
const EXPORTABLE: &str = "poke 0 0 8 0x0000000100000001";
/// ... on device 0.
const DEVICE: &str = "poke 0 8 8 1";
