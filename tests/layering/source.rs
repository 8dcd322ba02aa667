//! Reads the files of the project the way the rules want to see them.
//!
//! A [`Source`] holds a file three times, all with the same lines: as written, as code (comments and the insides
//! of literals blanked), and as shipped code (items that exist only in tests blanked too). A rule can thus look
//! for a word without meeting it in prose, and name the line of what it found.
//!
//! It knows `use` trees and names, nothing else of the language. It never decides anything; that is `rules`.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::blank::{blank, is_word, without_comments, without_tests};

/// One file of the project.
pub(crate) struct Source {
    /// Relative to the root of the project.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) code: String,
    pub(crate) shipped: String,
    names: OnceLock<Vec<Name>>,
}

/// A name with its path, such as `std::time::Instant`, and the line it is on.
pub(crate) struct Name {
    pub(crate) line: usize,
    pub(crate) path: String,
    /// The module that it stands in: that of the file, or one that is written out in it.
    pub(crate) module: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let rust = path.ends_with(".rs");
        let code = if rust { without_comments(text) } else { text.to_owned() };
        let shipped = if rust { without_tests(&code).0 } else { code.clone() };
        Self { path: path.to_owned(), text: text.to_owned(), code, shipped, names: OnceLock::new() }
    }

    /// Every name in the shipped code: those of `use` trees in full, and those written out where they are used.
    /// `super` and `self` are resolved, so that a name of this crate always starts with `crate`.
    pub(crate) fn names(&self) -> &[Name] {
        self.names.get_or_init(|| self.find_names())
    }

    fn find_names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        let bytes = self.shipped.as_bytes();
        let (mut at, mut line, mut counted) = (0, 1, 0);
        let mut inside = Inside::default();
        while at < bytes.len() {
            if !starts_word(bytes, at) {
                inside.pass(bytes[at]);
                at += 1;
                continue;
            }
            line += bytes[counted..at].iter().filter(|&&byte| byte == b'\n').count();
            counted = at;
            let start = at;
            let word = word_at(&self.shipped, at);
            if word == "use" {
                let end = self.shipped[at..].find(';').map_or(bytes.len(), |length| at + length);
                let tree: String =
                    self.shipped[at + 3..end].split_whitespace().collect::<Vec<_>>().join(" ");
                let mut found = Vec::new();
                leaves("", &tree, &mut found);
                names.extend(found.iter().map(|path| self.name(line, path, &inside)));
                at = end;
                continue;
            }
            inside.word(word);
            at += word.len();
            while self.shipped[at..].starts_with("::") && starts_word(bytes, at + 2) {
                at += 2 + word_at(&self.shipped, at + 2).len();
            }
            names.push(self.name(line, &self.shipped[start..at], &inside));
        }
        names
    }

    /// The module that this file is, such as `crate::cuda::memory`.
    pub(crate) fn module(&self) -> String {
        let inside = self.path.split_once("src/").map_or("", |(_, inside)| inside);
        let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        match inside {
            "" | "lib" | "main" => "crate".to_owned(),
            _ => format!("crate::{}", inside.replace('/', "::")),
        }
    }

    fn name(&self, line: usize, name: &str, inside: &Inside) -> Name {
        let mut module = self.module();
        for (_, inner) in &inside.modules {
            module = format!("{module}::{inner}");
        }
        let path = absolute(name, &module);
        Name { line, path, module }
    }
}

/// A name as it is called from everywhere, where `super` and `self` in this module begin it.
fn absolute(name: &str, module: &str) -> String {
    let mut module = module;
    let mut rest = name;
    let mut relative = false;
    while let Some(above) = rest.strip_prefix("super::") {
        module = &module[..module.rfind("::").unwrap_or(module.len())];
        (rest, relative) = (above, true);
    }
    if let Some(here) = rest.strip_prefix("self::") {
        (rest, relative) = (here, true);
    }
    if relative { format!("{module}::{rest}") } else { name.to_owned() }
}

