//! Who says what share a program has, and of which card.

use crate::share::{held_to, spending};
use crate::{lasts, under};
use gpucap_core::units::Share;
use gpucap_tests::{Driver, Program, Result, Run, Stop, World, limits_text, trial};
use libtest_mimic::Trial;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a profile is a number of sevenths of the time", profile),
        trial("a share of another card holds no program up on this one", another_card),
        trial("the lower of limits file and environment holds", file_and_environment),
        trial("a limits file at 100 % holds no program up", full),
        trial("a share that the node lowers in the mean time holds", lowered),
    ]
}

/// What a machine that has other work still lets a program do, in percent of the card: more than the share that it would
/// be held to by mistake.
const HARDLY_HELD_UP: f64 = 20.0;

fn spender() -> Result<Run> {
    let program = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    Ok(spending(World::with_shim(Driver::Stub)?.run(&program)?, &["k_2ms", "16", "3000"]))
}

fn profile() -> Result {
    held_to(&spender()?.env("GPU_PROFILE", "2g.20gb"), 200.0 / 7.0)
}

fn another_card() -> Result {
    let run =
        spending(under("1=10", "share")?, &["k_2ms", "16", "2000"]).env("STUB_GPU_COUNT", "2");
    not_held_up(&run)
}

fn file_and_environment() -> Result {
    let file = limits_text("gpu=*\ncore=30\n");
    held_to(&spender()?.limits_file(&file)?.env("GPU_CORE_PCT", "90"), 30.0)?;
    held_to(&spender()?.limits_file(&file)?.env("GPU_CORE_PCT", "10"), 10.0)
}

fn full() -> Result {
    not_held_up(&spender()?.limits_file(&limits_text("gpu=*\ncore=100\n"))?)
}

/// The page beside the limits file says 20 % while the program runs; in its first quarter it says nothing.
fn lowered() -> Result {
    let run = spender()?.limits_file(&limits_text("gpu=*\ncore=100\n"))?;
    let mut page = vec![0; 4096];
    page[..8].copy_from_slice(b"gpucapLV");
    page[8] = 1;
    page[64..80].fill(0xff);
    let path = run.directory().join("limits/live");
    std::fs::write(&path, page)?;
    let other = run.clone();
    let running = std::thread::spawn(move || held_to(&other, 20.0));
    // The first look at the page that can be seen from here: the ledger has an owner.
    while run.launches().unwrap_or(0) == 0 && !running.is_finished() {
        std::thread::yield_now();
    }
    let page = OpenOptions::new().write(true).open(path)?;
    let share = u64::from(Share::DENOMINATOR) / 5;
    page.write_all_at(&share.to_le_bytes(), 64 + 24)?;
    running.join().map_err(|_| Stop::fail("a thread ended badly"))?
}

fn not_held_up(run: &Run) -> Result {
    let output = run.output()?.success()?;
    lasts(&output.to_string(), crate::share::share(&output)?, HARDLY_HELD_UP..=100.0)
}
