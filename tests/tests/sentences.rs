//! What the library says to common mistakes, as a user reads it.

use tests::Job;

#[test]
fn mistakes_are_answered_with_sentences() {
    let outcome = Job::of("mistakes").ranks(2).succeeds();
    insta::assert_snapshot!(outcome.stdout);
}

#[test]
fn members_that_call_different_collectives_are_told_who_calls_what() {
    let job = Job::of("mismatch").ranks(4);
    let outcome = job.with(["--mca", "coll_base_check", "true"]).succeeds();
    insta::assert_snapshot!(outcome.stdout);
}

#[test]
fn an_unknown_algorithm_ends_the_job_with_those_there_are() {
    let job = Job::of("ring").ranks(2);
    let outcome = job
        .with(["--mca", "coll_tuned_allreduce_algorithm", "fastest"])
        .run();
    insta::assert_snapshot!(outcome.stderr);
}

#[test]
fn a_malformed_decision_table_ends_the_job_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("rules.txt");
    std::fs::write(
        &table,
        "# mine\nbcast 2 0 any binomial\nbcast 2 8k some chain\n",
    )
    .expect("a table");
    let job = Job::of("ring").ranks(2);
    let outcome = job
        .with([
            "--mca".as_ref(),
            "coll_tuned_rules".as_ref(),
            table.as_os_str(),
        ])
        .run();
    let said = outcome
        .stderr
        .replace(&table.display().to_string(), "rules.txt");
    insta::assert_snapshot!(said);
}
