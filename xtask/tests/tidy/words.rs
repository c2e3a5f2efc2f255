//! Test that the use of unclear phrases in comments, strings and documents does not increase.
//!
//! `words.txt` lists each phrase with a replacement.
//! `words_left.txt` has the permitted number of occurrences of each phrase in each package.
//! `WORDS_UPDATE=1 cargo test -p xtask --test tidy` lowers these numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{files, name, read, root};

struct Entry {
    phrase: String,
    instead: String,
}

type Counts = BTreeMap<(String, String), usize>;

/// Where the prose is in a file of a language.
#[derive(Clone, Copy)]
enum Prose {
    /// In comments with `//` or `/*`, and in strings in double quotes.
    Slashes,
    /// In comments that start with this text and end at the end of the line.
    Marks(&'static str),
    /// Everywhere except in code fences.
    Markdown,
}

const LANGUAGES: &[(&str, Prose)] = &[
    ("rs", Prose::Slashes),
    ("c", Prose::Slashes),
    ("cc", Prose::Slashes),
    ("h", Prose::Slashes),
    ("v", Prose::Slashes),
    ("vhd", Prose::Marks("--")),
    ("py", Prose::Marks("#")),
    ("md", Prose::Markdown),
];

/// Inserted between two comments or strings, so that no phrase is found across both.
const BREAK: &str = " | ";

fn lexicon() -> Vec<Entry> {
    let text = read(&root().join("xtask/tests/tidy/words.txt"));
    let entries = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (phrase, instead) = line.split_once(" | ").expect("PHRASE | INSTEAD");
        Entry {
            phrase: phrase.to_owned(),
            instead: instead.to_owned(),
        }
    };
    entries.map(entry).collect()
}

/// Returns the comments and strings of a text in a language with `//` comments, in order.
fn of_slashes(text: &str) -> String {
    let mut prose = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'', '\n']) {
        let (code, here) = rest.split_at(at);
        if !code.trim().is_empty() {
            prose.push_str(BREAK);
        }
        rest = if let Some(comment) = here.strip_prefix("//") {
            let end = comment.find('\n').unwrap_or(comment.len());
            let words = comment[..end].trim_start_matches(['/', '!']);
            prose.push(' ');
            prose.push_str(words);
            &comment[end..]
        } else if let Some(comment) = here.strip_prefix("/*") {
            let end = comment.find("*/").unwrap_or(comment.len());
            prose.push_str(&comment[..end]);
            prose.push_str(BREAK);
            comment[end..].trim_start_matches("*/")
        } else if here.starts_with('"') {
            let (string, behind) = string(here, code);
            prose.push_str(BREAK);
            prose.push_str(string);
            prose.push_str(BREAK);
            behind
        } else if here.starts_with('\'') {
            behind_character(here)
        } else {
            &here[1..]
        };
    }
    prose
}

/// Returns the text of the string literal with which `here` starts, and the rest of `here`.
/// `before` is the code before the literal, which shows whether it is a raw string.
fn string<'a>(here: &'a str, before: &str) -> (&'a str, &'a str) {
    let hashes = before.len() - before.trim_end_matches('#').len();
    let is_raw = before[..before.len() - hashes].ends_with('r');
    let inside = &here[1..];
    if is_raw {
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).unwrap_or(inside.len());
        let behind = &inside[length..];
        return (&inside[..length], behind.strip_prefix(&end).unwrap_or(""));
    }
    let mut escaped = false;
    for (i, c) in inside.char_indices() {
        match (escaped, c) {
            (true, _) => escaped = false,
            (false, '\\') => escaped = true,
            (false, '"') => return (&inside[..i], &inside[i + 1..]),
            _ => {}
        }
    }
    (inside, "")
}

