//! Leases (`fcntl(2)`, `F_SETLEASE`): the owner of a file may keep others from opening it, again and again. In a container that is
//! each process with the user of the host's root.
//!
//! Files that more than one container sees belong to no user in any of them, where the kernel can do that. What a container can
//! do to its own files keeps the node from nothing.

use crate::container::Container;
use crate::excess::{self, had};
use crate::image::add;
use crate::peers::{shell, start};
use crate::runtime::Runtime;
use crate::sampled::{MORE, POINTS, Sampled, share_with};
use crate::shares::try_limit;
use crate::{expect, trials_of};
use gpucap_tests::{Program, Result, Run, Stop};
use libtest_mimic::Trial;
use std::fs;
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("no container keeps another from its pages by leases", peer),
        ("no lease keeps the node from holding a container back, or from its limits", own),
    ])
}

fn container(node: &Sampled) -> Result<Container> {
    let container = excess::container(node, "hold")?;
    add(&container.root(), &Program::new("leases").build()?, "leases")?;
    Ok(container)
}

/// A process that takes leases on these files for this time, as long as the image's shell finds them.
fn leases(container: &Container, kind: char, seconds: u32, files: &str) -> Result<Run> {
    container.exec(&[], &["sh", "-c", &format!("exec /leases {kind} {seconds} {files}")])
}

/// Whether the kernel can have the files of a file system in memory belong to no user: Linux 6.3, where it allows user
/// namespaces.
fn has_mapped_users() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(['.', '-']).map_while(|it| it.trim().parse::<u32>().ok());
    let is_new = [numbers.next(), numbers.next()] >= [Some(6), Some(3)];
    Ok(is_new && Command::new("unshare").args(["--user", "true"]).status()?.success())
}

fn peer(runtime: Runtime) -> Result {
    if !has_mapped_users()? {
        return Err(Stop::skip("the kernel maps no users of a file system in memory"));
    }
    let node = Sampled::new(runtime)?;
    let (bad, good) = (container(&node)?, container(&node)?);
    let (mut first, mut second) = (start(&bad)?, start(&good)?);
    let (said, got) = scope(|scope| {
        let said = scope.spawn(|| leases(&bad, 'w', 6, "/.gpucap/pages/*")?.output()?.success());
        sleep(Duration::from_secs(1));
        let debug = ["--env", "GPUCAP_LOG=debug"];
        let got = share_with(&good, &debug, &["k_2ms", "8", "3000"]);
        (said.join(), got)
    });
    let said = said.map_err(|_| Stop::fail("it panicked"))??.stdout;
    let files: Vec<&str> = said.lines().filter(|line| line.starts_with('/')).collect();
    let are_closed = files.iter().all(|line| line.ends_with(&format!("={}", libc::EACCES)));
    expect(files.len() == 6 && are_closed && said.contains("taken=0\n"), || said.clone())?;
    let got = got?;
    println!("{got:.1} of 10 % beside a container that takes leases");
    expect(got <= 10.0 + MORE, || format!("{got:.1} %"))?;
    if got < 10.0 - POINTS {
        return Err(Stop::late(format!("{got:.1} of 10 %")));
    }
    second.end()?;
    first.end().map(drop)
}

fn own(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = container(&node)?;
    let mut first = start(&container)?;
    let sampler = node.sampler(&container)?;
    // It has them before the sampler looks again.
    let files =
        "/.gpucap/held /.gpucap/pages/*.held /.gpucap/pages/*.share /.gpucap/live /.gpucap/limits";
    let (said, held, limited) = scope(|scope| {
        let said = scope.spawn(|| leases(&container, 'r', 22, files)?.output()?.success());
        sleep(Duration::from_secs(1));
        let began = Instant::now();
        let limited = try_limit(&container, &node.node, &["--cores", "9"]);
        let limited = limited.map(|output| (began.elapsed(), output));
        let held = had(&container, &["1000", "15000"]);
        (said.join(), held, limited)
    });
    let said = said.map_err(|_| Stop::fail("it panicked"))??.stdout;
    let held = held?;
    println!("{held:.1} of 10 % under leases");
    expect(held <= 60.0, || {
        format!("{held:.1} %\n{said}{}", sampler.metrics().unwrap_or_default())
    })?;
    let (took, output) = limited?;
    expect(took < Duration::from_secs(5), || format!("{took:?}: {output}"))?;
    expect(output.stderr.contains("has a lease on it"), || output.to_string())?;
    let after = try_limit(&container, &node.node, &["--cores", "9"])?;
    after.success()?;
    shell(&container, "true")?;
    first.end().map(drop)
}
