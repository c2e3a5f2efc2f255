//! Test that libraries and installed programs do not print by `println!`, which panics if standard output is closed or full.

use super::{files, name, read};

/// Packages that are not installed, and the packages whose output only cargo reads.
const EXEMPT: &[&str] = &["xtask/", "tests/", "fuzz/", "compat/generate/"];

/// Returns true if a line of code calls `println!` or `print!` of the standard library.
fn prints(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["println!(", "print!("].iter().any(|call| {
        let before = code.split(call).next().filter(|before| *before != code);
        // `eprintln!` and names such as `sprint!` end with the same letters; `printable::` has its own macros.
        before.is_some_and(|before| {
            !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
        })
    })
}

#[test]
fn installed_programs_do_not_panic_if_their_output_is_full() {
    let is_source = |name: &str| {
        name.contains("/src/") && !EXEMPT.iter().any(|folder| name.starts_with(folder))
    };
    let found: Vec<String> = files("rs")
        .iter()
        .filter(|path| is_source(&name(path)))
        .flat_map(|path| {
            let text = read(path);
            let lines = (1..).zip(text.lines().map(str::to_owned));
            let lines: Vec<(u32, String)> = lines.filter(|(_, line)| prints(line)).collect();
            lines
                .into_iter()
                .map(|(number, line)| format!("{}:{number}: {}", name(path), line.trim()))
        })
        .collect();
    assert!(
        found.is_empty(),
        "use printable::to_stdout, and handle its error:\n{}",
        found.join("\n")
    );
}

#[test]
fn calls_of_the_standard_macros_are_recognised() {
    for line in [
        "println!(\"x\");",
        "    print!(\"{x}\");",
        "x => println!()",
    ] {
        assert!(prints(line), "{line}");
    }
    let others = [
        "eprintln!(\"x\");",
        "printable::eprintln!(\"x\");",
        "// println!(\"x\")",
        "to_stdout(&text)",
    ];
    for line in others {
        assert!(!prints(line), "{line}");
    }
}
