//! How the rows of one library read: a heading for each handler file, a section for each function.

use crate::row::{Asked, Row};
use std::fmt::Write;

/// What differs between the libraries.
pub(crate) struct Library {
    title: &'static str,
    /// Of the tables and of the handlers.
    name: &'static str,
    /// What its functions return.
    result: &'static str,
    /// What a reader needs to know besides.
    about: &'static str,
}

pub(crate) const CUDA: Library = Library {
    title: "Functions of libcuda",
    name: "cuda",
    result: "CUresult",
    about: "\
*Asked for as* is what `cuGetProcAddress` is asked and since which version of CUDA it answers with this function, until
a later one of the same name. *Per-thread stream*: the answer to callers that ask for per-thread default streams.",
};

pub(crate) const NVML: Library = Library {
    title: "Functions of libnvidia-ml",
    name: "nvml",
    result: "nvmlReturn_t",
    about: "All of them answer with the slice instead of the card; none is refused while the limits cannot be used.",
};

/// The page.
pub(crate) fn render(library: &Library, rows: &[Row]) -> String {
    let Library { title, name, result, about } = library;
    let mut page = format!(
        "<!-- Made from shim/abi/src/{name}_api.rs: cargo test -p gpucap-tests --test manual -- --bless -->\n\
         # {title}\n\n\
         What is intercepted, {} in all, one section for each; every other function is the driver's own.\n\
         {about}\n\n\
         The class says what a function does to a limit: `Class` in `shim/src/call.rs`.\n\
         `tests/conformance` calls each of them, and compares with the same call without the shim; `tests/limits` takes\n\
         each of class `alloc` to the edge of the limit.\n",
        rows.len(),
    );
    for module in modules(rows) {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {module}\n\nHandlers: `shim/src/{name}/{module}.rs`.\n");
        for row in rows.iter().filter(|row| row.module == module) {
            let Row { symbol, handler, class, .. } = row;
            let signature = row.signature(result);
            let asked = row.asked.as_ref().map(asked).unwrap_or_default();
            let text = row.text();
            let _ = write!(
                page,
                "\n### `{symbol}`\n\n```c\n{signature}\n```\n\n{text}\n\n\
                 Class: `{class}`. {asked}Handler: `{handler}`.\n",
            );
        }
    }
    page
}

/// The handler files, in the order of the table.
fn modules(rows: &[Row]) -> Vec<&'static str> {
    let mut modules = Vec::new();
    for row in rows {
        if !modules.contains(&row.module) {
            modules.push(row.module);
        }
    }
    modules
}

fn asked(Asked { base, since, stream }: &Asked) -> String {
    let (major, minor) = (since / 1000, since % 1000 / 10);
    let stream = stream.map_or("", |_| ", per-thread stream");
    format!("Asked for as: `{base}`, {major}.{minor}{stream}. ")
}
