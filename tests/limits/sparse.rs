//! Sparse arrays own nothing; the memory behind their tiles is charged as long as it is there.

use crate::{INVALID_VALUE, LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, begin, in_use, with_limit};
use gpucap_tests::{Actor, Result, Run, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a sparse array owns nothing, and its tiles keep their memory charged", kept),
        trial("the last tile that is emptied refunds", emptied),
        trial("other memory in the same tiles takes their place", replaced),
        trial("a sparse array that ends gives up what was behind it", array_ends),
        trial("with a context end its sparse arrays", context_ends),
        trial("tiles that the driver did not change keep what they have", not_changed),
        trial("a batch that fails keeps what it may have mapped charged", half_a_batch),
    ]
}

const PAGE: u64 = 2 * MIB;
/// Tiles in a page.
const TILES: u64 = 32;

/// An array of two pages in slot `r`, and a page behind its first half that has no handle any more.
fn mapped(run: &Run) -> Result<Actor> {
    let mut actor = begin(run)?;
    actor.expect(&[
        (&format!("sparse r {}", 2 * TILES), SUCCESS),
        (&format!("create a {PAGE} 0"), SUCCESS),
        (&format!("tiles r a 0 {TILES}"), SUCCESS),
        ("drop a", SUCCESS),
    ])?;
    in_use(run, PAGE)?;
    Ok(actor)
}

fn kept() -> Result {
    let run = with_limit(&PAGE.to_string())?;
    let mut actor = mapped(&run)?;
    actor.expect(&[("alloc b 1", OUT_OF_MEMORY)])
}

fn emptied() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = mapped(&run)?;
    actor.expect(&[
        (&format!("empty r 1 {}", 2 * TILES - 1), SUCCESS),
        (&format!("tiles r a 0 {TILES}"), INVALID_VALUE), // no such handle
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("empty r 0 1", SUCCESS)])?;
    in_use(&run, 0)
}

fn replaced() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = mapped(&run)?;
    actor.expect(&[
        (&format!("create b {PAGE} 0"), SUCCESS),
        (&format!("tiles_ptsz r b 1 {TILES}"), SUCCESS),
        ("drop b", SUCCESS),
    ])?;
    in_use(&run, 2 * PAGE)?;
    actor.expect(&[("empty r 0 1", SUCCESS)])?;
    in_use(&run, PAGE)?;
    actor.expect(&[(&format!("empty r 1 {TILES}"), SUCCESS)])?;
    in_use(&run, 0)
}

fn array_ends() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_FAIL", "cuArrayDestroy:719@1");
    let mut actor = mapped(&run)?;
    actor.expect(&[("free-array r", 719)])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("free-array r", SUCCESS)])?;
    in_use(&run, 0)
}

fn context_ends() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = mapped(&run)?;
    actor.expect(&[("release 0", SUCCESS)])?;
    in_use(&run, 0)
}

fn not_changed() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_FAIL", "cuMemMapArrayAsync:719@2");
    let mut actor = mapped(&run)?;
    actor.expect(&[(&format!("empty r 0 {TILES}"), 719)])?;
    in_use(&run, PAGE)?;
    actor.expect(&[(&format!("empty r 0 {TILES}"), SUCCESS)])?;
    in_use(&run, 0)
}

fn half_a_batch() -> Result {
    let run = with_limit(&(2 * PAGE).to_string())?;
    let mut actor = mapped(&run)?;
    actor.expect(&[
        (&format!("create b {PAGE} 0"), SUCCESS),
        // The driver has carried out the first map, in place of the one before.
        (&format!("tiles-and-bad r b 0 {TILES}"), INVALID_VALUE),
        ("drop b", SUCCESS),
    ])?;
    in_use(&run, 2 * PAGE)?;
    actor.expect(&[("alloc c 1", OUT_OF_MEMORY)])?;
    // What such a batch empties is not known to be empty; what is emptied afterwards is.
    actor.expect(&[(&format!("empty-and-bad r 0 {TILES}"), INVALID_VALUE)])?;
    in_use(&run, 2 * PAGE)?;
    actor.expect(&[(&format!("empty r 0 {TILES}"), SUCCESS)])?;
    in_use(&run, 0)
}
