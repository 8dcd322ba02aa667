//! Containers that share a card's time on one node: each has a usage page that it writes, and reads those of all others.
//!
//! They do not trust each other, so the point is what none of them can do: change another's page, learn whose it is, or keep
//! another from starting. And no page is ever the reason why a container does not start.

use crate::container::{Container, json};
use crate::enforced::{begin, is_limited};
use crate::image::{Image, add};
use crate::kept::FILLER;
use crate::node::Node;
use crate::refused::NEWER;
use crate::runtime::Runtime;
use crate::{SUCCESS, expect, trials_of};
use gpucap_tests::{Actor, Build, Program, Result, Run, Stop};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("each of two reads what the other writes into its usage page", told),
        ("each of two on one card pays for its own turns", paid),
        ("all that start at once read each other's usage pages", at_once),
        ("nothing in the usage pages says whose they are", nameless),
        ("no container changes, removes or makes another usage page", closed),
        ("its user need not be root to write its usage page", other_user),
        ("a container with users of its own writes its usage page", user_namespace),
        ("a container without a hook gets its usage page by the wrapper", wrapper),
        ("one without a share of time has no usage page", without_share),
        ("one that may mount has no usage page", privileged),
        ("on a node that shows none no container has a usage page", unwanted),
        ("a kernel without the newer means shows no usage page", old_kernel),
        ("a hook that runs twice makes one usage page", twice),
    ])
}

/// The length of a page.
const LENGTH: usize = 69_632;
/// What a page begins with.
const MAGIC: &str = "gpucapCP";

/// A container on a node, with a share of the time and a shell.
pub(crate) fn sharing(runtime: Runtime, node: &Arc<Node>) -> Result<Container> {
    of(runtime, node, Image::Glibc)
}

pub(crate) fn of(runtime: Runtime, node: &Arc<Node>, image: Image) -> Result<Container> {
    let container = Container::of(runtime, image)?.env("GPU_CORE_PCT=30").on(node)?;
    for tool in ["/bin/rm", "/bin/sh"] {
        add(&container.root(), Path::new(tool), &tool[1..])?;
    }
    Ok(container)
}

pub(crate) fn start(container: &Container) -> Result<Actor> {
    begin(&container.run(&["/actor"])?)
}

/// What the shell prints in a container that runs.
pub(crate) fn shell(container: &Container, script: &str) -> Result<String> {
    Ok(container.exec(&[], &["sh", "-c", script])?.output()?.success()?.stdout)
}

/// The names of all pages, as a container that runs sees them.
pub(crate) fn names(container: &Container) -> Result<Vec<String>> {
    let text = shell(container, "cd /.gpucap/pages; for name in *; do echo $name; done")?;
    Ok(text.lines().filter(|name| !name.contains('.')).map(str::to_owned).collect())
}

/// How many pages there are on the node, and how many links that say whose they are.
pub(crate) fn counts(node: &Node) -> [usize; 2] {
    let is_page = |name: OsString| !name.as_encoded_bytes().contains(&b'.');
    let count = |path: &str| {
        let entries = fs::read_dir(node.inside(path)).into_iter().flatten().flatten();
        let pages = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        pages.filter(|entry| is_page(entry.file_name())).count()
    };
    [count("run/pages/all"), count("run/pages")]
}

fn first_line(page: &str) -> String {
    format!("read -r line </.gpucap/pages/{page}; echo \"$line\"")
}

fn told(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let (one, other) = (sharing(runtime, &node)?, sharing(runtime, &node)?);
    let mut first = start(&one)?;
    is_limited(&mut first)?;
    let alone = names(&one)?;
    let mut second = start(&other)?;
    let (seen, by_other) = (names(&one)?, names(&other)?);
    let both = alone.len() == 1 && seen.len() == 2 && seen.contains(&alone[0]) && seen == by_other;
    expect(both, || format!("{alone:?} {seen:?} {by_other:?}"))?;
    for page in &seen {
        let begins = shell(&one, &format!("cat /.gpucap/pages/{page}"))?;
        expect(begins.starts_with(MAGIC), || format!("{page}: {begins:?}"))?;
    }
    shell(&other, "echo told 1<>/.gpucap/page")?;
    let own = seen.iter().find(|name| **name != alone[0]).map_or("", String::as_str);
    let heard = shell(&one, &first_line(own))?;
    expect(heard == "told\n", || format!("{heard:?}"))?;
    second.end()?;
    first.end().map(drop)
}

