//! Whose a sampled process is, as processes and those that sample them come, end and are moved.
//!
//! A page of the node lowers what containers are charged, so it has to be about a process of no container, and about one
//! that runs: a number that another process has taken, a cgroup that a process has left and a page that is not written any
//! more are none of a container's gain.

use crate::container::Container;
use crate::image::add;
use crate::peers::{counts, start};
use crate::runtime::Runtime;
use crate::sampled::{MORE, POINTS, Sampled, share, share_with};
use crate::{expect, trials_of};
use gpucap_tests::{Actor, Program, Result, Stop};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("a page of a killed sampler counts for nothing, and goes with the next one", killed),
        ("a page of a stopped sampler goes with gc, and one of a running sampler stays", swept),
        ("a process of a container has no page by the number of one that ended", reused),
        ("a process that is moved into a container's cgroup has no page", moved_in),
        ("a process of a container that is moved out of its cgroup has no page", moved_out),
        ("a container borrows only what a sampled program leaves", lent),
        ("a process that cannot see the other containers borrows nothing from them", unseen),
    ])
}

/// What the node's pages say that processes have worked, in ns, in sum.
fn work(node: &Sampled) -> u64 {
    let pages = node.published().into_iter().filter_map(|link| {
        let page = fs::read(link).ok()?;
        // The first word of the first seat: each process has one GPU.
        let word = page.get(4096..4104)?.try_into().ok()?;
        Some(u64::from_le_bytes(word))
    });
    pages.sum()
}

/// Fails if a page appears while this lasts, or one that is there has more work after `settled`.
fn no_more_work(node: &Sampled, lasts: Duration) -> Result {
    let (since, before) = (Instant::now(), work(node));
    while since.elapsed() < lasts {
        let now = work(node);
        expect(now <= before, || format!("{now} ns, after {before}: {:?}", node.published()))?;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn killed(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let unmanaged = node.unmanaged()?;
    let sampler = node.sampler(&container)?;
    node.wait_for_pages(1)?;
    let left = node.published();
    drop(sampler);
    drop(unmanaged);
    // It has work in flight for ever.
    let alone = share(&container, &["k_5ms", "4", "4000"])?;
    println!("beside a page that is not written any more: {alone:.1} of 30 %");
    expect(node.published() == left, || "who removed it?".into())?;
    expect(alone <= 30.0 + MORE, || format!("{alone:.1} of 30 %"))?;
    let _unmanaged = node.unmanaged()?;
    let _next = node.sampler(&container)?;
    let since = Instant::now();
    while node.published() == left || node.published().is_empty() {
        expect(since.elapsed() < Duration::from_secs(10), || format!("{left:?} stays"))?;
        thread::sleep(Duration::from_millis(50));
    }
    // The container's, and that of the new process.
    let after = node.published();
    expect(after.len() == 1 && counts(&node.node) == [2, 1], || {
        format!("{left:?}, then {after:?}: {:?}", counts(&node.node))
    })?;
    first.end().map(drop)
}

fn swept(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let _unmanaged = node.unmanaged()?;
    let sampler = node.sampler(&container)?;
    node.wait_for_pages(1)?;
    let stays = || {
        expect(node.swept(&container)? == 0 && counts(&node.node) == [2, 1], || {
            format!("{:?}", node.published())
        })
    };
    stays()?;
    sampler.signal("STOP")?;
    stays()?;
    // As the kubelet and systemd end it.
    sampler.signal("TERM")?;
    sampler.signal("CONT")?;
    sampler.ended()?;
    expect(node.published().len() == 1, || "it leaves its page".into())?;
    let removed = node.swept(&container)?;
    let files = fs::read_dir(node.node.inside("run/pages/all"))?.count();
    // The container's page, its shares and its held page.
    expect(removed == 1 && node.published().is_empty() && files == 3, || {
        format!("{removed} removed, {files} files, {:?}", node.published())
    })?;
    expect(node.swept(&container)? == 0, || "it removes twice".into())?;
    first.end().map(drop)
}

/// The container shares the pid namespace of the machine, and may choose numbers in it.
fn reused(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?.with(|config| {
        if let Some(list) = config["linux"]["namespaces"].as_array_mut() {
            list.retain(|namespace| namespace["type"] != "pid");
        }
        for set in ["bounding", "effective", "permitted"] {
            if let Some(list) = config["process"]["capabilities"][set].as_array_mut() {
                list.push(json!("CAP_CHECKPOINT_RESTORE"));
            }
        }
    });
    let as_pid = Program::new("as_pid").build()?;
    add(&container.root(), &as_pid, "as_pid")?;
    let mut first = start(&container)?;
    let unmanaged = node.unmanaged()?;
    let sampler = node.sampler(&container)?;
    node.wait_for_pages(1)?;
    // Its page stays, without more work, until it ends.
    unmanaged.signal(libc::SIGSTOP)?;
    thread::sleep(Duration::from_secs(1));
    let pid = unmanaged.pid().to_string();
    let given = ["--env", "STUB_GPU_CONTEXT_MEM=1048576", "--env", "STUB_GPU_DIR=/card"];
    let run = container.exec(&given, &["/as_pid", &pid, "/share", "k_5ms", "4", "3000"])?;
    let run = thread::spawn(move || run.output());
    let before = work(&node);
    expect(before > 0, || format!("{:?}", node.published()))?;
    drop(unmanaged);
    let is_reused =
        || fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.starts_with(b"/share"));
    let since = Instant::now();
    while !is_reused() {
        expect(since.elapsed() < Duration::from_secs(10), || format!("{pid} is not taken"))?;
        thread::sleep(Duration::from_millis(1));
    }
    no_more_work(&node, Duration::from_millis(2500))?;
    expect(node.published().is_empty(), || format!("{:?}", node.published()))?;
    let output = run.join().map_err(|_| Stop::fail("a thread ended badly"))??.success()?;
    // It has worked all that time, and the driver says so.
    expect(output.number("all")? > 500_000_000, || output.to_string())?;
    let text = sampler.metrics()?;
    let seconds = crate::sampled::value(&text, "core_sampled_seconds_total").unwrap_or(0.0);
    expect(seconds > 0.3, || text.clone())?;
    first.end().map(drop)
}

/// The cgroups of a process, each as the file that takes members; without those at the root.
fn cgroups(pid: u32) -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let place = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (hierarchy, path) = (fields.next()?, fields.next()?.strip_prefix('/')?);
        let mounted = match hierarchy.strip_prefix("name=").unwrap_or(hierarchy) {
            "" if Path::new("/sys/fs/cgroup/unified").exists() => "unified",
            hierarchy => hierarchy,
        };
        (!path.is_empty()).then(|| Path::new("/sys/fs/cgroup").join(mounted).join(path))
    };
    Ok(text.lines().filter_map(place).map(|group| group.join("cgroup.procs")).collect())
}

