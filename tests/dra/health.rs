//! What the kubelet is told of the cards, which it shows in the status of pods.

use crate::expect;
use crate::messages::Healths;
use crate::node::{NAME, Node, device};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("health: each version of the service says that the cards are well", well),
        trial("health: a lost card is unhealthy, and healthy once it is back", lost),
        trial("health: without an answer of NVIDIA's driver nothing is known", unknown),
    ]
}

/// The health of the device of this name.
fn of(healths: &Healths, device: &str) -> Option<i32> {
    let mut all = healths.devices.iter();
    let own = all.find(|it| it.device.as_ref().is_some_and(|it| it.device_name == device))?;
    Some(own.health)
}

fn well() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let names = [device(&node, 0)?, device(&node, 1)?];
    for version in ["v1", "v1alpha1"] {
        let mut watch = kubelet.watch(version)?;
        // The kubelet forgets what is not said again.
        for _ in 0..2 {
            let healths = watch.next()?;
            expect(names.iter().all(|name| of(&healths, name) == Some(1)), || {
                format!("{healths:?}")
            })?;
            let pools = healths.devices.iter().filter_map(|it| it.device.as_ref());
            expect(pools.into_iter().all(|it| it.pool_name == NAME), || format!("{healths:?}"))?;
            let timed =
                healths.devices.iter().all(|it| it.last_updated_time > 0 && it.timeout_seconds > 1);
            expect(timed, || format!("{healths:?}"))?;
        }
    }
    Ok(())
}

fn lost() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let (stays, goes) = (device(&node, 0)?, device(&node, 1)?);
    let mut watch = kubelet.watch("v1")?;
    let mut until = |health: i32| {
        // Each message is a round; far fewer pass before the card is looked at again.
        for _ in 0..50 {
            let healths = watch.next()?;
            if of(&healths, &goes) == Some(health) {
                return expect(of(&healths, &stays) == Some(1), || format!("{healths:?}"));
            }
        }
        Err(Stop::fail(format!("never {health}")))
    };
    until(1)?;
    node.cards(1, &[])?;
    until(2)?;
    node.cards(2, &[])?;
    until(1)
}

fn unknown() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let name = device(&node, 0)?;
    let mut watch = kubelet.watch("v1")?;
    node.installation.script("echo 'error it hangs'; exit 1")?;
    for _ in 0..50 {
        let healths = watch.next()?;
        if of(&healths, &name) == Some(0) {
            return expect(healths.devices.len() == 2, || format!("{healths:?}"));
        }
    }
    Err(Stop::fail("never unknown"))
}
