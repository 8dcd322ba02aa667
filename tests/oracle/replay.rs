//! One run of `tools/replay.c`: requests, answers, and what lies where.

use crate::forms::Meaning;
use gpucap_tests::{Program, Result, Stop, World, project};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

/// The file in which hooks lie.
pub(crate) const SHIM: &str = "libgpucap.so";

/// Where an address lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// A file name; `null` or `untouched` if there is no address.
    pub(crate) object: String,
    offset: u64,
}

/// What came of one request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// As it was asked, with the way it was asked.
    pub(crate) request: String,
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) flags: u64,
    pub(crate) code: u32,
    pub(crate) status: i32,
    pub(crate) place: Place,
}

/// All that the program printed.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Names that `dlsym` found.
    pub(crate) symbols: BTreeMap<String, Place>,
    pub(crate) answers: Vec<Answer>,
    names: HashMap<Place, String>,
    /// Names of the functions at an offset in the shim.
    hooks: HashMap<u64, BTreeSet<String>>,
}

impl Replay {
    /// Runs the program. `newest` is the version of the stub, if it matters.
    pub(crate) fn new(world: &World, requests: &str, newest: &str) -> Result<Self> {
        let run = world.run(&Program::new("replay").build()?)?;
        let (asked, names) = (run.directory().join("requests"), run.directory().join("names"));
        std::fs::write(&asked, requests)?;
        let fixture =
            |file: &str| std::fs::read_to_string(project().join("tests/fixtures").join(file));
        std::fs::write(&names, fixture("libcuda_555.txt")? + &fixture("surface_13.5.txt")?)?;
        // With both limits, all that can be intercepted is.
        let run = run.arg(asked).arg(names).env("GPU_MEM_LIMIT", "2Gi").env("GPU_CORE_PCT", "50");
        let run = if newest.is_empty() { run } else { run.env("STUB_GPU_CUDA_VERSION", newest) };
        let output = run.output()?.success()?;
        let hooks = world.shim().map_or_else(|| Ok(HashMap::new()), hooks)?;
        let (symbols, answers) = (BTreeMap::new(), Vec::new());
        let mut replay = Self { symbols, answers, names: HashMap::new(), hooks };
        for line in output.stdout.lines() {
            replay.read(line).ok_or_else(|| Stop::fail(format!("`{line}` in: {output}")))?;
        }
        Ok(replay)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let words: Vec<_> = line.split(' ').collect();
        match words.as_slice() {
            ["symbol", name, object, offset] => {
                let place = place(object, offset)?;
                self.names.insert(place.clone(), (*name).into());
                self.symbols.insert((*name).into(), place);
            }
            ["answer", way, name, version, flags, code, status, object, offset] => {
                self.answers.push(Answer {
                    request: format!("{way} {name} {version} {flags}"),
                    name: (*name).into(),
                    version: version.parse().ok()?,
                    flags: flags.parse().ok()?,
                    code: code.parse().ok()?,
                    status: status.parse().ok()?,
                    place: place(object, offset)?,
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// The exported function at this place.
    pub(crate) fn name_at(&self, place: &Place) -> Option<&str> {
        self.names.get(place).map(String::as_str)
    }

    /// Whether the hook of this function, and of no other, is at this place.
    pub(crate) fn is_hook_of(&self, place: &Place, row: &str) -> bool {
        place.object == SHIM
            && self.symbols.get(row) == Some(place)
            && self.hooks.get(&place.offset).is_some_and(|names| names.contains(row))
    }
}

impl Answer {
    /// Whether the driver has answered with this meaning, as it does in this way of asking.
    pub(crate) fn check(
        &self,
        replay: &Replay,
        expected: Meaning,
    ) -> std::result::Result<(), String> {
        let way = self.request.split(' ').next();
        let (code, status, object) = match (way, expected) {
            (Some("v1"), Meaning::Symbol(_)) => (0, -1, None),
            (Some("v1"), _) => (NOT_FOUND, -1, Some("untouched")),
            (Some("v2"), Meaning::Symbol(_)) => (0, 0, None),
            (Some("v2"), Meaning::Unknown) => (0, 1, Some("null")),
            (Some("v2"), Meaning::TooOld) => (0, 2, Some("null")),
            (_, Meaning::Symbol(_)) => (0, -1, None),
            _ => (0, -1, Some("null")),
        };
        let symbol = replay.name_at(&self.place);
        let right = match expected {
            Meaning::Symbol(expected) => symbol == Some(expected),
            _ => object == Some(self.place.object.as_str()),
        };
        if right && (self.code, self.status) == (code, status) {
            return Ok(());
        }
        let Place { object, .. } = &self.place;
        Err(format!(
            "{expected:?}, but answered {symbol:?} in {object}, code {}, status {}",
            self.code, self.status
        ))
    }
}

/// `CUDA_ERROR_NOT_FOUND`
const NOT_FOUND: u32 = 500;

fn place(object: &str, offset: &str) -> Option<Place> {
    Some(Place { object: object.into(), offset: offset.parse().ok()? })
}

/// Where the hooks lie in the shim, by its own symbol table: the judge does not ask the shim which
/// is which.
fn hooks(shim: &Path) -> Result<HashMap<u64, BTreeSet<String>>> {
    let output = Command::new("nm").arg("--demangle").arg(shim).output();
    let output = output.map_err(|error| Stop::skip(format!("nm: {error}")))?;
    let mut hooks = HashMap::<_, BTreeSet<_>>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((address, name)) = line.split_once(' ') else { continue };
        let function = name.split_once("::cuda::functions::").map(|(_, rest)| rest);
        let name = function.and_then(|rest| rest.split(['<', ':']).next());
        if let (Ok(address), Some(name)) = (u64::from_str_radix(address, 16), name) {
            hooks.entry(address).or_default().insert(name.to_owned());
        }
    }
    if hooks.is_empty() {
        return Err(Stop::skip("the shim has no symbol table, so its hooks have no names"));
    }
    Ok(hooks)
}
