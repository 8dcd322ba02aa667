//! What the rules know about this project: one table for each, and nothing about it anywhere else.
//!
//! A new module or crate takes its place here first. A path ends in `/` for all below it.

/// Where unsafe code may stand: at the borders with the driver, the loader and the system.
pub(crate) const UNSAFE: &[&str] = &[
    "shim/abi/src/arg/",
    // Handles are numbers, which any thread may use.
    "shim/abi/src/cuda/handle.rs",
    "shim/abi/src/function.rs",
    "shim/core/tests/",
    // The mapped ledger, usage page and pages that are only read, the page that a fork wipes, the constructor.
    "shim/src/container/ledger_file.rs",
    "shim/src/container/mapped_page.rs",
    "shim/src/container/usage_page.rs",
    "shim/src/fork_page.rs",
    "shim/src/session.rs",
    "shim/src/lib.rs",
    "shim/src/driver/",
    "shim/src/hooks.rs",
    "shim/src/machine/",
    "shim/src/redirect.rs",
    "shim/src/redirect/",
    "shim/src/sys.rs",
    "shim/src/sys/",
    // The data in each thread's own block, which begins as zeros.
    "shim/src/throttle/stream_cache.rs",
    "shim/src/triggers.rs",
    "hook/demo/src/",
    "hook/driver/src/",
    // A ledger, seen as the words that a container can write.
    "hook/fuzz/src/ledger.rs",
    "hook/fuzz/src/process.rs",
    "hook/src/sys.rs",
    "hook/src/sys/",
    // A client of its own, which ci/clients builds.
    "tests/clients/compute/with_cudarc.rs",
    "tests/containers/",
    "tests/harness/",
    "tests/lifecycle/",
    "tests/stub/",
    "tests/versions/",
    "bench/",
];

/// Inside the shim, who may name libc's functions and types; its numbers are everybody's.
pub(crate) const LIBC: &[&str] = &[
    "shim/src/redirect.rs",
    "shim/src/redirect/",
    "shim/src/sys.rs",
    "shim/src/sys/",
    "shim/src/triggers.rs",
];

/// What no module below the path may name, and why.
pub(crate) const NEVER: &[(&str, &[&str], &str)] = &[
    ("shim/core/src/", EFFECTS, "core is pure: time, environment and files are arguments"),
    ("shim/core/src/", &["gpucap_abi"], "core knows no driver"),
    ("shim/abi/src/", &["std", "libc", "gpucap_core"], "abi has layouts and names, no behaviour"),
    ("shim/src/cuda/", SYSTEM, "a handler asks core, and calls the original it is given"),
    ("shim/src/nvml/", SYSTEM, "a handler asks core, and calls the original it is given"),
    ("shim/src/cuda/", &["crate::nvml"], "handlers of one library know nothing of the other"),
    ("shim/src/nvml/", &["crate::cuda"], "handlers of one library know nothing of the other"),
    (
        "shim/src/redirect/",
        POLICY,
        "how a look-up is caught has nothing to do with what is decided",
    ),
    (
        "shim/src/triggers.rs",
        POLICY,
        "how a look-up is caught has nothing to do with what is decided",
    ),
    ("shim/src/sys.rs", &["crate::cuda", "crate::nvml", "gpucap_core"], "sys is below everything"),
    ("shim/src/sys/", &["crate::cuda", "crate::nvml", "gpucap_core"], "sys is below everything"),
    (
        "shim/src/",
        &["libc::dlsym", "libloading"],
        "a look-up in the shim would meet its own triggers",
    ),
    ("hook/plan/src/", EFFECTS, "the plan is pure: what is read is an argument"),
    ("hook/nri/src/", EFFECTS, "the protocol is pure: bytes in, bytes out"),
    (
        "hook/kubelet/src/",
        &["gpucap_abi", "gpucap_core", "gpucap_plan", "kube"],
        "any DRA driver can stand on it",
    ),
    (
        "hook/dra/src/",
        &["gpucap_abi", "libloading"],
        "the driver writes what the hook enforces, it does not talk to NVIDIA's",
    ),
    ("hook/src/", &["gpucap_abi"], "the hook prepares a container, it does not talk to the driver"),
    ("tests/stub/", &["gpucap_core"], "the judge shares nothing with the judged"),
];

const EFFECTS: &[&str] = &[
    "libc",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];
const SYSTEM: &[&str] = &["libc", "crate::redirect", "std::env", "std::fs"];
const POLICY: &[&str] = &["gpucap_core", "crate::cuda", "crate::nvml"];

