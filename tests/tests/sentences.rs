//! What the library says to common mistakes, as a user reads it.

use tests::Job;

#[test]
fn mistakes_are_answered_with_sentences() {
    let outcome = Job::of("mistakes").ranks(2).succeeds();
    insta::assert_snapshot!(without_handles(&outcome.stdout));
}

/// The text with every handle of an object as `0x...`: which one the library gives out is its own affair.
fn without_handles(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        text + "0x..." + rest
    })
}
