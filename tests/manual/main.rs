//! The manual's pages of rows: one section for each intercepted function, made from the tables of the shim.
//!
//! The pages are part of the book (`docs/src/design`). The tests compare them with what the tables make;
//! `cargo test -p gpucap-tests --test manual -- --bless` writes them anew. They are not edited by hand.
//!
//! [`row`] is what a table says of a function, [`page`] is how it reads.

mod page;
mod row;

use gpucap_tests::{Result, Stop, main as harness, project, trial};
use row::Row;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// A page: its file, the table that it is made from, what it says.
struct Page {
    file: &'static str,
    text: fn() -> String,
}

const PAGES: [Page; 2] = [
    Page { file: "rows_cuda.md", text: || page::render(&page::CUDA, &row::cuda()) },
    Page { file: "rows_nvml.md", text: || page::render(&page::NVML, &row::nvml()) },
];

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--bless") {
        return bless();
    }
    let mut trials = vec![
        trial("a signature reads as in C", signature_reads_as_in_c),
        trial("each row has a sentence of its own", each_row_says_what_happens),
    ];
    for page in PAGES {
        trials.push(trial(format!("{} is what its table makes", page.file), move || fresh(&page)));
    }
    harness(trials)
}

impl Page {
    fn path(&self) -> PathBuf {
        project().join("docs/src/design").join(self.file)
    }
}

fn bless() -> ExitCode {
    for page in PAGES {
        let path = page.path();
        if let Err(error) = fs::write(&path, (page.text)()) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("wrote {}", path.display());
    }
    ExitCode::SUCCESS
}

fn fresh(page: &Page) -> Result {
    let (is, should_be) = (fs::read_to_string(page.path())?, (page.text)());
    if is == should_be {
        return Ok(());
    }
    let lines = is.lines().zip(should_be.lines());
    let line = 1 + lines.take_while(|(is, should_be)| is == should_be).count();
    let text = |page: &str| page.lines().nth(line - 1).unwrap_or("the end").to_owned();
    Err(Stop::fail(format!(
        "{}:{line} is stale\nit says: {}\nthe table says: {}\n\
         cargo test -p gpucap-tests --test manual -- --bless",
        page.path().display(),
        text(&is),
        text(&should_be),
    )))
}

fn signature_reads_as_in_c() -> Result {
    let row = Row {
        symbol: "cuExample",
        arguments: vec![
            ("pointer", "*mut $crate::cuda::CUdeviceptr"),
            ("value", "* mut *mut :: core :: ffi :: c_void"),
            ("name", "*const ::core::ffi::c_char"),
            ("count", "gpucap_abi::arg::InOut<u32>"),
            ("infos", "$crate::arg::Array<$crate::nvml::nvmlProcessInfo_v1_t>"),
            ("bytes", "usize"),
        ],
        ..Row::default()
    };
    let written = row.signature("CUresult");
    let expected = "CUresult cuExample(CUdeviceptr *pointer, void **value, const char *name, unsigned int *count,\n    \
                    nvmlProcessInfo_v1_t *infos, size_t bytes);";
    if written == expected { Ok(()) } else { Err(Stop::fail(format!("{written}\n{expected}"))) }
}

fn each_row_says_what_happens() -> Result {
    let rows = row::cuda().into_iter().chain(row::nvml());
    let silent: Vec<_> = rows.filter(|row| !row.text().ends_with('.')).collect();
    if silent.is_empty() { Ok(()) } else { Err(Stop::fail(format!("{silent:?}"))) }
}