/// The modules of a file that are written out in it, as the reader goes through them: in one, `super` is a module of
/// the same file.
#[derive(Default)]
struct Inside {
    /// What was read of a declaration: `mod`, or the name after it, and neither its `{` nor its `;` yet.
    next: Option<String>,
    depth: usize,
    /// Depth and name of each.
    modules: Vec<(usize, String)>,
}

impl Inside {
    fn word(&mut self, word: &str) {
        if word == "mod" || self.next.as_deref() == Some("mod") {
            self.next = Some(word.to_owned());
        }
    }

    fn pass(&mut self, sign: u8) {
        match sign {
            b'{' => {
                self.depth += 1;
                if let Some(name) = self.next.take() {
                    self.modules.push((self.depth, name));
                }
            }
            b'}' => {
                self.modules.pop_if(|(depth, _)| *depth == self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            b';' => self.next = None,
            _ => {}
        }
    }
}

/// Every file of the project that a person wrote, read once.
pub(crate) fn project() -> &'static [Source] {
    static PROJECT: OnceLock<Vec<Source>> = OnceLock::new();
    PROJECT.get_or_init(read)
}

/// Reads the project and blanks what its modules declare as theirs for tests alone.
fn read() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent");
    let mut sources = Vec::new();
    collect(root, root, &mut sources);
    let only_tests: Vec<String> = sources.iter().flat_map(test_modules).collect();
    for source in &mut sources {
        if only_tests.iter().any(|module| source.path.starts_with(module)) {
            source.shipped = blank(&source.shipped);
        }
    }
    sources
}

fn collect(root: &Path, directory: &Path, sources: &mut Vec<Source>) {
    // A build directory, under whatever name, carries this mark.
    if directory.join("CACHEDIR.TAG").exists() {
        return;
    }
    for entry in fs::read_dir(directory).expect("a directory of the project can be listed") {
        let entry = entry.expect("a directory of the project can be listed");
        let name = entry.file_name();
        let path = entry.path();
        let kind = entry.file_type().expect("a file of the project has a type");
        // In a second worktree `.git` is a file that says where the first one is.
        if matches!(name.to_str(), Some(".git" | ".cache" | "target" | "shared" | "__pycache__")) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, sources);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            let path = path.strip_prefix(root).expect("below the root").to_string_lossy();
            sources.push(Source::new(&path, &text));
        }
    }
}

/// The path prefixes of the modules that a file declares for tests alone.
fn test_modules(source: &Source) -> Vec<String> {
    let path = Path::new(&source.path);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let above = path.parent().unwrap_or_else(|| Path::new(""));
    let home = match &*stem {
        "lib" | "main" | "mod" => above.to_path_buf(),
        _ => above.join(&*stem),
    };
    let (_, modules) =
        if source.path.ends_with(".rs") { without_tests(&source.code) } else { Default::default() };
    let prefix = |module: &String| home.join(module).to_string_lossy().into_owned();
    modules.iter().map(prefix).flat_map(|path| [format!("{path}.rs"), format!("{path}/")]).collect()
}

/// The names at the ends of one `use` tree.
fn leaves(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let tree = tree.trim().trim_start_matches("::");
    let Some(open) = tree.find('{') else {
        let name = tree.split(" as ").next().unwrap_or(tree).trim();
        if !name.is_empty() {
            found.push(format!("{prefix}{name}").trim_end_matches("::self").to_owned());
        }
        return;
    };
    let prefix = format!("{prefix}{}", tree[..open].trim());
    let inside = tree[open + 1..].trim_end().trim_end_matches('}');
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, sign) in inside.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                leaves(&prefix, &inside[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    // The closing brackets of nested trees were trimmed with the last one; `leaves` does not miss them.
    leaves(&prefix, &inside[start..], found);
}

pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn starts_word(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    bytes.get(at).is_some_and(|byte| is_word(*byte)) && !before.is_some_and(|byte| is_word(*byte))
}

fn word_at(text: &str, at: usize) -> &str {
    let end =
        text[at..].bytes().position(|byte| !is_word(byte)).map_or(text.len(), |length| at + length);
    &text[at..end]
}
