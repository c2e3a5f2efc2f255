//! Fault tolerance (ULFM): communicators that are revoked, and jobs that survive the death of some of their ranks, in real processes.

use tests::Job;

const TCP: [&str; 3] = ["--mca", "btl", "tcp,self"];

/// A job of `survivors` in which ranks die by `kill -9`; which and when, the seed says.
fn survivors(what: &str, ranks: u32, seed: u32) -> Job {
    let job = Job::of("survivors").arg(what).arg(seed.to_string());
    job.with(["--with-ft", "ulfm"]).ranks(ranks)
}

#[test]
fn communicators_are_revoked_agreed_on_and_shrunk_though_nobody_dies() {
    for ranks in [1, 2, 3, 5, 8] {
        Job::of("revoked").ranks(ranks).holds();
        Job::of("revoked").ranks(ranks).with(TCP).holds();
    }
}

#[test]
fn every_call_that_a_death_concerns_says_so_and_the_others_go_on() {
    for ranks in [2, 3, 5] {
        survivors("dead", ranks, 1).holds();
        survivors("dead", ranks, 1).with(TCP).holds();
    }
}

#[test]
fn a_loop_of_collectives_is_revoked_and_shrunk_whenever_somebody_dies() {
    for seed in 1..=3 {
        survivors("loop", 7, seed).holds();
        survivors("loop", 4, seed).with(TCP).holds();
    }
}

#[test]
fn dead_ranks_are_replaced_in_their_places_and_get_their_states_back_from_their_neighbours() {
    // Those that have the last sum leave while others wait for it: a leave is no failure. Which of the two comes first is chance.
    for ranks in [2, 3, 6, 6, 6, 6, 6, 6] {
        survivors("checkpoint", ranks, 1).holds();
    }
}

#[test]
fn a_pool_goes_on_when_its_workers_die() {
    for ranks in [2, 5, 8] {
        survivors("pool", ranks, 1).holds();
    }
}

#[test]
fn windows_and_files_of_the_dead_fail_with_the_right_class_and_are_freed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    for ranks in [2, 3, 5] {
        survivors("memory", ranks, 1).arg(&file).holds();
        let by_messages = survivors("memory", ranks, 1).arg(&file);
        by_messages.with(TCP).with(["--mca", "osc", "am"]).holds();
    }
}

/// Also in MPI_Init, in a spawn, and in the recovery from another death.
#[test]
fn any_process_may_die_at_any_moment() {
    let outcome = survivors("soak", 6, 1).arg("8").arg("6").succeeds();
    let line = "all claims of survivors hold";
    assert!(outcome.stdout.contains(line), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("The job goes on without it (--with-ft ulfm)."),
        "{}",
        outcome.stderr
    );
}

#[test]
fn without_the_option_a_death_ends_the_job_as_ever() {
    let outcome = Job::of("survivors").arg("dead").arg("1").ranks(3).run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("All other ranks are ended."),
        "{}",
        outcome.stderr
    );
}