/// With work for all of the card on both sides, who is charged for being there is charged nearly twice what it has done.
/// The stub says what that was.
fn paid(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let card = node.path("card");
    fs::create_dir(&card)?;
    let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    let container = || -> Result<Container> {
        let container = sharing(runtime, &node)?.mount(&card, "/card", "rw");
        add(&container.root(), &share, "share")?;
        // The stub tells processes apart by their numbers alone.
        let container = container.with(|config| {
            if let Some(list) = config["linux"]["namespaces"].as_array_mut() {
                list.retain(|namespace| namespace["type"] != "pid");
            }
        });
        Ok(container.env("STUB_GPU_DIR=/card").env("GPU_CORE_PCT=90"))
    };
    let (one, other) = (container()?, container()?);
    let (mut first, mut second) = (start(&one)?, start(&other)?);
    // crun has a process that is given a variable inherit none.
    let given = ["--env", "STUB_GPU_CONTEXT_MEM=1048576", "--env", "STUB_GPU_DIR=/card"];
    let shares = [&one, &other].map(|it| it.exec(&given, &["/share", "k_5ms", "4", "1500"]));
    let shares =
        shares.map(|run| std::thread::spawn(move || run?.output()?.success()?.number("all")));
    for (container, share) in [&one, &other].into_iter().zip(shares) {
        let done = share.join().map_err(|_| Stop::fail("a thread ended badly"))??;
        let charged = charged(container, &node)?;
        // Four fifths of it to six.
        if !(done * 4 / 5..=done * 6 / 5).contains(&charged) {
            return Err(Stop::late(format!("{done} ns done, {charged} charged")));
        }
    }
    second.end()?;
    first.end().map(drop)
}

/// Nanoseconds that the host sees a container charged.
fn charged(container: &Container, node: &Node) -> Result<u64> {
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    let config = container.path("node.json").display().to_string();
    let seen = node.output(&[&gpucap, "status", "--json", "--config", &config])?.success()?;
    let value: Value = serde_json::from_str(&seen.stdout).map_err(Stop::fail)?;
    let ledgers = value["ledgers"].as_array().into_iter().flatten();
    let mut own = ledgers.filter(|ledger| ledger["container"]["id"] == container.id());
    let busy = own.next().and_then(|own| own["devices"][0]["time"]["busy_ns"].as_u64());
    busy.ok_or_else(|| Stop::fail(&seen))
}

fn at_once(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let all = (0..8).map(|_| sharing(runtime, &node)).collect::<Result<Vec<_>>>()?;
    let runs = all.iter().map(|it| it.run(&["/actor"])).collect::<Result<Vec<_>>>()?;
    let mut actors = runs.iter().map(Run::start).collect::<Result<Vec<_>>>()?;
    actors.iter_mut().try_for_each(|actor| actor.expect(&[("init", SUCCESS)]))?;
    for container in &all {
        let pages = names(container)?;
        expect(pages.len() == all.len(), || format!("{pages:?}\n{}", container.log()))?;
    }
    actors.iter_mut().try_for_each(|actor| actor.end().map(drop))?;
    expect(counts(&node) == [0, 0], || format!("{:?}", counts(&node)))
}

fn nameless(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let (one, other) = (sharing(runtime, &node)?, sharing(runtime, &node)?);
    let (mut first, mut second) = (start(&one)?, start(&other)?);
    let drawn = |name: &String| name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit());
    let names = names(&one)?;
    expect(names.len() == 2 && names.iter().all(drawn), || format!("{names:?}"))?;
    // A page's header, the GPU, how many processes use it, and the report of one of them.
    let known =
        |at: usize| [0..24, 64..80, 1600..1608, 4096..4112].iter().any(|range| range.contains(&at));
    let nameless = |page: &[u8]| page.iter().enumerate().all(|(at, byte)| *byte == 0 || known(at));
    for page in &names {
        let page = fs::read(node.inside("run/pages/all").join(page))?;
        expect(page.len() == LENGTH && nameless(&page), || "it says more than that".into())?;
    }
    second.end()?;
    first.end().map(drop)
}

fn closed(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let (one, other) = (sharing(runtime, &node)?, sharing(runtime, &node)?);
    let (mut first, mut second) = (start(&one)?, start(&other)?);
    let before = shell(&one, "cat /.gpucap/pages/*")?;
    for attempt in [
        "for page in /.gpucap/pages/*; do : >$page && exit; done; false",
        "for page in /.gpucap/pages/*; do echo x 1<>$page && exit; done; false",
        "rm -f /.gpucap/pages/*",
        ": >/.gpucap/pages/new",
        "rm -f /.gpucap/page",
        "rm -rf /.gpucap/pages",
    ] {
        let tried = other.exec(&[], &["sh", "-c", attempt])?.output()?;
        expect(tried.code() != Some(0), || format!("{attempt}: {tried}"))?;
    }
    expect(shell(&one, "cat /.gpucap/pages/*")? == before, || "a page was changed".into())?;
    second.end()?;
    first.end().map(drop)
}

