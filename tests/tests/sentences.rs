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

#[test]
fn members_that_call_different_collectives_are_told_who_calls_what() {
    let job = Job::of("mismatch").ranks(4);
    let outcome = job.with(["--mca", "coll_base_check", "true"]).succeeds();
    insta::assert_snapshot!(outcome.stdout);
}

/// A job that does not start says so on every rank that comes so far, so what is read is one sentence.
fn says(name: &str, value: &std::ffi::OsStr, sentence: &str) {
    let arguments = ["--mca".as_ref(), name.as_ref(), value];
    let outcome = Job::of("ring").ranks(2).with(arguments).run();
    assert!(!outcome.status.success());
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
}

#[test]
fn an_unknown_algorithm_ends_the_job_with_those_there_are() {
    says(
        "coll_tuned_allreduce_algorithm",
        "fastest".as_ref(),
        "coll_tuned_allreduce_algorithm is \"fastest\", but one of recursive_doubling, reduce_bcast, linear, ring, segmented_ring, rabenseifner as the algorithm of allreduce is expected",
    );
}

#[test]
fn a_malformed_decision_table_ends_the_job_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("rules.txt");
    let rules = "# mine\nbcast 2 0 any binomial\nbcast 2 8k some chain\n";
    std::fs::write(&table, rules).expect("a table");
    says(
        "coll_tuned_rules",
        table.as_os_str(),
        "line 3, \"bcast 2 8k some chain\": expected any or shared in the column of cores",
    );
}
