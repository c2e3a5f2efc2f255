//! Tests of style rules that the compiler cannot check: words, module heads, help texts, limits of size.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use xtask::test::NEED_MORE;

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/decisions.rs"]
mod decisions;
#[path = "tidy/fuzz.rs"]
mod fuzz;
#[path = "tidy/generated.rs"]
mod generated;
#[path = "tidy/heads.rs"]
mod heads;
#[path = "tidy/linked.rs"]
mod linked;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/parts.rs"]
mod parts;
#[path = "tidy/picture.rs"]
mod picture;
#[path = "tidy/prints.rs"]
mod prints;
#[path = "tidy/programs.rs"]
mod programs;
#[path = "tidy/targets.rs"]
mod targets;
#[path = "tidy/unsafe_blocks.rs"]
mod unsafe_blocks;
#[path = "tidy/words.rs"]
mod words;

fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask lies in the workspace")
}

fn files(extension: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let hidden = name.to_string_lossy().starts_with('.');
            if path.is_dir() && !hidden && name != "target" {
                walk(&path, extension, found);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), extension, &mut found);
    assert!(!found.is_empty(), "there are no .{extension} files");
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn name(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Former names of identifiers, each with the usual term that replaces it (docs/glossary.md).
const REPLACED: &[(&str, &str)] = &[
    ("Pace", "ProtocolChooser"),
    ("Hoard", "UnexpectedMemory"),
    ("hoard", "charge"),
    ("unhoard", "discharge"),
    ("garble", "protocol_error"),
    ("Stash", "BufferPool"),
    ("Noticeboard", "Modex"),
    ("Surroundings", "OpenContext"),
    ("Lobby", "Connector"),
    ("Astray", "LeaderError"),
    ("Cx", "Invocation"),
    ("Spoilt", "LengthMismatch"),
    ("Brief", "FastCall"),
    ("Outpost", "Daemon"),
    ("Glimpse", "RankSnapshot"),
    ("mourn", "on_exit"),
    ("Parley", "FallbackAgreement"),
    ("Gallery", "Inspection"),
    ("is_crowded", "is_oversubscribed"),
    ("is_costly", "poll_is_syscall"),
    ("Stillness", "HangDetector"),
    ("HeldCause", "DeferredCause"),
    ("Giant", "GlobalLock"),
    ("tell_on", "set_state_page"),
    ("Desk", "ArrivalSlots"),
    ("Onlooker", "BoardObserver"),
    ("Lookout", "BoardReader"),
    ("befall", "inject"),
    ("Misheard", "ReplyError"),
    ("Dissent", "LevelMismatch"),
    ("lobby", "connector"),
    ("astray", "error"),
    ("icollective", "CollectiveCalls::begin"),
    ("tape", "event_ring"),
    ("SAID_WORDS", "SIGNATURE_WORDS"),
    ("is_through", "is_complete"),
    ("part_from", "disconnect"),
    ("bury", "close, record the death"),
    ("bell", "doorbell"),
    ("bells", "doorbells"),
    ("Room", "RecvTarget"),
    ("Seat", "Membership"),
    ("Seats", "NodeRanks"),
];

/// Former file names that mean nothing to an MPI or HDL engineer.
const RENAMED: &[&str] = &[
    "pace",
    "follow",
    "bound",
    "landing",
    "stash",
    "retract",
    "astray",
    "lobby",
    "farewell",
    "outpost",
    "glimpse",
    "parley",
    "spoilt",
    "cx",
    "misspelt",
    "gallery",
    "bell",
    "room",
    "seat",
    "seats",
    "ear",
    "course",
    "stillness",
    "held_cause",
    "theirs",
    "witness",
    "attendance",
    "unseen",
    "unfreed",
    "said",
    "tape",
];

#[test]
fn old_names_do_not_come_back() {
    let mut seen = Vec::new();
    for path in files("rs") {
        // The benchmark uses the name `pace` for a measured rate, so its files are not checked.
        let name = name(&path);
        if name == "xtask/tests/tidy.rs" || name.starts_with("mpirun/bench/") {
            continue;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if stem.is_some_and(|stem| RENAMED.contains(&stem)) {
            seen.push(format!("{name}: the file has its old name"));
        }
        let text = read(&path);
        let code = text.lines().filter_map(|line| line.split("//").next());
        let words: BTreeSet<&str> = code
            .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
            .collect();
        let replaced = REPLACED.iter().filter(|(word, _)| words.contains(word));
        seen.extend(replaced.map(|(word, now)| format!("{name}: {word} is {now} now")));
    }
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}

#[test]
fn every_module_has_a_head_that_says_what_it_is() {
    let has_head = |text: &str| text.trim_start().starts_with("//!");
    let without: Vec<_> = files("rs")
        .into_iter()
        .filter(|path| !has_head(&read(path)))
        .map(|path| name(&path))
        .collect();
    assert!(
        without.is_empty(),
        "without a head:\n{}",
        without.join("\n")
    );
}

/// Documentation has no examples of its own: rustdoc needs more time to search packages
/// for examples than most tests take, so doc tests are not run.
#[test]
fn examples_in_documentation_are_programs_that_tests_run() {
    let mut found = Vec::new();
    for path in files("rs") {
        let mut is_open = false;
        for (number, line) in (1..).zip(read(&path).lines()) {
            let line = line.trim_start();
            let text = line
                .strip_prefix("//!")
                .or_else(|| line.strip_prefix("///"));
            let Some(kind) = text.and_then(|text| text.trim().strip_prefix("```")) else {
                continue;
            };
            is_open = !is_open;
            let shown = ["text", "ignore", "c", "sh"].contains(&kind);
            if is_open && !shown {
                found.push(format!("{}:{number}", name(&path)));
            }
        }
    }
    assert!(
        found.is_empty(),
        "no test runs these examples; make each a program in examples/ or tests/: {found:#?}"
    );
}

/// The version in Cargo.toml must be that of the newest dated heading of CHANGELOG.md.
#[test]
fn the_version_is_in_the_list_of_changes_with_its_date() {
    let changes = read(&root().join("CHANGELOG.md"));
    let heads = changes.lines().filter_map(|line| line.strip_prefix("## "));
    let heads: Vec<&str> = heads.collect();
    assert_eq!(heads.first(), Some(&"Unreleased"));
    let (version, date) = heads[1].split_once(", ").expect("a version and its date");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let parts: Vec<usize> = date.split('-').map(str::len).collect();
    assert_eq!(parts, [4, 2, 2], "{date} is no date as in 2026-11-28");
}

/// The first command of a user compiles `cargo xtask` itself, which takes minutes on a loaded machine;
/// without `--quiet`, cargo prints which packages it compiles.
#[test]
fn the_first_command_reports_what_it_compiles() {
    let config = read(&root().join(".cargo/config.toml"));
    let alias = config.lines().find(|line| line.starts_with("xtask = "));
    let alias = alias.expect("there is an alias for cargo xtask");
    let words: Vec<&str> = alias.split(['"', ' ']).collect();
    let quiet = ["--quiet", "-q", "-qq"];
    assert!(!words.iter().any(|word| quiet.contains(word)), "{alias}");
}

/// An ignored test must be marked as long, or be in the list of tests whose requirements are not installed.
#[test]
fn tests_that_are_ignored_are_long_or_need_what_is_not_installed() {
    const LONG: &str = "long: cargo xtask test --long";
    let own = Path::new(file!()).file_name();
    let (mut long, mut others) = (0, Vec::new());
    for path in files("rs")
        .into_iter()
        .filter(|path| path.file_name() != own)
    {
        let text = read(&path);
        // Elsewhere the text is in a string or a pattern, not an attribute.
        let starts_a_line = |at: usize| {
            let before = text[..at].rsplit('\n').next();
            before.is_some_and(|before| before.trim().is_empty())
        };
        let marks = text.match_indices("#[ignore");
        for (at, _) in marks.filter(|(at, _)| starts_a_line(*at)) {
            let mark = &text[at..];
            let reason = mark.split('"').nth(1).unwrap_or_default();
            let test = mark.split("fn ").nth(1).unwrap_or_default();
            let test = test.split('(').next().unwrap_or_default();
            match reason == LONG {
                true => long += 1,
                false if NEED_MORE.contains(&test) => {}
                false => others.push(format!("{}: {test}", name(&path))),
            }
        }
    }
    assert!(long > 10, "the marks are written otherwise");
    assert!(
        others.is_empty(),
        "these tests are in no form of cargo xtask test: {others:#?}"
    );
}

/// Returns the texts between a start and an end delimiter, such as the contents of backticks.
fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start)
        .skip(1)
        .filter_map(move |rest| rest.split(end).next())
}

