//! What the kubelet asks of the driver: prepare a claim, and undo it.
//!
//! Both may be asked any number of times and come to the same. A claim is read from the API server and its UID
//! compared; while the server is away, a claim that was prepared already is answered from the checkpoint. A claim is
//! kept on disk before its CDI file is written, and forgotten after the file is gone, so that a driver that is killed
//! in between is made whole by the next start or the next call. One call at a time changes these.

use crate::api::Server;
use crate::cards::Cards;
use crate::cdi::{self, Directory};
use crate::checkpoint::{Checkpoint, Claim};
use crate::claim;
use crate::error::{Error, Result};
use crate::log;
use gpucap_kubelet::Plugin;
use gpucap_kubelet::message::{self, Health};
use tokio::sync::{Mutex, watch};

/// What the rounds have found out of this node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// The cards, and how each is.
    pub(crate) cards: Cards,
    /// Why no new claim is prepared on this node, if none is.
    pub(crate) refusal: Option<String>,
}

/// The driver of this node.
pub(crate) struct Driver {
    pub(crate) name: String,
    pub(crate) pool: String,
    /// The kind of the CDI devices that bring the card itself.
    pub(crate) card_kind: Option<String>,
    pub(crate) server: Server,
    pub(crate) findings: watch::Receiver<Findings>,
    pub(crate) kept: Mutex<Kept>,
}

/// What is kept of claims.
pub(crate) struct Kept {
    checkpoint: Checkpoint,
    directory: Directory,
}

impl Kept {
    /// Takes up what was kept before: each claim gets its file again, and a file without a claim goes. What cannot be
    /// done now is done by the next call for the claim.
    pub(crate) fn restore(checkpoint: Checkpoint, directory: Directory) -> Self {
        for (uid, claim) in checkpoint.all() {
            if let Err(why) = directory.write(uid, claim) {
                log::line(why);
            }
        }
        if let Err(why) = directory.keep_only(|uid| checkpoint.get(uid).is_some()) {
            log::line(why);
        }
        Self { checkpoint, directory }
    }
}

/// What the kubelet is answered goes to the log, too.
impl Plugin for Driver {
    type Error = Error;

    fn name(&self) -> &str {
        &self.name
    }

    async fn prepare(&self, asked: &message::Claim) -> Result<Vec<message::Device>> {
        self.prepare_claim(asked).await.inspect_err(|why| log::line(why))
    }

    async fn unprepare(&self, asked: &message::Claim) -> Result {
        self.unprepare_claim(asked).await.inspect_err(|why| log::line(why))
    }

    fn registered(&self, outcome: std::result::Result<(), &str>) {
        match outcome {
            Ok(()) => log::line("the kubelet has registered it"),
            Err(why) => log::line(format!("the kubelet has not registered it: {why}")),
        }
    }
}

impl Driver {
    /// Prepares a claim and returns its devices.
    ///
    /// # Errors
    /// It cannot be held to what it was given: no container of it may start.
    async fn prepare_claim(&self, asked: &message::Claim) -> Result<Vec<message::Device>> {
        check(asked)?;
        let own = own(asked);
        // Asked before the others are held up: a server that is away takes its time.
        let answer = self.server.claim(&asked.namespace, &asked.name).await;
        let mut kept = self.kept.lock().await;
        let before = kept.checkpoint.get(&asked.uid).cloned();
        let claim = match answer {
            Ok(Some(claim)) if claim.metadata.uid.as_ref() == Some(&asked.uid) => Claim {
                namespace: asked.namespace.clone(),
                name: asked.name.clone(),
                shares: claim::shares(&claim, &self.name, &self.pool)?,
            },
            Ok(Some(_)) => return Err(Error::claim(&own, "another claim has this name now")),
            Ok(None) => return Err(Error::claim(&own, "there is no such claim any more")),
            Err(why) => match &before {
                Some(before) => {
                    log::line(format!("{why}; claim {own} stays as it was prepared"));
                    before.clone()
                }
                None => return Err(why),
            },
        };
        let findings = self.findings.borrow().clone();
        if let (Some(why), None) = (&findings.refusal, &before) {
            return Err(Error::claim(&own, why));
        }
        self.check_cards(&own, &claim, &findings.cards, before.is_none())?;
        let devices = claim.shares.iter().map(|share| self.device(&asked.uid, share)).collect();
        kept.checkpoint.insert(&asked.uid, claim.clone())?;
        kept.directory.write(&asked.uid, &claim)?;
        Ok(devices)
    }

    /// Undoes what was prepared for a claim; one that is not known is undone already.
    ///
    /// # Errors
    /// What was kept of it cannot be removed.
    async fn unprepare_claim(&self, asked: &message::Claim) -> Result {
        check(asked)?;
        let mut kept = self.kept.lock().await;
        kept.directory.remove(&asked.uid)?;
        kept.checkpoint.remove(&asked.uid)
    }

    /// A lost card gives no other one, and none gives a new claim more than it has, whatever the scheduler counted. One
    /// that was prepared may be of a time at which NVIDIA's driver kept less for itself.
    fn check_cards(&self, own: &str, claim: &Claim, cards: &Cards, is_new: bool) -> Result {
        for share in &claim.shares {
            let known = claim::card(&share.device).and_then(|name| cards.find(name));
            let why = match known {
                Some((card, _)) if card.has_mig => "has MIG instances now",
                Some((_, Health::Unhealthy)) => "was lost",
                Some((card, _)) if is_new && share.memory > card.memory => {
                    "has less memory than that"
                }
                Some(_) => continue,
                None => "is not a GPU of this node",
            };
            return Err(Error::claim(own, format!("device {} {why}", share.device)));
        }
        Ok(())
    }

    fn device(&self, uid: &str, share: &claim::Share) -> message::Device {
        let card = self.card_kind.iter().zip(claim::card(&share.device));
        let card = card.map(|(kind, card)| format!("{kind}={card}"));
        message::Device {
            request_names: vec![share.request.clone()],
            pool_name: share.pool.clone(),
            device_name: share.device.clone(),
            cdi_device_ids: card.chain([cdi::id(uid, share)]).collect(),
            share_id: share.share_id.clone(),
        }
    }
}

fn own(claim: &message::Claim) -> String {
    format!("{}/{}", claim.namespace, claim.name)
}

/// Names become parts of files and of the hook's words: they are what Kubernetes allows, or nothing is done.
fn check(claim: &message::Claim) -> Result {
    let fits = |text: &String| {
        let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        !text.is_empty() && text.len() <= 253 && !text.starts_with('.') && text.bytes().all(fit)
    };
    let is_uid = !claim.uid.contains('.') && claim.uid.len() <= 64 && fits(&claim.uid);
    if is_uid && fits(&claim.namespace) && fits(&claim.name) {
        return Ok(());
    }
    Err(Error::claim(&own(claim).escape_debug().to_string(), "is no name that Kubernetes allows"))
}
