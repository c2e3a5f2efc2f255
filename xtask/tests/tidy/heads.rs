//! Tests of the tables that list files, in module heads and in ARCHITECTURE.md.
//!
//! The table of a head must list the declared modules; ARCHITECTURE.md must name existing files and folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{between, files, name, read, root};

/// Titles of the first column in those tables that list modules.
const TITLES: [&str; 2] = ["module", "file"];

/// Files whose heads have incomplete tables; no file may be added here.
const PARTIAL: [&str; 4] = [
    "mpi-core/coll/src/plugin/mod.rs",
    "mpi-core/io/src/lib.rs",
    "mpi-core/osc/src/lib.rs",
    "mpi-core/types/src/datatype/mod.rs",
];

/// Returns the first column of each table in a Markdown text, including the title.
fn first_cells(text: &str) -> Vec<Vec<&str>> {
    let mut tables = Vec::new();
    let mut table = Vec::new();
    for line in text.lines().chain([""]) {
        match line.strip_prefix('|') {
            Some(row) => table.push(row.split('|').next().unwrap_or_default().trim()),
            None if !table.is_empty() => tables.push(std::mem::take(&mut table)),
            None => {}
        }
    }
    tables
}

/// Returns the modules in the table of a head; `None` if there is no such table.
fn listed(source: &str) -> Option<BTreeSet<String>> {
    let head = source.lines().filter_map(|line| line.strip_prefix("//!"));
    let head: Vec<&str> = head
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let head = head.join("\n");
    let tables = first_cells(&head);
    let table = tables.iter().find(|table| TITLES.contains(&table[0]))?;
    let names = table[1..]
        .iter()
        .flat_map(|cell| between(cell, "`", "`").step_by(2));
    Some(names.map(ToOwned::to_owned).collect())
}

/// Returns the names in the `mod name;` lines of a file, except test modules.
fn declared(source: &str, path: &Path) -> BTreeSet<String> {
    let parsed = syn::parse_file(source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let modules = parsed.items.into_iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() => Some(module),
        _ => None,
    });
    let is_for_tests = |module: &syn::ItemMod| super::circles::is_for_tests(&module.attrs);
    modules
        .filter(|module| !is_for_tests(module))
        .map(|module| module.ident.to_string())
        .collect()
}

/// Returns a sentence for each difference between a head's table and the file's modules.
fn differences(source: &str, path: &Path) -> Vec<String> {
    let Some(listed) = listed(source) else {
        return Vec::new();
    };
    let declared = declared(source, path);
    let name = name(path);
    // A table may list `port::sim`, a submodule; the file of `port` declares it.
    let is_known = |module: &&String| {
        let first = module.split("::").next().unwrap_or_default();
        declared.contains(first)
    };
    let unknown = listed.iter().filter(|module| !is_known(module));
    let mut found: Vec<String> = unknown
        .map(|module| format!("{name}: the head lists {module}, which is no module of the file"))
        .collect();
    if !PARTIAL.contains(&name.as_str()) {
        let missing = declared.difference(&listed);
        found.extend(missing.map(|module| format!("{name}: the head's table lacks {module}")));
    }
    found
}

#[test]
fn tables_in_heads_list_the_modules_of_their_file() {
    let (mut tables, mut found) = (0, Vec::new());
    for path in files("rs") {
        let source = read(&path);
        tables += usize::from(listed(&source).is_some());
        found.extend(differences(&source, &path));
    }
    assert!(tables > 10, "only {tables} tables were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_head_is_compared_with_its_modules_in_both_directions() {
    let head = "//! Head.\n//!\n//! | module | what it is |\n//! |---|---|\n";
    let rows = "//! | `kept`, `gone` | two |\n";
    let modules = "mod kept;\nmod new;\n#[cfg(test)]\nmod tests;\n";
    let found = differences(&format!("{head}{rows}{modules}"), Path::new("a/mod.rs"));
    let expected = [
        "a/mod.rs: the head lists gone, which is no module of the file",
        "a/mod.rs: the head's table lacks new",
    ];
    assert_eq!(found, expected);
    assert!(differences("//! No table.\nmod other;\n", Path::new("a/mod.rs")).is_empty());
}

/// Adds all files and folders below a folder to `found`, except hidden ones and build products.
fn tree(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(Result::unwrap) {
        let (path, file) = (entry.path(), entry.file_name());
        if file.to_string_lossy().starts_with('.') || file == "target" {
            continue;
        }
        if path.is_dir() {
            tree(&path, found);
        }
        found.push(path);
    }
}

/// Returns the names in a table row of ARCHITECTURE.md for which no file or folder exists.
///
/// A name with a slash or an extension may be the last part of a path.
/// Names in parentheses after a folder must exist in that folder.
fn absent<'a>(row: &'a str, tree: &[PathBuf]) -> Vec<&'a str> {
    let exists = |word: &str| {
        tree.iter()
            .any(|path| path.ends_with(word.trim_end_matches('/')))
    };
    let is_path = |word: &&str| {
        let has_extension = [".rs", ".c", ".txt"].iter().any(|end| word.ends_with(end));
        (word.ends_with('/') || has_extension) && !word.contains(['*', ' ', '<'])
    };
    let words = between(row, "`", "`").step_by(2);
    let mut found: Vec<&str> = words.filter(is_path).filter(|word| !exists(word)).collect();
    let first = row.split('|').nth(1).unwrap_or_default();
    let Some((folder, inside)) = first.split_once(" (") else {
        return found;
    };
    let Some(folder) = between(folder, "`", "`")
        .next()
        .filter(|word| word.ends_with('/'))
    else {
        return found;
    };
    let is_in = |word: &&str| {
        let path = Path::new(folder).join(word.trim_end_matches('/'));
        let file = path.with_extension("rs");
        tree.iter()
            .any(|known| known.ends_with(&path) || known.ends_with(&file))
    };
    let inside = inside.split([')', ':']).next().unwrap_or_default();
    found.extend(
        between(inside, "`", "`")
            .step_by(2)
            .filter(|word| !is_in(word)),
    );
    found
}

#[test]
fn tables_of_the_architecture_name_files_and_folders_that_exist() {
    let mut known = Vec::new();
    tree(root(), &mut known);
    let text = read(&root().join("ARCHITECTURE.md"));
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 50, "only {} rows were found", rows.len());
    let absent: Vec<String> = (rows.iter())
        .flat_map(|row| absent(row, &known))
        .map(|word| format!("ARCHITECTURE.md: `{word}` does not exist"))
        .collect();
    assert!(absent.is_empty(), "{}", absent.join("\n"));
}

#[test]
fn a_folder_that_has_moved_is_found_in_the_table() {
    let tree: Vec<PathBuf> = ["sim/src", "sim/src/live", "sim/src/live/board.rs"]
        .map(PathBuf::from)
        .into();
    assert_eq!(
        absent("| `sim/src/` (`live`, `served`) | `live/board.rs` |", &tree),
        ["served"]
    );
    assert_eq!(
        absent("| `sim/` | `live/hub.rs`, `live/` |", &tree),
        ["sim/", "live/hub.rs"]
    );
}
