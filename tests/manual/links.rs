//! Links of the documents: each relative one leads to a file of the project, and its anchor to a heading of that file.
//!
//! The documents are the Markdown files that readers open: those at the top, of `docs`, `ci` and `bench`. Addresses of
//! other hosts are not visited. The same is asked of the built book where `GPUCAP_BOOK` names it (`ci/run book`).

use gpucap_tests::{Result, Stop, markdown, project};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Each link of the documents leads somewhere.
pub(crate) fn of_documents() -> Result {
    let documents = documents(project())?;
    if documents.len() < 20 {
        return Err(Stop::fail(format!("only {} documents found", documents.len())));
    }
    markdown::none_dead(&documents, markdown::links, markdown::anchors)
}

/// Each link of the built book does.
pub(crate) fn of_the_built_book() -> Result {
    let Some(book) = env::var_os("GPUCAP_BOOK") else {
        return Err(Stop::skip("no book is built: ci/run book"));
    };
    let mut pages = BTreeMap::new();
    collect(Path::new(&book), &mut pages, &|path| ends(path, "html"))?;
    // The page for addresses that do not exist has links from the root of a site.
    pages.retain(|path, _| !path.ends_with("404.html"));
    if pages.len() < 20 {
        return Err(Stop::fail(format!("only {} pages built", pages.len())));
    }
    markdown::none_dead(
        &pages,
        |page| values(page, "href=\""),
        |page| values(page, " id=\"").into_iter().collect(),
    )
}

/// The table of contents has each page of the book once.
pub(crate) fn table_of_contents() -> Result {
    let source = project().join("docs/src");
    let summary = fs::read_to_string(source.join("SUMMARY.md"))?;
    let mut listed: Vec<PathBuf> =
        markdown::links(&summary).iter().map(|link| source.join(link)).collect();
    listed.sort();
    let mut pages = BTreeMap::new();
    collect(&source, &mut pages, &|path| ends(path, "md") && !path.ends_with("SUMMARY.md"))?;
    let pages: Vec<_> = pages.into_keys().collect();
    if listed == pages {
        return Ok(());
    }
    Err(Stop::fail(format!("SUMMARY.md lists {listed:?}\nthere are {pages:?}")))
}

/// What breaks a link is found, and what only looks like a link is not taken for one.
pub(crate) fn dead_links_are_found() -> Result {
    let here = project().join("README.md");
    let dead = |text: &str| {
        let page = BTreeMap::from([(here.clone(), text.to_owned())]);
        markdown::none_dead(&page, markdown::links, markdown::anchors).is_err()
    };
    let broken = ["[a](no/such.md)", "# A b\n[a](#ab)", "[a](LICENSE \"t\") [b](LICENCE)"];
    let kept = [
        "# `A` b, c\n[a](#a-b-c) and [b](LICENSE)",
        "`[a](no/such.md)` and [a](https://github.com/none)",
        "```sh\n[a](no/such.md)\n```\n",
    ];
    for (texts, expected) in [(&broken[..], true), (&kept[..], false)] {
        if let Some(text) = texts.iter().find(|text| dead(text) != expected) {
            return Err(Stop::fail(format!("dead should be {expected}: {text}")));
        }
    }
    Ok(())
}

/// The Markdown files that readers open, and their texts.
fn documents(root: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let mut documents = BTreeMap::new();
    for (folder, deep) in [("", false), ("docs/src", true), ("ci", false), ("bench", false)] {
        let folder = root.join(folder);
        let wanted = |path: &Path| ends(path, "md") && (deep || path.parent() == Some(&folder));
        if deep {
            collect(&folder, &mut documents, &wanted)?;
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if wanted(&path) {
                documents.insert(path.clone(), fs::read_to_string(&path)?);
            }
        }
    }
    Ok(documents)
}

/// Adds the files below a directory that are wanted.
fn collect(
    directory: &Path,
    found: &mut BTreeMap<PathBuf, String>,
    wanted: &dyn Fn(&Path) -> bool,
) -> Result {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found, wanted)?;
        } else if wanted(&path) {
            found.insert(path.clone(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn ends(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|is| is == extension)
}

/// What stands between a mark and the next quotation mark, each time.
fn values(text: &str, mark: &str) -> Vec<String> {
    text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}
