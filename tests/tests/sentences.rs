//! What the library says to common mistakes, as a user reads it.

use tests::Job;

#[test]
fn mistakes_are_answered_with_sentences() {
    let outcome = Job::of("mistakes").ranks(2).succeeds();
    insta::assert_snapshot!(outcome.stdout);
}
