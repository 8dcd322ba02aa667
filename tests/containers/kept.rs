//! The usage pages that the hook keeps on a node: none is a reason why a container does not start, and none stays.

use crate::image::{Image, add};
use crate::node::Node;
use crate::peers::{counts, has_none, names, of, sharing, shell, start};
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::{Build, Program, Result};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("no room for a usage page does not keep it from starting", no_room),
        ("who lets its usage page grow leaves room for others", grown),
        ("a hook that does not come to an end holds up no other", locked),
        ("a refused container leaves no usage page", refused),
        ("a usage page goes with its container, and the last with all that held it", gone),
        ("gc takes away what a killed hook has made", left),
    ])
}

/// A file that keeps the hook from unmounting what is mounted for pages.
pub(crate) const FILLER: &str = "filler";

/// Mounts a file system for pages before the hook would.
fn prepare(node: &Node, size: &str) -> Result {
    let all = node.path("run/pages/all");
    fs::create_dir_all(&all)?;
    let all = all.display().to_string();
    let size = format!("size={size}");
    node.output(&["mount", "-t", "tmpfs", "-o", &size, "pages", &all])?.success()?;
    fs::write(node.inside("run/pages/all").join(FILLER), "")?;
    Ok(())
}

fn no_room(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    // Larger than what it is made larger to; room for no file besides the directory and the filler.
    prepare(&node, "2g,nr_inodes=2")?;
    has_none(&sharing(runtime, &node)?, &node, "without a usage page")
}

fn grown(runtime: Runtime) -> Result {
    for fill in [
        "while cat /bin/sh; do :; done >>/.gpucap/page 2>/dev/null; true",
        // Beyond its end, where its length does not tell.
        "fallocate --keep-size --offset 69632 --length 81920 /.gpucap/page",
    ] {
        let node = Node::new(runtime)?;
        // For two pages and a little more.
        prepare(&node, "160k")?;
        let (one, other) = (sharing(runtime, &node)?, sharing(runtime, &node)?);
        add(&one.root(), Path::new("/usr/bin/fallocate"), "bin/fallocate")?;
        let mut first = start(&one)?;
        shell(&one, fill)?;
        let mut second = start(&other)?;
        let pages = names(&other)?;
        expect(pages.len() == 3, || format!("{fill}: {pages:?}\n{}", other.log()))?;
        second.end()?;
        first.end()?;
    }
    Ok(())
}

fn locked(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    fs::create_dir_all(node.path("run/pages"))?;
    let lock = fs::File::open(node.path("run/pages"))?;
    lock.lock()?;
    has_none(&sharing(runtime, &node)?, &node, "without a usage page")
}

fn refused(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let output = of(runtime, &node, Image::Old)?.output(&["env"])?;
    expect(output.code() != Some(0), || format!("it ran: {output}"))?;
    expect(counts(&node) == [0, 0], || format!("{:?}", counts(&node)))
}

/// Fails unless the node is as it was before there was a page.
fn has_no_mount(node: &Node) -> Result {
    let mounts = node.output(&["cat", "/proc/self/mountinfo"])?.success()?;
    let own = node.path("run").display().to_string();
    expect(!mounts.stdout.contains(&own), || mounts.to_string())
}

fn gone(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let (one, other) = (sharing(runtime, &node)?, sharing(runtime, &node)?);
    let (mut first, mut second) = (start(&one)?, start(&other)?);
    expect(counts(&node) == [2, 2], || format!("{:?}", counts(&node)))?;
    let seen = names(&one)?;
    second.end()?.success()?;
    let left = names(&one)?;
    let one_left = left.len() == 1 && seen.contains(&left[0]) && counts(&node) == [1, 1];
    expect(one_left, || format!("{seen:?} {left:?} {:?}", counts(&node)))?;
    first.end()?.success()?;
    expect(counts(&node) == [0, 0], || format!("{:?}", counts(&node)))?;
    has_no_mount(&node)
}

/// The system calls by which the hook comes to a page, and how many links and pages there are before each.
const STEPS: [(libc::c_long, [usize; 2]); 4] = [
    (libc::SYS_symlink, [0, 0]),
    (libc::SYS_fallocate, [0, 1]),
    (libc::SYS_renameat, [0, 1]),
    (libc::SYS_setns, [1, 1]),
];

fn left(runtime: Runtime) -> Result {
    let forbid = Program::new("forbid").build()?.display().to_string();
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    for (step, made) in STEPS {
        let node = Node::new(runtime)?;
        let container = sharing(runtime, &node)?;
        let hook = container.hook("createRuntime", &[&forbid, "kill", &step.to_string()])?;
        let hooks = json!({"createRuntime": [hook]});
        let output = container.with(|config| config["hooks"] = hooks).output(&["env"])?;
        expect(output.code() != Some(0), || format!("{step}: it ran: {output}"))?;
        expect(counts(&node) == made, || format!("{step}: {:?}", counts(&node)))?;
        let config = node.path("node.json");
        fs::write(&config, json!({"run_dir": node.path("run")}).to_string())?;
        let config = config.display().to_string();
        let said = node.output(&[&gpucap, "gc", "--config", &config])?.success()?;
        let expected = format!("usage pages removed: {}\n", made[1]);
        expect(said.stdout.contains(&expected), || format!("{step}: {said}"))?;
        expect(counts(&node) == [0, 0], || format!("{step}: {:?}", counts(&node)))?;
        has_no_mount(&node)?;
    }
    Ok(())
}
