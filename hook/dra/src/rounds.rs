//! The rounds: every few seconds the cards are looked at, and the devices of this node are published or withdrawn.
//!
//! A node on which something else offers the same cards, or on which no CDI file can be written, offers none: its
//! slice is withdrawn and no new claim is prepared, while prepared ones stay. An API server that is away changes
//! nothing that is known; until it has said whether something else offers the cards, no new claim is prepared. What a
//! round found, the kubelet's calls and the health streams read.

use crate::api::Server;
use crate::cards::{Cards, Program};
use crate::cdi::Directory;
use crate::claim::device;
use crate::devices::devices;
use crate::driver::Findings;
use crate::error::Result;
use crate::known_cards::KnownCards;
use crate::log::{self, Said};
use gpucap_core::uuid::DeviceName;
use gpucap_kubelet::message::{DeviceHealth, DeviceHealths, DeviceIdentifier, Health};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// What goes the rounds.
pub(crate) struct Rounds {
    pub(crate) program: Program,
    pub(crate) server: Server,
    pub(crate) directory: Directory,
    pub(crate) pool: String,
    pub(crate) interval: Duration,
    pub(crate) known: KnownCards,
    /// The cards that claims had as this program started, until the first answer about cards.
    pub(crate) claimed: Option<Vec<DeviceName>>,
    pub(crate) findings: watch::Sender<Findings>,
    pub(crate) healths: watch::Sender<DeviceHealths>,
    /// Why another driver's offer keeps this one from its own.
    pub(crate) rival: Rival,
    pub(crate) said: [Said; 3],
}

/// Whether something else offers the cards of this node.
pub(crate) enum Rival {
    /// The API server has not said it since this program started.
    Unknown,
    /// Nothing does.
    None,
    /// Something does, for which no claim is prepared.
    Offers(String),
}

impl Rival {
    /// Why no new claim is prepared, if none is.
    pub(crate) fn refusal(&self) -> Option<String> {
        match self {
            Self::Unknown => {
                Some("whether something else offers this node's GPUs is not known yet".into())
            }
            Self::None => None,
            Self::Offers(why) => Some(why.clone()),
        }
    }
}

impl Rounds {
    /// Looks at the cards alone: the first calls of the kubelet need no API server.
    pub(crate) async fn refresh_cards(&mut self) {
        let before = self.findings.borrow().cards.clone();
        let [said, ..] = &mut self.said;
        let cards = match self.program.ask().await {
            Ok(now) => {
                // A card that was lost while this program did not run is missed only by the claims that have it.
                let before = match self.claimed.take() {
                    Some(claimed) => before.still_expected(&now, &claimed),
                    None => before,
                };
                let cards = before.followed_by(now);
                said.now(&summary(&cards));
                if let Err(why) = self.known.write(&cards) {
                    log::line(why);
                }
                cards
            }
            Err(why) => {
                said.now(&why.to_string());
                before.unknown()
            }
        };
        drop(self.healths.send(self.health(&cards)));
        self.findings.send_modify(|findings| findings.cards = cards);
    }

    /// Goes round until the program ends.
    pub(crate) async fn run(mut self) {
        loop {
            let done = self.publish().await;
            let [.., said] = &mut self.said;
            match done {
                Ok(()) => said.now("the API server has the devices of this node"),
                Err(why) => said.now(&why.to_string()),
            }
            tokio::time::sleep(self.interval).await;
            self.refresh_cards().await;
        }
    }

    async fn publish(&mut self) -> Result {
        let unwritable = self.directory.check().err().map(|why| why.to_string());
        // What was known before stays: a server that is away takes no devices back.
        let answer = self.server.rival().await.map(|rival| {
            self.rival = rival.map_or(Rival::None, |rival| {
                Rival::Offers(format!(
                    "this node's GPUs are offered by {rival} too, and would be given twice"
                ))
            });
        });
        let is_offered = matches!(self.rival, Rival::Offers(_));
        let withdraws = unwritable.is_some() || is_offered;
        let refusal = unwritable.or_else(|| self.rival.refusal());
        let [_, said, _] = &mut self.said;
        said.now(refusal.as_deref().unwrap_or("claims are prepared"));
        self.findings.send_modify(|findings| findings.refusal.clone_from(&refusal));
        let devices = devices(&self.findings.borrow().cards);
        if withdraws || devices.is_empty() {
            self.server.withdraw().await
        } else if let (Rival::Unknown, Err(why)) = (&self.rival, answer) {
            // What was published before stays, and nothing is added to it.
            Err(why)
        } else {
            self.server.publish(devices).await
        }
    }

    fn health(&self, cards: &Cards) -> DeviceHealths {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let timeout = self.interval.as_secs().saturating_mul(3).saturating_add(60);
        let seconds = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let devices = cards.list.iter().map(|(card, health)| DeviceHealth {
            device: Some(DeviceIdentifier {
                pool_name: self.pool.clone(),
                device_name: device(card.name),
            }),
            health: (*health).into(),
            last_updated_time: seconds(now),
            health_check_timeout_seconds: seconds(timeout),
            message: message(*health).into(),
        });
        DeviceHealths { devices: devices.collect() }
    }
}

fn message(health: Health) -> &'static str {
    match health {
        Health::Healthy => "",
        Health::Unhealthy => "NVIDIA's driver has lost the GPU",
        Health::Unknown => "NVIDIA's driver gives no answer",
    }
}

fn summary(cards: &Cards) -> String {
    let lost = cards.list.iter().filter(|(_, health)| *health == Health::Unhealthy);
    let lost: Vec<_> = lost.map(|(card, _)| card.name.to_string()).collect();
    let mig = cards.list.iter().filter(|(card, _)| card.has_mig).count();
    let mut text = format!("{} GPUs", cards.list.len());
    if mig > 0 {
        text.push_str(&format!(", {mig} with MIG instances, which are not published"));
    }
    if !lost.is_empty() {
        text.push_str(&format!(", lost: {}", lost.join(" ")));
    }
    text
}