/// Returns the rest of the text after a character literal, or after the apostrophe of a lifetime.
fn behind_character(here: &str) -> &str {
    let inside = &here[1..];
    let mut chars = inside.char_indices();
    let (first, second) = (chars.next(), chars.next());
    match (first, second) {
        (Some((_, '\\')), Some((i, c))) => {
            let after = &inside[i + c.len_utf8()..];
            after.find('\'').map_or(after, |end| &after[end + 1..])
        }
        (Some(_), Some((i, '\''))) => &inside[i + 1..],
        _ => inside,
    }
}

/// Returns the prose of a file in lower case and without code in backticks;
/// each sequence of blanks is replaced by one blank.
fn prose(text: &str, language: Prose) -> String {
    let found = match language {
        Prose::Slashes => of_slashes(text),
        Prose::Marks(mark) => {
            let comments = text.lines().map(|line| match line.split_once(mark) {
                Some((_, comment)) => comment,
                None => BREAK,
            });
            comments.collect::<Vec<_>>().join(" ")
        }
        Prose::Markdown => {
            let outside: Vec<_> = text.split("```").step_by(2).collect();
            outside.join(BREAK)
        }
    };
    let words: Vec<_> = found.split('`').step_by(2).collect();
    let text = words.join(BREAK).to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns how often a phrase occurs in a text as separate words.
fn count(text: &str, phrase: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let occurrences = text.match_indices(phrase).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    });
    occurrences.count()
}

/// Returns the folder of the package that contains a file, or the file's top-level folder.
fn package(path: &Path) -> String {
    let mut folders = path.ancestors().skip(1);
    let own = folders.find(|folder| folder.join("Cargo.toml").exists());
    match own.unwrap_or(root()) {
        folder if folder != root() => name(folder),
        _ => match name(path).split_once('/') {
            Some((top, _)) => top.to_owned(),
            None => "root".to_owned(),
        },
    }
}

/// Returns the counts of all phrases, and the files in which each occurs.
fn counted(lexicon: &[Entry]) -> (Counts, BTreeMap<(String, String), Vec<String>>) {
    let (mut counts, mut places) = (Counts::new(), BTreeMap::new());
    for (extension, language) in LANGUAGES {
        // Files of this test are omitted: they contain the phrases.
        let own = |path: &PathBuf| name(path).starts_with("xtask/tests/tidy");
        for path in files(extension).into_iter().filter(|path| !own(path)) {
            let text = prose(&read(&path), *language);
            let package = package(&path);
            for entry in lexicon {
                let n = count(&text, &entry.phrase);
                if n > 0 {
                    let key = (package.clone(), entry.phrase.clone());
                    *counts.entry(key.clone()).or_default() += n;
                    let files: &mut Vec<String> = places.entry(key).or_default();
                    files.push(name(&path));
                }
            }
        }
    }
    (counts, places)
}

fn left() -> Counts {
    let text = fs::read_to_string(root().join("xtask/tests/tidy/words_left.txt"));
    let text = text.unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let line = |line: &str| {
        let mut parts = line.split(" | ");
        let mut next = || parts.next().expect("PACKAGE | PHRASE | COUNT").to_owned();
        let key = (next(), next());
        (key, next().parse().expect("a count"))
    };
    lines.map(line).collect()
}

/// Stands for the package in the line of a phrase that occurs in no package.
const NOWHERE: &str = "-";

/// Writes the counts to `words_left.txt`, and a zero for each phrase that does not occur,
/// so that the phrase is known and may not occur again.
fn write_left(lexicon: &[Entry], counts: &Counts) {
    let mut text = String::from(
        "# What is left of the phrases of words.txt, by package. These numbers only fall.\n# PACKAGE | PHRASE | COUNT\n",
    );
    for ((package, phrase), count) in counts {
        text.push_str(&format!("{package} | {phrase} | {count}\n"));
    }
    let gone = |entry: &&Entry| !counts.keys().any(|(_, phrase)| *phrase == entry.phrase);
    for entry in lexicon.iter().filter(gone) {
        text.push_str(&format!("{NOWHERE} | {} | 0\n", entry.phrase));
    }
    fs::write(root().join("xtask/tests/tidy/words_left.txt"), text).expect("words_left.txt");
}