/// The first process of the only container of a node.
fn first_process(node: &Sampled) -> Result<u32> {
    let links = fs::read_dir(node.node.inside("run/pages"))?.flatten();
    let names = links.map(|link| link.file_name().to_string_lossy().into_owned());
    let mut own = names.filter(|name| !name.contains('.'));
    let pid = own.find_map(|name| name.split_once('-')?.0.parse().ok());
    pid.ok_or_else(|| Stop::fail("no container has a page"))
}

/// A cgroup of the container that is none of the test's own.
fn cgroup(node: &Sampled) -> Result<PathBuf> {
    let own = cgroups(std::process::id())?;
    let groups = cgroups(first_process(node)?)?;
    let group = groups.into_iter().find(|group| !own.contains(group));
    group.ok_or_else(|| Stop::skip("the container is in the cgroups of the test"))
}

/// And stays without one when it is moved out again: what it has done there is the container's.
fn moved_in(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let group = cgroup(&node)?;
    let unmanaged = node.unmanaged()?;
    let _sampler = node.sampler(&container)?;
    node.wait_for_pages(1)?;
    fs::write(&group, unmanaged.pid().to_string())?;
    node.wait_for_pages(0)?;
    let outside = group.parent().and_then(Path::parent).unwrap_or(&group).join("cgroup.procs");
    fs::write(outside, unmanaged.pid().to_string())?;
    no_more_work(&node, Duration::from_secs(3))?;
    drop(unmanaged);
    first.end().map(drop)
}

