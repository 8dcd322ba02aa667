//! The share file beside each usage page: what the node has given a container, for its peers to read.
//!
//! The node alone writes it, and no page is seen without one. What a container can do to its own page must keep the node
//! from writing neither.

use crate::container::Container;
use crate::expect;
use crate::image::add;
use crate::node::Node;
use crate::peers::{counts, sharing, shell, start};
use crate::runtime::Runtime;
use crate::trials_of;
use gpucap_tests::{Build, Driver, Output, Program, Result, Run, Stop, World};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("its peers read the share that the node has given it", given),
        ("its peers read the share that the node gives it later", changed),
        ("a container that fills the file system keeps no share from changing", filled),
        (
            "a container that fills the file system and has a lease on its page keeps none from one",
            leased,
        ),
        ("the extended attributes of a usage page are bounded", attributes),
    ])
}

/// The texts of all share files, as a container that runs sees them.
fn seen(container: &Container) -> Result<Vec<String>> {
    let script = "for file in /.gpucap/pages/*.share; do cat $file; echo; done";
    let text = shell(container, script)?;
    Ok(text.split("\n\n").filter(|text| !text.is_empty()).map(str::to_owned).collect())
}

/// Changes the limits of a container of a node.
pub(crate) fn limit(container: &Container, node: &Node, words: &[&str]) -> Result<Output> {
    try_limit(container, node, words)?.success()
}

/// The same, whether it can or not.
pub(crate) fn try_limit(container: &Container, node: &Node, words: &[&str]) -> Result<Output> {
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    let config = container.path("node.json").display().to_string();
    let words = [&[&gpucap, "limit", container.id(), "--config", &config], words].concat();
    node.output(&words)
}

fn given(runtime: Runtime) -> Result {
    const UUID: &str = "GPU-11111111-2222-3333-4444-555555555555";
    let node = Node::new(runtime)?;
    let (one, other) = (sharing(runtime, &node)?, sharing(runtime, &node)?);
    let other = other.env(&format!("GPU_CORE_PCT={UUID}=12.5"));
    let (mut first, mut second) = (start(&one)?, start(&other)?);
    let mut texts = seen(&one)?;
    texts.sort();
    let expected = ["* 30".to_owned(), format!("{UUID} 12.5\n* 100")];
    expect(texts == expected, || format!("{texts:?}"))?;
    let all = node.inside("run/pages/all");
    for file in fs::read_dir(&all)?.flatten() {
        if file.path().extension().is_none() {
            continue;
        }
        let metadata = file.metadata()?;
        let closed = metadata.permissions().mode() & 0o777 == 0o644 && metadata.uid() == 0;
        expect(closed, || format!("{metadata:?}"))?;
    }
    second.end()?;
    let texts = seen(&one)?;
    expect(texts == ["* 30"], || format!("{texts:?}"))?;
    first.end()?;
    expect(!all.exists() || fs::read_dir(&all)?.next().is_none(), || "a file is left".into())
}

fn changed(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let (one, other) = (sharing(runtime, &node)?, sharing(runtime, &node)?);
    let (mut first, mut second) = (start(&one)?, start(&other)?);
    for (words, expected) in [
        (&["--cores", "45.5"][..], ["* 30", "* 45.5"]),
        (&["--mem", "1Gi"], ["* 30", "* 45.5"]),
        (&["--reset"], ["* 30", "* 30"]),
    ] {
        limit(&one, &node, words)?;
        let mut texts = seen(&other)?;
        texts.sort();
        expect(texts == expected, || format!("{words:?}: {texts:?}"))?;
    }
    // Outside of the node's mount namespace there is an empty directory in the place of the pages.
    let config = one.path("node.json").display().to_string();
    let run = World::bare(Driver::Stub).run(&Build::shipped()?.gpucap()?)?;
    let words = ["limit", one.id(), "--cores", "50", "--config", &config];
    let outside = words.into_iter().fold(run, Run::arg).output()?.success()?;
    let why =
        "are not published to its peers: this mount namespace does not have their file system";
    expect(outside.stderr.contains(why), || outside.stderr)?;
    second.end()?;
    first.end().map(drop)
}

fn filled(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let container = sharing(runtime, &node)?;
    let mut first = start(&container)?;
    shell(&container, "while cat /bin/sh; do :; done >>/.gpucap/page 2>/dev/null; true")?;
    let said = limit(&container, &node, &["--cores", "45"])?;
    let texts = seen(&container)?;
    expect(texts == ["* 45"], || format!("{texts:?}: {said}"))?;
    first.end().map(drop)
}

/// What it has taken cannot be taken back: there is more room.
fn leased(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let container = sharing(runtime, &node)?;
    add(&container.root(), &Program::new("leases").build()?, "leases")?;
    let fills = "while cat /bin/sh; do :; done >>/.gpucap/page 2>/dev/null; exec /leases r 60 /.gpucap/page";
    let mut leases = container.run(&["sh", "-c", fills])?.start()?;
    let said = leases.line()?;
    expect(said == "/.gpucap/page=0", || said.clone())?;
    for _ in 0..2 {
        with_page(&sharing(runtime, &node)?, &node)?;
    }
    let said = limit(&container, &node, &["--cores", "45"])?;
    let texts = seen(&container)?;
    expect(texts == ["* 45"], || format!("{texts:?}: {said}"))?;
    leases.kill()
}

/// They are memory of the kernel that no process is charged for.
fn attributes(runtime: Runtime) -> Result {
    const MOST: u64 = 4 << 20;
    let program = Program::new("attributes").build()?;
    let node = Node::new(runtime)?;
    let one = sharing(runtime, &node)?;
    add(&one.root(), &program, "attributes")?;
    let mut first = start(&one)?;
    let asked = (MOST * 4).to_string();
    let taken = one.exec(&[], &["/attributes", "/.gpucap/page", &asked])?.output()?.success()?;
    let taken = taken.number("bytes")?;
    if taken == 0 {
        return Err(Stop::skip("this kernel's tmpfs has no extended attributes (Linux 6.6)"));
    }
    expect(taken <= MOST, || format!("{taken} bytes"))?;
    with_page(&sharing(runtime, &node)?, &node)?;
    first.end().map(drop)
}

/// Fails unless it starts with a page of its own, beside one that is there.
fn with_page(container: &Container, node: &Arc<Node>) -> Result {
    let mut actor = start(container)?;
    expect(counts(node) == [2, 2], || format!("{:?}\n{}", counts(node), container.log()))?;
    actor.end().map(drop)
}
