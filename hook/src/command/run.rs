//! `gpucap run`: becomes a program under limits.
//!
//! Everything is checked before anything is run. The program takes this process's place (`exec`): its number, signals
//! and terminal are the program's own. Its processes share one ledger, made for this run, unless they are under a
//! budget already: then that one stays, and can only be lowered.

use crate::command::limit_request::{Joined, LendingOptions, LimitOptions, LimitRequest};
use crate::container::effective_limit::EffectiveLimit;
use crate::container::ledgers::{self, Name};
use crate::container::run_file::{self, RunFile};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::node::elf::Loading;
use crate::node::inputs;
use crate::node::preload;
use crate::node::proc::{self, Process};
use crate::sys::{self, Map, at};
use crate::terminal::output::notice;
use clap::ValueHint;
use gpucap_core::config::{Config, GPUCAP_LEDGER, GPUCAP_OWN_LIMITS, OwnLimits};
use gpucap_core::ledger::Ledger;
use gpucap_core::limits::live::{LivePage, PATH};
use gpucap_core::limits::{LimitsFile, file};
use gpucap_plan::Env;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The word by which it is called.
pub(crate) const NAME: &str = "run";

const AFTER: &str = "\
Sizes: 4Gi, 4096Mi, 4G (10^9), bytes, or 25% of each GPU. Per GPU: 0=4Gi,1=8Gi counts as nvidia-smi does.
Inside another budget (a container's, or another run's) the lower limit holds, and the budget is shared.
`gpucap status` shows the run as run-PID, and `gpucap limit run-PID` changes its limits.
With --core-policy burst the share is guaranteed, and time that other limited programs leave unused may be used up to
--core-max; with --core-priority low nothing is guaranteed.

Exit status: the program's own; 125 if nothing was run (also for an option that is not known), 126 if the program
cannot be executed, 127 if it was not found.

Examples:
  gpucap run --mem 4Gi python train.py
  gpucap run --profile 1g.5gb -- ./serve
  gpucap run --cores 30 --core-policy burst --core-max 80 python train.py";

/// The words behind `gpucap run`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = AFTER,
    override_usage = "gpucap run [--mem SIZE] [--cores PERCENT] [--profile NAME] [--core-policy POLICY] \
                      [--core-max PERCENT] [--core-priority PRIORITY] [--gpu GPU]... [--color WHEN] [--] PROGRAM \
                      [ARGUMENT]..."
)]
pub(crate) struct Options {
    /// Memory of each GPU: 4Gi, 4096Mi, 25%, ...
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    mem: Option<String>,
    /// Share of each GPU's time in percent, 1 to 100
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    cores: Option<String>,
    /// Time and memory as a MIG profile has them: 1g.5gb, 3g.20gb, 2g, ...
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    lending: LendingOptions,
    /// Limit this GPU only (index or UUID; may be repeated); the others stay as they are
    #[arg(long, value_name = "GPU")]
    gpu: Vec<String>,
    /// The program and its arguments: every word from the first that is no option
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

/// Becomes the program; comes back only if that fails.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let Options { mem, cores, profile, lending, gpu, program } = options;
    let asked = LimitRequest::parse(lending.join(LimitOptions {
        mem: mem.as_deref(),
        cores: cores.as_deref(),
        profile: profile.as_deref(),
        gpus: gpu,
        ..LimitOptions::default()
    }))?;
    let Some((program, arguments)) = program.split_first() else { return Err(Error::NoLimit) };
    let cards = inputs::cards();
    // Where the driver does not list its GPUs, the library prints the notice when it sees them.
    if let Some(limit) = asked.of_no_gpu(&cards).filter(|_| !cards.is_empty()) {
        return Err(Error::NoSuchGpu { limit, cards: cards.len() });
    }
    let inherited = Inherited::here()?;
    let Joined { request, notices } = inherited.as_of_now(&asked).lowered_by(&asked)?;
    let preload = preloaded()?;
    let file = found(program)?;
    asked.doubts().for_each(notice);
    misspelt().iter().for_each(notice);
    notices.iter().for_each(notice);
    inherited.print();
    if let Some(why) = out_of_reach(&file) {
        notice(format!("{} {why}", file.display()));
    }
    ledgers::sweep();
    let mut command = Command::new(&file);
    command.arg0(program).args(arguments).envs(request.variables()).env("LD_PRELOAD", preload);
    if inherited.around.is_some() {
        let own = inherited.own.clone().with(asked.variables().into_iter().map(|(name, _)| name));
        command.env(GPUCAP_OWN_LIMITS.name, own.to_string());
    }
    let ledger = inherited.own_ledger()?;
    if let Some((ledger, _)) = &ledger {
        let start = gpucap_plan::of_run(&request.variables(), &cards);
        if let Err(why) = run_file::make(ledger, start.as_ref()) {
            notice(format!("`gpucap limit` cannot change this run: {why}"));
        }
        command.env(GPUCAP_LEDGER.name, ledger).env_remove(GPUCAP_OWN_LIMITS.name);
    }
    let why = command.exec();
    if let Some((ledger, true)) = ledger {
        // What stays, a later run sweeps.
        drop(fs::remove_file(ledger));
    }
    Err(Error::Start { program: program.display().to_string(), why })
}

