//! The crates of the project and the modules of each, from the lowest: what each is, and which arrows lead upward.
//!
//! A module names only modules below it, and the file of the crate is above all of them. No files of a crate name each
//! other in a circle, those of one module included. An arrow upward, and one that closes a circle, has its reason here,
//! and is taken out once no file needs it. A new module takes its place here first. CONTRIBUTING.md shows these tables,
//! and a test compares it with them.

/// The crates, and what each is.
pub(crate) const CRATES: &[(&str, &str)] = &[
    (
        "shim/abi",
        "the driver's types, and one row per intercepted function (`cuda_api!`, `nvml_api!`)",
    ),
    ("shim/core", "every decision: units, variables, limits, the ledger's protocol, the meter"),
    ("shim", "the library `libgpucap.so`"),
    ("hook/plan", "what a container is allowed, from all sources"),
    ("hook/nri", "the runtime's requests over NRI, and the answers"),
    ("hook", "the command `gpucap`"),
    ("hook/driver", "the program that queries the driver for the command"),
    ("hook/demo", "the program that `gpucap demo` runs"),
    ("hook/kubelet", "how a kubelet finds a DRA driver and calls it, whatever its devices"),
    (
        "hook/dra",
        "the program `gpucap-dra`: Kubernetes' scheduler gives parts of cards, and the hook has them",
    ),
    ("tests/stub", "a second driver"),
    ("tests", "clients of the built libraries"),
    ("bench", "measurements, and the simulator of the compute limit"),
];

/// The modules of one crate.
pub(crate) struct Modules {
    /// The directory of its sources.
    pub(crate) sources: &'static str,
    /// Each module, the lowest first, and what it is.
    pub(crate) order: &'static [(&'static str, &'static str)],
    /// Arrows upward that are allowed: the module that names, the module that is named, and why.
    pub(crate) upward: &'static [(&'static str, &'static str, &'static str)],
    /// Arrows that close a circle of files and are allowed: the file that names, the file that is named, and why.
    pub(crate) circles: &'static [(&'static str, &'static str, &'static str)],
}

/// Files of the simulated world.
const WORLD: &str = "the parts of the simulated world are declared with it, and its rules are in files of their own";

