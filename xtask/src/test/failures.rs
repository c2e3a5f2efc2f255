//! Extracts the failed tests and their messages from a test program's output.
//!
//! For each failed test, libtest prints a section with the test's output, panic message and backtrace:
//!
//! ```text
//! ---- module::name stdout ----
//! thread 'module::name' (4711) panicked at src/module.rs:12:5:
//! assertion failed: ready
//! stack backtrace:
//! ```
//!
//! Other programs, and test programs killed by a signal, print no such section;
//! for these the last lines of the output are used.

/// Maximum number of lines that are printed of a test's message.
const MOST_LINES: usize = 12;
/// Maximum number of tests whose messages are printed again.
const MOST_TESTS: usize = 10;
/// Maximum number of last lines that are printed of a program without sections.
const LAST_LINES: usize = 8;

/// Returns lines with the name of each failed test and, indented, its message;
/// empty if the program printed nothing or all its tests passed.
pub fn summary(printed: &[u8]) -> Vec<String> {
    let printed = String::from_utf8_lossy(printed);
    let sections = sections(&printed);
    // All tests passed: the program failed because it left files behind.
    if sections.is_empty() && printed.contains("\ntest result: ok.") {
        return Vec::new();
    }
    if sections.is_empty() {
        let lines: Vec<_> = printed
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        return last.iter().map(|line| (*line).to_owned()).collect();
    }
    let mut summary = Vec::new();
    for (name, lines) in sections.iter().take(MOST_TESTS) {
        summary.push((*name).to_owned());
        summary.extend(message(lines).iter().map(|line| format!("  {line}")));
    }
    if let more @ 1.. = sections.len().saturating_sub(MOST_TESTS) {
        summary.push(format!("and {more} more tests"));
    }
    summary
}

/// Returns the name of each failed test with the lines of its section.
fn sections(printed: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut is_open = false;
    for line in printed.lines() {
        let head = line.strip_prefix("---- ").and_then(|rest| {
            let name = rest.strip_suffix(" ----")?;
            name.strip_suffix(" stdout")
        });
        match (head, line) {
            (Some(name), _) => {
                sections.push((name, Vec::new()));
                is_open = true;
            }
            // After the last section, libtest lists the failed tests.
            (None, "failures:") => is_open = false,
            (None, line) if is_open => {
                if let Some((_, lines)) = sections.last_mut() {
                    lines.push(line);
                }
            }
            (None, _) => {}
        }
    }
    sections
}

/// Returns the location and the message of the panic, without the backtrace and the test's own output.
fn message<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let panicked = |line: &&str| line.starts_with("thread '") && line.contains(" panicked at ");
    let begin = lines.iter().position(panicked).unwrap_or(0);
    let is_behind =
        |line: &&&str| line.starts_with("stack backtrace:") || line.starts_with("note: ");
    let message = lines[begin..].iter().take_while(|line| !is_behind(line));
    let message = message.filter(|line| !line.trim().is_empty());
    message.take(MOST_LINES).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
running 3 tests
test a::first ... FAILED
test a::second ... FAILED
test a::third ... ok

failures:

---- a::first stdout ----
it prints this first

thread 'a::first' (20966) panicked at sim/tests/a.rs:112:13:
assertion `left == right` failed: abort
  left: (1, \"signal 11\")
 right: (0, \"signal 6\")
stack backtrace:
   0: __rustc::rust_begin_unwind
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.

---- a::second stdout ----
Error: NotFound


failures:
    a::first
    a::second

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.21s
";

    #[test]
    fn each_failed_test_is_named_with_its_message() {
        assert_eq!(
            summary(TWO.as_bytes()),
            [
                "a::first",
                "  thread 'a::first' (20966) panicked at sim/tests/a.rs:112:13:",
                "  assertion `left == right` failed: abort",
                "    left: (1, \"signal 11\")",
                "   right: (0, \"signal 6\")",
                "a::second",
                "  Error: NotFound",
            ]
        );
    }

    #[test]
    fn a_program_that_is_no_test_program_is_quoted_with_its_last_lines() {
        let lines: Vec<_> = (0..20).map(|n| format!("line {n}")).collect();
        let summary = summary(lines.join("\n").as_bytes());
        assert_eq!(summary, lines[20 - LAST_LINES..]);
    }

    #[test]
    fn many_failures_are_counted() {
        let section =
            |n| format!("---- t{n} stdout ----\nthread 't{n}' (1) panicked at a.rs:1:1:\n");
        let text: String = (0..12).map(section).collect();
        let summary = summary(text.as_bytes());
        assert_eq!(summary.last().map(String::as_str), Some("and 2 more tests"));
    }
}