/// What holds where the run begins.
struct Inherited {
    /// The limits that are set already.
    budget: LimitRequest,
    /// The ledger that the environment names.
    ledger: Option<PathBuf>,
    /// A hook has put limits into this container.
    by_hook: bool,
    /// The container or run that this is in, if it has a file of its limits: the variables with which it was started, and
    /// what of them holds now.
    around: Option<[LimitRequest; 2]>,
    /// The variables that a run inside it has set.
    own: OwnLimits,
}

impl Inherited {
    fn here() -> Result<Self> {
        let lookup = |name: &str| env::var_os(name).map(|value| value.as_bytes().to_vec());
        let config = Config::from_lookup(&lookup).map_err(Error::Inherited)?;
        let ledger: Option<PathBuf> = config.ledger.as_ref().map(|path| path.as_str().into());
        let by_hook = Path::new(file::PATH).exists();
        let of_run = || {
            let RunFile { limits, page } = run_file::copy(ledger.as_deref()?).ok()??;
            let now = EffectiveLimit::all(&limits, Some(page.get()));
            Some([LimitRequest::of(&limits.asked), LimitRequest::of_effective(&now)])
        };
        let of_file = |file: LimitsFile| {
            let page = File::open(PATH).and_then(|file| Map::<LivePage>::copy(&file)).ok();
            let page = page.as_ref().map(Map::get).filter(|page| page.is_known());
            let now = EffectiveLimit::all(&file, page);
            [LimitRequest::of(&file.asked), LimitRequest::of_effective(&now)]
        };
        let around = if by_hook { of_container().map(of_file) } else { of_run() };
        let own = config.own_limits.clone();
        Ok(Self { budget: LimitRequest::of(&config), ledger, by_hook, around, own })
    }

    /// The limits that are set, as they hold now where they are asked for too.
    fn as_of_now(&self, asked: &LimitRequest) -> LimitRequest {
        match &self.around {
            Some([start, now]) => self.budget.as_of_now(start, now, &self.own, asked),
            None => self.budget.clone(),
        }
    }

    /// Says that the budget is one that others spend too.
    fn print(&self) {
        if self.by_hook {
            notice(format!(
                "this container has limits already ({}): they can only be lowered, and its ledger stays",
                file::PATH
            ));
        } else if self.budget.limits() {
            let ledger = self.ledger.as_deref().map(|path| path.display().to_string());
            let ledger = ledger.unwrap_or_else(|| GPUCAP_LEDGER.default.to_owned());
            let below = if self.around.is_some() { "; its limits can only be lowered" } else { "" };
            notice(format!("under a budget already, which stays shared (ledger: {ledger}){below}"));
        }
    }