/// The crates whose modules have an order.
pub(crate) const MODULES: &[Modules] = &[
    Modules {
        sources: "shim/abi/src/",
        order: &[
            ("arg", "what a handler sees of a caller's arguments"),
            ("function", "functions that a program looks up by name, with their types"),
            ("cuda", "the types of the CUDA driver"),
            ("nvml", "the types of NVML"),
            (
                "cuda_fence_api",
                "rows of CUDA that only separate launches: waits of streams, copies by the host's side",
            ),
            ("cuda_copy_api", "rows of CUDA that copy and fill"),
            ("cuda_time_api", "rows of CUDA for a compute limit alone: launches, waits, captures"),
            ("cuda_api", "the rows of CUDA"),
            ("nvml_api", "the rows of NVML"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "shim/core/src/",
        order: &[
            ("sync", "words that processes share, explored by loom in tests"),
            ("units", "bytes and shares"),
            ("uuid", "the names of devices"),
            ("errno", "the numbers of failed system calls, in words"),
            ("table", "numbers by number, for what a process holds"),
            ("extent", "how much arrays take"),
            ("pitch", "how far rows of memory are padded"),
            ("image", "how much code takes"),
            ("physical", "how long physical memory lives"),
            ("config", "the variables and their values"),
            ("limits", "variables and limits file, resolved for one device by the minimum rule"),
            (
                "throttle",
                "which launches wait, for how long, and how much of a device's time is charged",
            ),
            (
                "ledger",
                "the memory in which processes account for what they hold, and its protocol",
            ),
            ("page", "what processes publish for others on the same devices"),
            ("process", "whether the owner of a slot still runs"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "hook/plan/src/",
        order: &[
            ("reason", "why a container is refused"),
            ("source", "the sources of limits, by name"),
            ("encoding", "how other programs write values: JSON, protobuf, numbers"),
            (
                "document",
                "what is read of a container: the runtime's state, `config.json`, the node's files",
            ),
            ("grant", "the limits of one source"),
            ("facts", "what a source may look at"),
            ("convention", "how each source is read, one file per convention"),
            ("merge", "the lowest of all grants"),
            ("lending", "what the node lends of GPU time, and to whom"),
            ("native", "the memory limits that the driver itself is asked to keep"),
            ("decide", "the decision, with the node's policies"),
            ("run", "the limits that `gpucap run` starts with, as a limits file"),
            ("variables", "a plan as variables and annotations"),
            ("entry", "the hook's entry in the documents of engines"),
            ("cdi", "a CDI device that is a slice"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "hook/nri/src/",
        order: &[
            ("message", "the messages, as protobuf has them"),
            ("frame", "the frames that carry them"),
            ("creation", "a request about a container, and the answer"),
            ("session", "one connection with a runtime"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "hook/src/",
        order: &[
            ("machine", "what differs between processors"),
            ("sys", "the only door to libc"),
            ("exit", "the exit codes"),
            ("error", "why a command could not do what it was asked"),
            ("terminal", "what a person reads: results and notices, and the form of their lines"),
            (
                "node",
                "this machine: processes, programs, configuration, installed files, the driver",
            ),
            ("container", "a container: how it is reached, and what the node keeps of it"),
            ("inject", "how a container is put under its limits, or refused"),
            ("command", "what the command can do, one module per verb"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "hook/driver/src/",
        order: &[
            ("library", "a library of the driver, and its functions"),
            ("cuda", "what is asked of CUDA"),
            ("nvml", "what is asked of NVML"),
            ("cards", "what the cards of the machine are"),
            ("samples", "for which part of the time the cards worked for each process"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "hook/demo/src/",
        order: &[
            ("library", "a library of the driver, and its functions"),
            ("cuda", "what is asked of CUDA"),
            ("nvml", "what is asked of NVML"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "hook/kubelet/src/",
        order: &[
            ("message", "the kubelet's messages"),
            ("plugin", "what a driver does for the kubelet"),
            ("service", "the kubelet's calls, and the functions that answer them"),
            ("sockets", "where the kubelet finds them"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "hook/dra/src/",
        order: &[
            ("error", "why a step failed"),
            ("log", "lines on standard error"),
            ("files", "files that are whole or not there"),
            ("quantity", "Kubernetes' quantities"),
            ("cards", "the cards of this machine"),
            ("known_cards", "the cards of the latest look, on disk"),
            ("claim", "the shares that the scheduler has given a claim"),
            ("checkpoint", "the prepared claims on disk"),
            ("cdi", "the CDI files of prepared claims"),
            ("devices", "the cards as devices that the scheduler counts"),
            ("api", "the API server"),
            ("driver", "prepare and unprepare"),
            ("rounds", "what is looked at again and again, and published"),
            ("options", "the command line"),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "shim/src/",
        order: &[
            ("machine", "what differs between processors"),
            ("sys", "the only door to libc"),
            ("log", "one line on stderr, without allocation"),
            (
                "orders",
                "what threads tell each other without a lock, where the order of two words matters",
            ),
            ("state", "whether limits are set, and can be used"),
            ("fork_page", "the page that a fork wipes, by which a child knows that it is one"),
            (
                "driver",
                "the driver's own functions, from the saved symbol table, and the locks that are held across their calls",
            ),
            ("redirect", "how a look-up is caught: the driver's symbol table points at the hooks"),
            (
                "container",
                "what the processes of a container share: ledger, usage page, changed limits, held page, who is alive",
            ),
            (
                "topology",
                "the place of a device in nvidia-smi's order, and the card of a MIG instance",
            ),
            (
                "throttle",
                "one device's time: the gate where launches wait, and the events that measure them",
            ),
            (
                "budget",
                "the part that this process has of its budget: its slot, its devices, and what is charged to them",
            ),
            ("holdings", "what this process holds: one table for each kind of object"),
            ("session", "what a process keeps: its part of the budget, its holdings, its streams"),
            ("call", "one call of an intercepted function"),
            ("nvml", "handlers of NVML: what a function means for the slice, one file per noun"),
            ("launch", "what handlers do around a launch: the work, its paths and its end"),
            ("cuda", "handlers of CUDA: what a function means for the slice, one file per noun"),
            ("hooks", "rows made into hooks, and the libraries that are redirected"),
            (
                "triggers",
                "the exported functions: moments at which the driver may have been loaded",
            ),
        ],
        upward: &[],
        circles: &[],
    },
    Modules {
        sources: "bench/src/",
        order: &[
            ("run", "how much a run does, and how it ends"),
            ("files", "the shim, the drivers and the client, built"),
            ("machine", "what has to be known of the machine to read the numbers"),
            ("measure", "processes that take turns, and what is kept of the samples"),
            ("report", "rows, self-checks, JSON lines, the tables"),
            ("world", "a client in its world"),
            ("simulator", "programs on a simulated GPU in virtual time"),
            ("alloc", "bench: plain allocations"),
            ("families", "bench: allocations of each kind"),
            ("launch", "bench: launches"),
            ("resolve", "bench: look-ups"),
            ("start", "bench: the start of a process"),
            ("nri", "bench: the answer of the plugin"),
            ("hook", "bench: the start of a container"),
            ("ledger", "bench: the ledger with many processes"),
            ("counts", "bench: instructions"),
            ("accuracy", "bench: shares in virtual time"),
            ("lending", "bench: borrowed shares in virtual time"),
            ("judge", "bench: whether the contract holds for adversarial programs"),
            ("share", "bench: shares on the stub"),
        ],
        upward: &[],
        circles: &[
            ("crate::simulator::world::ends", "crate::simulator::world", WORLD),
            ("crate::simulator::world::oracle", "crate::simulator::world", WORLD),
            ("crate::simulator::world::pages", "crate::simulator::world", WORLD),
            ("crate::simulator::world::thread", "crate::simulator::world", WORLD),
        ],
    },
];