/// What a crate may depend on. What is not in it never reaches what we ship.
pub(crate) const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("shim/abi/Cargo.toml", &[]),
    ("shim/core/Cargo.toml", &["loom"]),
    (
        "shim/Cargo.toml",
        &[
            "gpucap-abi",
            "gpucap-core",
            "libc",
            "libloading",
            "once_cell",
            "parking_lot",
            "ctor",
            "loom",
        ],
    ),
    (
        "hook/Cargo.toml",
        &[
            "gpucap-core",
            "gpucap-plan",
            "gpucap-nri",
            "libc",
            "serde_json",
            "oci-spec",
            "anstream",
            "anstyle",
            "clap",
            "clap_complete",
            "clap_mangen",
            "httparse",
            "indicatif",
            "prometheus-client",
            "ratatui",
            "rustix",
            "thiserror",
            "toml_edit",
        ],
    ),
    (
        "hook/plan/Cargo.toml",
        &[
            "gpucap-core",
            "oci-spec",
            "serde",
            "serde_json",
            "serde_path_to_error",
            "strsim",
            "thiserror",
        ],
    ),
    ("hook/nri/Cargo.toml", &["gpucap-core", "gpucap-plan", "prost", "serde_json"]),
    (
        "hook/fuzz/Cargo.toml",
        &["gpucap-core", "gpucap-nri", "gpucap-plan", "libfuzzer-sys", "serde_json"],
    ),
    ("hook/demo/Cargo.toml", &["gpucap-abi", "libloading"]),
    (
        "hook/dra/Cargo.toml",
        &[
            "gpucap-core",
            "gpucap-kubelet",
            "gpucap-plan",
            "clap",
            "k8s-openapi",
            "kube",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "hook/kubelet/Cargo.toml",
        &["prost", "thiserror", "tokio", "tokio-stream", "tonic", "tonic-prost", "tower"],
    ),
    ("hook/driver/Cargo.toml", &["gpucap-abi", "gpucap-core", "libloading"]),
    (
        "tests/Cargo.toml",
        &[
            "gpucap-abi",
            "gpucap-core",
            "libc",
            "libloading",
            "libtest-mimic",
            "prost",
            "serde_json",
            "serde_yaml_ng",
            "tokio",
            "tonic",
            "tonic-prost",
        ],
    ),
    ("tests/stub/device/Cargo.toml", &["gpucap-abi", "libc"]),
    ("tests/stub/cuda/Cargo.toml", &["gpucap-abi", "gpucap-stub-device", "libc"]),
    ("tests/stub/nvml/Cargo.toml", &["gpucap-abi", "gpucap-stub-device", "libc"]),
    (
        "bench/Cargo.toml",
        &["gpucap-core", "gpucap-nri", "libc", "parking_lot", "prost", "serde_json"],
    ),
];

/// The hosts that a file may name: public ones, which every reader can reach.
pub(crate) const HOSTS: &[&str] = &[
    "deb.debian.org",
    "docs.jax.dev",
    "docs.nvidia.com",
    "docs.pytorch.org",
    "docs.vllm.ai",
    "github.com",
    "json-schema.org",
    "keepachangelog.com",
    "prometheus.io",
    "rustup.rs",
    "semver.org",
    "sh.rustup.rs",
    "www.apache.org",
    "www.w3.org",
];

/// Words that a systems engineer has to translate, each with what to write instead. Parts of a name count as words.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("nobody", "no process, or a passive verb"),
    ("somebody", "the actor: a process, a user, a container"),
    ("anybody", "any process, any user"),
    ("everybody", "all processes, all users"),
    ("whoever", "the actor: a process that, each process that"),
    ("meanwhile", "at the same time, in the mean time"),
    ("stranger", "an unreported process, an untrusted container"),
    ("strangers", "unreported processes, untrusted containers"),
    ("neighbour", "a peer"),
    ("neighbours", "peers"),
    ("liar", "a process with a false report"),
    ("liars", "processes with false reports"),
    ("purse", "an allowance"),
    ("goodbye", "a shutdown step"),
    ("so many", "the number, by its name"),
    ("so much", "the amount, by its name"),
    ("at hand", "available"),
    ("for want of", "for lack of"),
    ("the cap", "the limit"),
    ("memory cap", "a memory limit"),
    ("compute cap", "a compute limit"),
    ("capped", "limited"),
    ("uncapped", "not limited"),
];

/// Words that readers of these pages do not find, with their replacements; in code they may be names.
pub(crate) const PAGES: &[&str] = &["README.md", "SECURITY.md", "docs/"];
pub(crate) const WORDS_OF_PAGES: &[(&str, &str)] = &[
    ("cap", "a limit"),
    ("caps", "limits"),
    ("tell", "show, report, return"),
    ("tells", "shows, reports, returns"),
    ("told", "shown, reported"),
    ("nought", "zero"),
    ("seat", "a place, a slot"),
    ("lies in", "is in"),
    ("is over", "has ended"),
    ("cure", "a fix"),
];

/// Words that shipped code does not use, with their replacements.
pub(crate) const CODE: &[&str] = &["shim/", "hook/"];
pub(crate) const WORDS_OF_CODE: &[(&str, &str)] = &[("told", "published, passed, reported")];

/// Where such a word may stand: names of measured cells, recorded results, the published name of an exit code, and this
/// table.
pub(crate) const WORDS_ALLOWED: &[&str] = &[
    // What outputs said before.
    "CHANGELOG.md",
    "bench/ACCURACY.md",
    "bench/RESULTS.md",
    "bench/results/",
    "bench/src/accuracy/bounds.rs",
    "bench/src/accuracy/tests.rs",
    "bench/src/share.rs",
    "bench/src/simulator/workloads.rs",
    "hook/src/exit.rs",
    "include/gpucap.h",
    "tests/fixtures/",
    "tests/layering/",
];

/// The longest a file may be.
pub(crate) const LINES: usize = 400;

/// What a name in our public header starts with.
pub(crate) const PUBLIC: [&str; 2] = ["GPUCAP_", "gpucap_"];