    /// A ledger for this run, unless there is one to stay with: a fresh one would be a fresh budget. And whether it is
    /// new.
    fn own_ledger(&self) -> Result<Option<(PathBuf, bool)>> {
        if self.by_hook || self.ledger.is_some() || self.budget.limits() {
            return Ok(None);
        }
        let name = Name::of_run(sys::uid(), Process::own()).map_err(unseen)?;
        let path = name.path();
        match ledgers::make(&path).and_then(|is_new| with_room(&path, is_new)) {
            Ok(is_new) => Ok(Some((path, is_new))),
            Err(why) => Err(Error::Ledger { path, why }),
        }
    }
}

/// Takes the memory that each process of the run writes to: without it none could do GPU work. Returns `is_new`.
fn with_room(path: &Path, is_new: bool) -> io::Result<bool> {
    if is_new {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        if let Err(why) = at::reserve(&file, Ledger::BEFORE_ACCOUNTS) {
            drop(fs::remove_file(path));
            return Err(why);
        }
    }
    Ok(is_new)
}

/// One line for each variable that may have been meant as a limit. The program starts all the same: the name may be one of
/// its own.
fn misspelt() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let entries: Vec<String> = names.map(|name| name + "=").collect();
    gpucap_plan::misspelt(&Env::new(entries.iter().map(String::as_str)))
}

/// The limits that a hook has put into this container.
fn of_container() -> Option<LimitsFile> {
    let text = inputs::read(Path::new(file::PATH)).ok()?;
    LimitsFile::parse(&text).ok()
}

/// The value of `LD_PRELOAD` for the program. A library that is named already and is there is not named again.
fn preloaded() -> Result<OsString> {
    let list = env::var_os("LD_PRELOAD");
    let list = list.as_deref();
    let everywhere = fs::read("/etc/ld.so.preload").unwrap_or_default();
    let is_there = |list: &OsStr| preload::named(list).is_some_and(|library| library.is_file());
    if list.is_some_and(is_there) || is_there(OsStr::from_bytes(&everywhere)) {
        return Ok(list.unwrap_or_default().to_owned());
    }
    let own = env::current_exe().map_err(unseen)?;
    Ok(preload::joined(list, &preload::library(&own)?))
}

/// `/proc` is not that of this process.
fn unseen(why: io::Error) -> Error {
    Error::Unseen { pid: std::process::id(), why }
}

/// The file of a program, as the shell would find it: a path, or a name in `PATH`.
fn found(program: &OsStr) -> Result<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Ok(program.into());
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let executable = |file: &PathBuf| {
        let metadata = fs::metadata(file);
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let found = env::split_paths(&path).map(|directory| directory.join(program)).find(executable);
    found.ok_or_else(|| Error::Start {
        program: match program.is_empty() {
            true => "\"\"".into(),
            false => program.display().to_string(),
        },
        why: io::Error::new(io::ErrorKind::NotFound, "not found in PATH"),
    })
}

/// Why the limit does not reach a program, if it does not. What that program starts may be within reach again.
fn out_of_reach(file: &Path) -> Option<&'static str> {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2000;
    let changes = |it: fs::Metadata| {
        it.mode() & SET_USER != 0 && it.uid() != sys::uid()
            || it.mode() & SET_GROUP != 0 && it.gid() != sys::gid()
    };
    if fs::metadata(file).is_ok_and(changes) {
        return Some(
            "changes its user or group: the loader ignores LD_PRELOAD, so it is not limited",
        );
    }
    match Loading::of(&proc::head(file).ok()?) {
        Loading::Static => {
            Some("is statically linked: nothing can be preloaded, so it is not limited")
        }
        Loading::Foreign(_) => {
            Some("is not loaded by glibc, for which the library is built: it is not limited")
        }
        Loading::Glibc(_) | Loading::Script(_) | Loading::Unknown => None,
    }
}