#[test]
fn file_names_in_documents_are_those_of_files() {
    let known: Vec<PathBuf> = ["rs", "c", "f90", "vhd", "md", "toml", "txt"]
        .into_iter()
        .flat_map(files)
        .collect();
    let is_file = |name: &str| known.iter().any(|path| path.ends_with(name));
    let mut astray = Vec::new();
    for path in files("md") {
        let text = read(&path);
        // Text between fences is code.
        let prose = text.split("```").step_by(2);
        for word in prose.flat_map(|part| between(part, "`", "`")) {
            let is_path = word.contains('/')
                && [".rs", ".c", ".f90", ".vhd"]
                    .iter()
                    .any(|end| word.ends_with(end))
                && word
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
            // Absolute paths are on the user's system and not in this repository.
            if is_path && !word.starts_with('/') && !word.starts_with('.') && !is_file(word) {
                astray.push(format!("{}: `{word}`", name(&path)));
            }
        }
    }
    assert!(astray.is_empty(), "{}", astray.join("\n"));
}

#[test]
fn test_programs_that_are_named_are_there() {
    let mut there = BTreeSet::new();
    for path in files("rs") {
        let program = match path.file_name().is_some_and(|name| name == "main.rs") {
            true => path.parent(),
            false => Some(path.as_path()),
        };
        let folder = program.and_then(Path::parent).and_then(Path::file_name);
        if folder.is_some_and(|name| name == "tests") {
            there.extend(program.and_then(Path::file_stem).map(ToOwned::to_owned));
        }
    }
    let mut missing = Vec::new();
    let (mut seen, option) = (0, concat!("--", "test "));
    for path in files("md").into_iter().chain(files("rs")) {
        let text = read(&path);
        for rest in text.split(option).skip(1) {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)));
            let program = rest.split_at(end.unwrap_or(rest.len())).0;
            seen += 1;
            if !there.contains(OsStr::new(program)) {
                missing.push(format!("{}: {option}{program}", name(&path)));
            }
        }
    }
    assert!(seen > 20, "only {seen} commands were found");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Only one function prints messages: names in them may contain control characters.