/// Fails unless a process of it can write its page, and the host sees what.
fn writes(container: &Container, node: &Arc<Node>) -> Result {
    let mut actor = start(container)?;
    is_limited(&mut actor)?;
    shell(container, "echo told 1<>/.gpucap/page")?;
    // What the node has written beside it has an ending.
    let pages = fs::read_dir(node.inside("run/pages/all"))?.flatten().map(|file| file.path());
    let mut pages = pages.filter(|file| file.extension().is_none());
    let page = pages.next().ok_or_else(|| Stop::fail("there is no page"))?;
    let begins = fs::read(page)?;
    expect(begins.starts_with(b"told\n") && begins.len() == LENGTH, || {
        format!("{} bytes: {:?}", begins.len(), &begins[..8.min(begins.len())])
    })?;
    actor.end().map(drop)
}

fn other_user(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let user = json!({"uid": 1000, "gid": 1000});
    writes(&sharing(runtime, &node)?.with(|config| config["process"]["user"] = user), &node)
}

fn user_namespace(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    writes(&sharing(runtime, &node)?.with_users_of_its_own(), &node)
}

fn wrapper(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    writes(&sharing(runtime, &node)?.through_gpucap()?, &node)
}

/// Fails unless it starts with no usage page, and this in the log.
pub(crate) fn has_none(container: &Container, node: &Arc<Node>, said: &str) -> Result {
    let mut actor = start(container)?;
    is_limited(&mut actor)?;
    let seen = shell(container, "cat /proc/self/mountinfo; echo /.gpucap/*")?;
    expect(!seen.contains("/.gpucap/page"), || seen)?;
    let pages = fs::read_dir(node.inside("run/pages/all")).into_iter().flatten().flatten();
    expect(
        counts(node)[1] == 0 && pages.into_iter().all(|page| page.file_name() == FILLER),
        || "there is a page".into(),
    )?;
    let log = container.log();
    expect(
        log.contains(said) && log.contains("usage page") == said.contains("usage page"),
        || log,
    )?;
    actor.end().map(drop)
}

fn without_share(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    has_none(&sharing(runtime, &node)?.env("GPU_CORE_PCT="), &node, "limited")?;
    expect(!node.inside("run/pages").exists(), || "a place for pages was made".into())
}

fn privileged(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let container = sharing(runtime, &node)?.with(|config| {
        for set in ["bounding", "effective", "permitted"] {
            if let Some(list) = config["process"]["capabilities"][set].as_array_mut() {
                list.push(json!("CAP_SYS_ADMIN"));
            }
        }
    });
    has_none(&container, &node, "privileged")
}

fn unwanted(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let container = sharing(runtime, &node)?;
    let config = container.path("node.json");
    let mut told = json(&config)?;
    told["card_pages"] = json!(false);
    fs::write(&config, told.to_string())?;
    has_none(&container, &node, "limited")
}

fn old_kernel(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let forbid = Program::new("forbid").build()?.display().to_string();
    let numbers = NEWER.map(|number| number.to_string()).join(",");
    let container = sharing(runtime, &node)?;
    let hook = container.hook("createRuntime", &[&forbid, &libc::ENOSYS.to_string(), &numbers])?;
    let container = container.with(|config| config["hooks"]["createRuntime"] = json!([hook]));
    has_none(&container, &node, "limited")
}

fn twice(runtime: Runtime) -> Result {
    let node = Node::new(runtime)?;
    let container = sharing(runtime, &node)?;
    let hook = container.hook("createRuntime", &[])?;
    let container = container.with(|config| config["hooks"]["createRuntime"] = json!([hook, hook]));
    let mut actor = start(&container)?;
    expect(counts(&node) == [1, 1], || format!("{:?}", counts(&node)))?;
    let mounts = shell(&container, "cat /proc/self/mountinfo")?;
    expect(mounts.matches(" /.gpucap/page").count() == 2, || mounts)?;
    let log = container.log();
    expect(log.contains("was limited already") && !log.contains("usage page"), || log)?;
    actor.end().map(drop)
}