/// Returns the counts that exceed the permitted ones, each with the permitted count.
/// A phrase without a line in `words_left.txt` is new and not limited yet.
fn excess<'a>(counts: &'a Counts, left: &Counts) -> Vec<(&'a (String, String), usize, usize)> {
    let is_known = |phrase: &String| left.keys().any(|(_, known)| known == phrase);
    let found = counts.iter().map(|(key, count)| {
        let allowed = left.get(key).copied().unwrap_or(0);
        (key, *count, allowed)
    });
    found
        .filter(|(key, count, allowed)| count > allowed && is_known(&key.1))
        .collect()
}

#[test]
fn phrases_that_readers_stop_at_become_fewer() {
    let lexicon = lexicon();
    let (counts, places) = counted(&lexicon);
    let left = left();
    let mut more = Vec::new();
    for (key, count, allowed) in excess(&counts, &left) {
        let (package, phrase) = key;
        let entry = lexicon.iter().find(|entry| entry.phrase == *phrase);
        let instead = entry.map_or("", |entry| entry.instead.as_str());
        more.push(format!(
            "{package}: \"{phrase}\" stands {count} times, {allowed} were left; write: {instead} (in {})",
            places[key].join(", ")
        ));
    }
    assert!(more.is_empty(), "{}", more.join("\n"));
    let is_listed = |entry: &Entry| left.keys().any(|(_, phrase)| *phrase == entry.phrase);
    let all_are_listed = lexicon.iter().all(is_listed);
    let mut positive = left;
    positive.retain(|_, count| *count > 0);
    if counts != positive || !all_are_listed {
        if std::env::var_os("WORDS_UPDATE").is_some() {
            write_left(&lexicon, &counts);
            return;
        }
        panic!(
            "xtask/tests/tidy/words_left.txt is out of date, because phrases have become fewer or the lexicon has grown: \
             WORDS_UPDATE=1 cargo test -p xtask --test tidy"
        );
    }
}

#[test]
fn a_phrase_that_had_gone_is_too_many_when_it_comes_back() {
    let counts = |lines: &[(&str, &str, usize)]| -> Counts {
        let key = |(package, phrase, count): &(&str, &str, usize)| {
            (((*package).to_owned(), (*phrase).to_owned()), *count)
        };
        lines.iter().map(key).collect()
    };
    let left = counts(&[(NOWHERE, "gone", 0), ("docs", "left", 2)]);
    let now = counts(&[
        ("docs", "gone", 1),
        ("docs", "left", 2),
        ("sim", "left", 1),
        ("docs", "new", 5),
    ]);
    let found: Vec<_> = excess(&now, &left)
        .into_iter()
        .map(|((package, phrase), count, allowed)| {
            (package.as_str(), phrase.as_str(), count, allowed)
        })
        .collect();
    assert_eq!(found, [("docs", "gone", 1, 0), ("sim", "left", 1, 0)]);
}

#[test]
fn prose_is_comments_strings_and_documents_without_code() {
    let rust = "//! Head of\n//! two lines.\nlet x = \"a string // no comment\"; // tail\nlet c = '\"'; let r = r#\"raw \" text\"#; // `code` end";
    let text = prose(rust, Prose::Slashes);
    for phrase in [
        "head of two lines.",
        "a string // no comment",
        "tail",
        "raw \" text",
        "end",
    ] {
        assert!(text.contains(phrase), "{phrase}: {text}");
    }
    assert!(!text.contains("let") && !text.contains("code"), "{text}");
    let markdown = "Some text.\n```\nfenced\n```\nMore `inline` text.";
    let text = prose(markdown, Prose::Markdown);
    assert!(
        !text.contains("fenced") && !text.contains("inline"),
        "{text}"
    );
    assert_eq!(count("so many, not so manyfold", "so many"), 1);
}