#[test]
fn sentences_reach_a_terminal_through_the_one_printer() {
    const TOOLS: &[&str] = &[
        "coll-hwbarr/",
        "compat/",
        "mpi-abi/",
        "mpi-base/",
        "mpi-core/",
        "mpirun/",
        "preload/",
        "report/",
        "sim/command/src/main.rs",
        "sim/command/src/watch/",
    ];
    // These files print text for cargo or a compiler's user, and numbers, but no external names.
    const OTHERS: &[&str] = &[
        "build.rs",
        "build/",
        "compat/generate/",
        "/benches/",
        "/examples/",
        "/tests/",
        "/tests.rs",
        "/bench/",
    ];
    let (mut seen, mut past) = (0, Vec::new());
    for path in files("rs") {
        let name = name(&path);
        if !TOOLS.iter().any(|tool| name.starts_with(tool))
            || OTHERS.iter().any(|other| name.contains(other))
        {
            continue;
        }
        let text = read(&path);
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        for (number, line) in (1..).zip(code.lines()) {
            let line = line.split("//").next().unwrap_or_default();
            seen += line.matches("printable::").count();
            let line = line.replace("printable::eprintln!", "");
            let prints = [
                "eprintln!",
                "eprint!",
                "println!",
                "print!",
                "std::io::stderr()",
                " io::stderr()",
            ];
            if prints.iter().any(|print| line.contains(print)) {
                past.push(format!("{name}:{number}"));
            }
        }
    }
    assert!(seen > 50, "the printer has moved");
    assert!(
        past.is_empty(),
        "printable::eprintln! shows control characters: {past:#?}"
    );
}

