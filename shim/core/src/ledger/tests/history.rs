//! Any history, with deaths at any access, against a model that knows only sums.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*};

use super::{DeviceIndex, Full, Identity, Kind, Ledger, SLOTS, Slot, formatted, identity};
use crate::sync::fuse::burn;

const LIMIT: u64 = 100;
/// A fuse that outlasts every act.
const LONG: u32 = 10_000;

/// One act of the `who`-th living process. It dies at its `steps`-th access, if it gets there.
#[derive(Clone, Debug)]
struct Act {
    who: usize,
    what: What,
    steps: u32,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Claim,
    Charge(usize, u64),
    ChargeOrReap(usize, u64),
    Refund(usize, u64),
    Release,
    Reap,
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = || (0..2usize, 0..60u64);
    let what = prop_oneof![
        3 => Just(What::Claim),
        6 => bytes().prop_map(|(device, bytes)| What::Charge(device, bytes)),
        2 => bytes().prop_map(|(device, bytes)| What::ChargeOrReap(device, bytes)),
        3 => bytes().prop_map(|(device, bytes)| What::Refund(device, bytes)),
        1 => Just(What::Release),
        1 => Just(What::Reap),
    ];
    let steps = prop_oneof![2 => Just(LONG), 1 => 0..30u32];
    (0..SLOTS, what, steps).prop_map(|(who, what, steps)| Act { who, what, steps })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_sums(acts in vec(act(), 1..80)) {
        let mut world = World::new();
        for act in &acts {
            world.play(act);
        }
        world.end();
    }
}

struct World {
    ledger: Ledger,
    devices: [DeviceIndex; 2],
    next_pid: u32,
    living: BTreeMap<u32, (Slot, [u64; 2])>,
    dead: BTreeSet<u32>,
    /// What the dead hold, all together.
    estate: [u64; 2],
}

impl World {
    fn new() -> Self {
        let ledger = formatted();
        let devices = [7, 8].map(|byte| ledger.device([byte; 16]).unwrap());
        let (living, dead) = (BTreeMap::new(), BTreeSet::new());
        Self { ledger, devices, next_pid: 1, living, dead, estate: [0; 2] }
    }

    fn play(&mut self, act: &Act) {
        if let What::Claim = act.what {
            return self.claim(act.steps);
        }
        let Some((&pid, &(slot, held))) = self.living.iter().nth(act.who) else { return };
        let end = self.perform(act, slot);
        let after = self.outcome(act.what, held, end);
        if end.is_some() && !matches!(act.what, What::Release) {
            self.living.insert(pid, (slot, after));
        } else {
            self.living.remove(&pid);
            self.dead.insert(pid);
        }
        let reaped = matches!(act.what, What::Reap | What::ChargeOrReap(..));
        for d in 0..2 {
            // A process that died holds what it held before the act or what it held after it.
            let own = if end.is_none() { [held[d], after[d]] } else { [0; 2] };
            let (was, is) = (self.estate[d], self.used(d) - self.living()[d]);
            let right = match (reaped, end) {
                (false, _) => own.iter().any(|own| is == was + own),
                (true, Some(_)) => {
                    is == 0 || is == was && matches!(act.what, What::ChargeOrReap(..))
                }
                (true, None) => is <= was + own[0].max(own[1]),
            };
            assert!(right, "{act:?}: the dead held {was}, now {is}");
            self.estate[d] = is;
        }
    }

    /// Whether the act was done and granted; `None` if the process died of it.
    fn perform(&self, act: &Act, slot: Slot) -> Option<bool> {
        let (ledger, kind, alive) = (&self.ledger, Kind::Vmm, alive(&self.dead));
        burn(act.steps, || {
            match act.what {
                What::Charge(d, bytes) => {
                    return ledger
                        .line(slot, self.devices[d])
                        .unwrap()
                        .charge(kind, bytes, LIMIT)
                        .is_ok();
                }
                What::ChargeOrReap(d, bytes) => {
                    let device = self.devices[d];
                    return ledger
                        .or_reap(
                            || ledger.line(slot, device).unwrap().charge(kind, bytes, LIMIT),
                            &|| false,
                            &alive,
                        )
                        .is_ok();
                }
                What::Refund(d, bytes) => {
                    ledger.line(slot, self.devices[d]).unwrap().refund(kind, bytes)
                }
                What::Release => super::vacate(ledger, slot),
                What::Reap | What::Claim => drop(ledger.reap(&alive)),
            }
            true
        })
    }

    /// What the process holds once the act is done; checks that it was granted if it had to be.
    fn outcome(&self, what: What, held: [u64; 2], end: Option<bool>) -> [u64; 2] {
        let mut after = held;
        match what {
            What::Charge(d, bytes) | What::ChargeOrReap(d, bytes) => {
                let dead = if let What::Charge(..) = what { self.estate[d] } else { 0 };
                let fits = self.living()[d] + dead + bytes <= LIMIT;
                assert!(end.is_none_or(|granted| granted == fits), "{what:?}");
                after[d] += if fits { bytes } else { 0 };
            }
            What::Refund(d, bytes) => after[d] = held[d].saturating_sub(bytes),
            What::Release => after = [0; 2],
            What::Reap | What::Claim => {}
        }
        after
    }

    fn claim(&mut self, steps: u32) {
        let pid = self.next_pid;
        self.next_pid += 1;
        let full = self.living.len() == SLOTS;
        let claimed = burn(steps, || self.ledger.claim(identity(pid), 0, &alive(&self.dead)));
        match claimed {
            Some(Ok(slot)) => drop(self.living.insert(pid, (slot, [0; 2]))),
            Some(Err(Full)) => assert!(full),
            None => drop(self.dead.insert(pid)),
        }
        // A claim may reap.
        for d in 0..2 {
            let estate = self.used(d) - self.living()[d];
            assert!(estate <= self.estate[d]);
            self.estate[d] = estate;
        }
    }

    /// Once the dead are reaped, every number is as the model says.
    fn end(&self) {
        self.ledger.reap(&alive(&self.dead));
        let seen: BTreeMap<u32, [u64; 2]> = self
            .ledger
            .processes()
            .map(|process| {
                let used = |device| {
                    let account = process.account(device);
                    assert_eq!(
                        account.map(|account| account.kinds.iter().sum()),
                        account.map(|account| account.used)
                    );
                    account.map_or(0, |account| account.used)
                };
                (process.identity.pid, self.devices.map(used))
            })
            .collect();
        let known = self.living.iter().map(|(&pid, &(_, held))| (pid, held)).collect();
        assert_eq!(seen, known);
        assert_eq!([0, 1].map(|d| self.used(d)), self.living());
    }

    fn used(&self, d: usize) -> u64 {
        let used = self.ledger.used(self.devices[d]);
        assert!(used <= LIMIT);
        used
    }

    fn living(&self) -> [u64; 2] {
        [0, 1].map(|d| self.living.values().map(|(_, held)| held[d]).sum())
    }
}

fn alive(dead: &BTreeSet<u32>) -> impl Fn(&Identity) -> bool {
    |identity| !dead.contains(&identity.pid)
}