/// Neither while it works in the container's cgroup nor afterwards.
fn moved_out(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let group = cgroup(&node)?;
    let _sampler = node.sampler(&container)?;
    let given = ["--env", "STUB_GPU_CONTEXT_MEM=1048576", "--env", "STUB_GPU_DIR=/card"];
    let worker: Actor = container.exec(&given, &["/share", "k_5ms", "4", "5000"])?.start()?;
    let others = || -> Result<Vec<String>> {
        let inside = first_process(&node)?.to_string();
        let members = fs::read_to_string(&group)?;
        Ok(members.lines().filter(|pid| *pid != inside).map(str::to_owned).collect())
    };
    no_more_work(&node, Duration::from_secs(1))?;
    let moved = others()?;
    expect(!moved.is_empty(), || format!("nothing else is in {}", group.display()))?;
    let first_pid = first_process(&node)?;
    for pid in &moved {
        for group in cgroups(first_pid)? {
            let outside = group.parent().and_then(Path::parent).unwrap_or(&group);
            fs::write(outside.join("cgroup.procs"), pid)?;
        }
    }
    expect(others()?.is_empty(), || format!("{:?} stays", others()))?;
    no_more_work(&node, Duration::from_secs(3))?;
    drop(worker);
    first.end().map(drop)
}

/// Beside one that has work for all of the time nothing, and all of it in the pauses of that one.
fn lent(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?.env("GPU_CORE_POLICY=burst");
    lends(&container)?;
    let mut first = start(&container)?;
    let unmanaged = node.unmanaged()?;
    let words = ["k_5ms", "4", "8000"];
    let unsampled = share(&container, &words)?;
    let _sampler = node.sampler(&container)?;
    node.wait_for_pages(1)?;
    let beside = share(&container, &words)?;
    unmanaged.signal(libc::SIGSTOP)?;
    thread::sleep(Duration::from_secs(1));
    let paused = share(&container, &words)?;
    unmanaged.signal(libc::SIGCONT)?;
    let again = share(&container, &words)?;
    println!(
        "of 30 %: {unsampled:.1} without samples, {beside:.1} with, {paused:.1} in a pause, {again:.1} after it"
    );
    // A late machine has less of everything.
    for beside in [beside, again] {
        expect(beside <= 30.0 + MORE, || format!("{beside:.1} of 30 %"))?;
        if beside < 30.0 - POINTS {
            return Err(Stop::late(format!("{beside:.1} of 30 %")));
        }
    }
    if paused < 50.0 {
        return Err(Stop::late(format!("{paused:.1} % in a pause")));
    }
    first.end().map(drop)
}

/// From before its first device on it has another root directory, with a directory of pages that is empty and read-only, and
/// a usage page that it can write.
fn unseen(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let borrows = node.container(Some(30))?.env("GPU_CORE_POLICY=burst");
    lends(&borrows)?;
    let page = borrows.path("page");
    fs::write(&page, "")?;
    let borrows = node.with_elsewhere(borrows)?.mount(&page, "/elsewhere/.gpucap/page", "rw");
    let borrows = borrows.with(|config| config["root"]["readonly"] = json!(true));
    let owner = node.container(Some(30))?;
    let (mut first, mut second) = (start(&borrows)?, start(&owner)?);
    let words = ["k_5ms", "4", "8000"];
    let alone = share(&borrows, &words)?;
    let elsewhere = ["--env", "ELSEWHERE=/elsewhere", "--cap", "CAP_SYS_CHROOT"];
    let (unseen, owners) = thread::scope(|scope| {
        let unseen = scope.spawn(|| share_with(&borrows, &elsewhere, &words));
        let owners = share(&owner, &words);
        (unseen.join(), owners)
    });
    let (unseen, owners) = (unseen.map_err(|_| Stop::fail("it panicked"))??, owners?);
    println!("of 30 %: {alone:.1} alone, {unseen:.1} unseen beside {owners:.1}");
    expect(unseen <= 30.0 + MORE, || format!("{unseen:.1} of 30 %, {owners:.1} beside it"))?;
    if alone < 50.0 || owners < 30.0 - POINTS {
        return Err(Stop::late(format!("{alone:.1} % alone, {owners:.1} of 30 %")));
    }
    second.end()?;
    first.end().map(drop)
}

/// Has the node lend.
pub(crate) fn lends(container: &Container) -> Result {
    let config = container.path("node.json");
    let mut node = crate::container::json(&config)?;
    node["lending"] = json!("allowed");
    Ok(fs::write(&config, node.to_string())?)
}