#[test]
fn every_crate_root_denies_unsafe_code() {
    let roots = files("rs")
        .into_iter()
        .filter(|path| path.ends_with("src/lib.rs"));
    for path in roots {
        let text = read(&path);
        let denies =
            ["deny", "forbid"].map(|how| text.contains(&format!("#![{how}(unsafe_code)]")));
        assert!(
            denies.contains(&true),
            "{} does not deny unsafe code",
            name(&path)
        );
    }
}

#[test]
fn the_help_of_a_parameter_is_one_line() {
    let mut checked = 0;
    let sources = files("rs")
        .into_iter()
        .filter(|path| !path.ends_with("tests.rs") && !path.ends_with("tests/tidy.rs"));
    for path in sources {
        let text = read(&path);
        // `Param::new(framework, component, name, default, level, help)`: `level` is no literal.
        for part in text.split("Param::new(").skip(1) {
            let literals: Vec<&str> = part.split('"').collect();
            let Some(help) = literals
                .get(9)
                .filter(|_| part.trim_start().starts_with('"'))
            else {
                continue;
            };
            checked += 1;
            let fine = !help.is_empty() && !help.contains('\n');
            assert!(fine, "{}: the help {help:?} is not one line", name(&path));
        }
    }
    assert!(checked > 30, "only {checked} parameters were found");
}

/// The only files of the product that may read environment variables: one for the library and the launcher,
/// and one for the small compatibility libraries.
const DOORS: [&str; 2] = ["mpi-base/src/environment.rs", "compat/src/environment.rs"];

/// Folders whose code user programs do not load (tools and tests), so it may read environment variables.
///
/// `hdl` runs Verilator for the port `rtl`, which rejects set-user-ID programs.
const TOOLS: [&str; 4] = ["xtask/", "tests/", "hdl/", "compat/generate/"];

#[test]
fn product_code_reads_the_environment_through_one_door() {
    let reads = ["env::var", "env::vars", "getenv"];
    let mut found = Vec::new();
    let mut doors = 0;
    for path in files("rs") {
        let name = name(&path);
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
        let is_build = name.ends_with("/build.rs") || name.contains("/build/");
        if is_test || is_build || TOOLS.iter().any(|tool| name.starts_with(tool)) {
            continue;
        }
        let text = read(&path);
        // Test modules are at the end of a file and are cut off.
        let product = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        for (number, line) in (1..).zip(product.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            if !reads.iter().any(|read| code.contains(read)) {
                continue;
            }
            match DOORS.contains(&name.as_str()) {
                true => doors += 1,
                false => found.push(format!("{name}:{number}: {}", line.trim())),
            }
        }
    }
    assert!(doors >= DOORS.len(), "the doors are elsewhere now");
    assert!(
        found.is_empty(),
        "a program with more rights than its user would read its user's variables here; mpi_base::environment does not:\n{}",
        found.join("\n")
    );
}

/// Returns the crate roots: the root source files of all libraries and programs.
fn crate_roots() -> Vec<PathBuf> {
    let is_root = |path: &PathBuf| {
        let folder = path.parent().expect("a file lies in a folder");
        let above = folder.parent().expect("a folder lies in a folder");
        let is_program = path.ends_with("main.rs") && above.ends_with("src/bin");
        path.ends_with("src/lib.rs")
            || path.ends_with("src/main.rs")
            || folder.ends_with("src/bin")
            || is_program
    };
    files("rs").into_iter().filter(is_root).collect()
}

/// The only files that may import each other in a cycle, because datatypes are recursive types.
const RECURSIVE: &str = "mpi-core/types/src/datatype/";

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut seen = Vec::new();
    for circle in crate_roots().iter().flat_map(|root| circles::circles(root)) {
        let names: Vec<String> = circle.files.iter().map(|file| name(file)).collect();
        if names.iter().all(|name| name.starts_with(RECURSIVE)) {
            continue;
        }
        seen.push(format!("{} files in a circle:", names.len()));
        let mut between: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for (from, to, what) in &circle.ties {
            between
                .entry((name(from), name(to)))
                .or_default()
                .push(what);
        }
        let ties = between.into_iter();
        seen.extend(
            ties.map(|((from, to), what)| format!("  {from} -> {to}: {}", what.join(", "))),
        );
    }
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}
