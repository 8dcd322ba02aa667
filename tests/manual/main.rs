//! The manual: its links lead somewhere, and its pages of rows are what the tables of the shim make.
//!
//! The pages of rows have one section for each intercepted function and are part of the book (`docs/src/design`);
//! `cargo test -p gpucap-tests --test manual -- --bless` writes them anew. They are not edited by hand.
//!
//! [`row`] is what a table says of a function, [`page`] is how it reads, [`links`] is what the documents refer to,
//! [`messages`] is what they quote, [`steps`] is what they say of the checks, [`figures`] are those of simulations.

mod figures;
mod links;
mod messages;
mod page;
mod row;
mod steps;

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
        trial("each link of a document leads to a file and a heading", links::of_documents),
        trial("the table of contents has each page", links::table_of_contents),
        trial("dead links are found", links::dead_links_are_found),
        trial("each message that a page explains is in the code", messages::of_pages),
        trial(
            "the page on accuracy has the figures of the kept simulation",
            figures::of_the_accuracy,
        ),
        trial("ci/run --list shows how long a step took", steps::listed_with_their_times),
        trial("each link of the built book leads to a page and a place", links::of_the_built_book),
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
