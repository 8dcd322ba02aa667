//! The OCI runtimes: those of this machine, and with `ci/run --full` those of the releases that `ci/engines` fetched, and
//! youki, which no release has.

use crate::container::Container;
use crate::enclosure::Userland;
use crate::image::Image;
use gpucap_tests::{Result, Stop};
use std::collections::HashMap;
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A runtime of some release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Runtime {
    kind: Kind,
    userland: Userland,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// The reference.
    Runc,
    /// The one of podman.
    Crun,
    /// The one in Rust.
    Youki,
}

impl Runtime {
    /// The machine's runc.
    pub(crate) const RUNC: Self = Self { kind: Kind::Runc, userland: Userland::Machine };

    /// All that are asked for.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        const YOUKI: Runtime = Runtime { kind: Kind::Youki, userland: Userland::Machine };
        let full = env::var_os("CI_FULL").is_some_and(|it| !it.is_empty());
        let userlands = if full { &Userland::ALL[..] } else { &[Userland::Machine] };
        userlands
            .iter()
            .flat_map(|&userland| [Kind::Runc, Kind::Crun].map(|kind| Self { kind, userland }))
            .chain(full.then_some(YOUKI))
    }

    /// As a test's name says it.
    pub(crate) fn name(self) -> String {
        match self.userland {
            Userland::Machine => self.program().to_owned(),
            Userland::Release(release) => format!("{} of {release}", self.program()),
        }
    }

    /// The program.
    pub(crate) const fn program(self) -> &'static str {
        match self.kind {
            Kind::Runc => "runc",
            Kind::Crun => "crun",
            Kind::Youki => "youki",
        }
    }

    /// The words before its command, with this directory for its state.
    pub(crate) fn words(self, state: &Path) -> Vec<String> {
        let mut words = vec![self.program().into(), "--root".into(), state.display().to_string()];
        if self.kind == Kind::Crun {
            words.extend(["--cgroup-manager".into(), "disabled".into()]);
        }
        words
    }

    /// Whether only an engine can start it: `youki run` never comes back from a container that ended before it began to
    /// wait, since the signal that says so is not blocked until then.
    pub(crate) fn needs_an_engine(self) -> bool {
        self.kind == Kind::Youki
    }

    /// Whether it deletes no container whose hook at `poststop` is gone, though the specification has it warn and go on.
    pub(crate) fn insists_on_its_last_hook(self) -> bool {
        self.kind == Kind::Youki
    }

    /// What has to be done in the command's own mount namespace. crun goes without a mixed hierarchy of cgroups; and it
    /// writes its state to a hook that may have ended, so it has to ignore SIGPIPE, as services of systemd do by default
    /// (systemd.exec(5), `IgnoreSIGPIPE=`).
    pub(crate) fn prepare(self) -> Result<Vec<String>> {
        let mut commands = Vec::new();
        if self.kind == Kind::Crun {
            let unified = "/sys/fs/cgroup/unified";
            commands.push(format!("! mountpoint -q {unified} || umount {unified}"));
            commands.push("trap '' PIPE".into());
        }
        if self.userland != Userland::Machine {
            let [usr, _] = self.userland.places(self.path())?;
            commands.push(format!("mount --bind '{}' /usr", usr.display()));
        }
        Ok(commands)
    }

    /// Skips unless the runtime is here and a plain container can run.
    pub(crate) fn needed(self) -> Result {
        // SAFETY: no conditions.
        if unsafe { libc::geteuid() } != 0 {
            return Err(Stop::skip("only root can start containers here"));
        }
        static PLAIN: Mutex<Option<HashMap<Runtime, Result>>> = Mutex::new(None);
        let mut plain = PLAIN.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = plain.get_or_insert_default().entry(self);
        plain.or_insert_with(|| self.starts_a_plain_one()).clone()
    }

    /// Skips unless it is here, and starts a container that has nothing to do with us.
    fn starts_a_plain_one(self) -> Result {
        self.is_here()?;
        let output = Container::plain(self, Image::Static)?.output(&["/actor"])?;
        match output.code() {
            Some(0) => Ok(()),
            _ => Err(Stop::skip(format!("no container starts here, whatever is in it: {output}"))),
        }
    }

    fn is_here(self) -> Result {
        if self.userland != Userland::Machine {
            return self.userland.places(self.path()).map(drop);
        }
        match Command::new(self.program()).arg("--version").output() {
            Ok(output) if output.status.success() => Ok(()),
            _ => {
                let program = self.program();
                let full = if self.kind == Kind::Youki { " --full" } else { "" };
                Err(Stop::skip(format!("{program} is missing (ci/run --install{full} gets it)")))
            }
        }
    }

    /// Where Debian has it, or would.
    const fn path(self) -> &'static str {
        match self.kind {
            Kind::Runc => "usr/sbin/runc",
            Kind::Crun => "usr/bin/crun",
            Kind::Youki => "usr/bin/youki",
        }
    }
}
