//! `gpucap-demo`: an ordinary program of the CUDA driver and NVML.
//!
//! It knows nothing of gpucap and looks its functions up as any program does, so that `gpucap demo` can show what a
//! program sees and gets. Alone it prints the card, the way a person would look at it; with `--table` only what
//! `nvidia-smi` would show, without a context; with `--obey` it does what standard input says, line by line:
//!
//! ```text
//! alloc BYTES    ok | CODE NAME
//! info           ok TOTAL FREE
//! ```

mod cuda;
mod library;
mod nvml;

use cuda::Cuda;
use library::Result;
use nvml::Nvml;
use std::io::{BufRead, Write, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let word = std::env::args().nth(1);
    let outcome = match word.as_deref() {
        None => card(),
        Some("--table") => table(),
        Some("--obey") => obey(),
        Some(word) => Err(format!("{word}: only --table and --obey are known").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpucap-demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the driver says of its first device, and NVML of all.
fn card() -> Result {
    let cuda = Cuda::start()?;
    let (total, free) = cuda.info()?;
    let mut out = stdout().lock();
    writeln!(out, "CUDA  {}", cuda.name()?)?;
    writeln!(out, "      {} MiB in all, {} MiB free", mib(total), mib(free))?;
    out.flush()?;
    match table() {
        // A container may well have CUDA without NVML.
        Err(error) => Ok(writeln!(out, "NVML  {error}")?),
        Ok(()) => Ok(()),
    }
}

/// A line for each device, as `nvidia-smi` has it.
fn table() -> Result {
    const LINE: &str = "+-----+----------------------------+-----------------------+";
    let cards = Nvml::start()?.cards()?;
    let mut out = stdout().lock();
    writeln!(out, "{LINE}\n| GPU | Name                       |          Memory-Usage |\n{LINE}")?;
    for (index, card) in cards.iter().enumerate() {
        let (used, total) = (mib(card.used), mib(card.total));
        let name: String = card.name.chars().take(26).collect();
        writeln!(out, "| {index:>3} | {name:<26} | {used:>6}MiB / {total:>6}MiB |")?;
    }
    Ok(writeln!(out, "{LINE}")?)
}

/// Executes orders until standard input ends.
fn obey() -> Result {
    let cuda = Cuda::start()?;
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        let mut words = line.split(' ');
        match (words.next(), words.next().map(str::parse)) {
            (Some("alloc"), Some(Ok(bytes))) => match cuda.alloc(bytes) {
                Ok(()) => writeln!(out, "ok")?,
                Err(code) => writeln!(out, "{code} {}", cuda.error_name(code))?,
            },
            (Some("info"), None) => {
                let (total, free) = cuda.info()?;
                writeln!(out, "ok {total} {free}")?;
            }
            _ => return Err(format!("{line:?} is not something to do").into()),
        }
        out.flush()?;
    }
    Ok(())
}

const fn mib(bytes: u64) -> u64 {
    bytes >> 20
}
