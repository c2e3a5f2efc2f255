//! Tests of jobs that connect repeatedly, of the effect of one job's end on the other, and of failing spawns.

use std::path::{Path, PathBuf};
use tests::{Job, Outcome};

fn part(what: &str, file: &Path, ranks: u32) -> Job {
    Job::of("encounters").arg(what).arg(file).ranks(ranks)
}

/// Runs two jobs that connect at a port whose name is in a file; the first job accepts.
fn two_jobs(accepting: impl Fn(&Path) -> Job, connecting: impl Fn(&Path) -> Job) -> [Outcome; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("port");
    let accepting = accepting(&file).start();
    let connecting = connecting(&file).start();
    [accepting.wait(), connecting.wait()]
}

#[track_caller]
fn holds(outcome: &Outcome) {
    assert!(
        outcome.status.success() && outcome.stdout.contains("all claims of encounters hold"),
        "{:?}\n{}{}",
        outcome.status,
        outcome.stdout,
        outcome.stderr
    );
}

fn meet_often(btl: &str, rounds: u32, sizes: &[(u32, u32)]) {
    for &(accepting, connecting) in sizes {
        let job = |what: &str, file: &Path, ranks| {
            let job = part(what, file, ranks).arg(rounds.to_string());
            // A thousand connections take minutes on a loaded machine.
            job.with(["--mca", "btl", btl]).limit(600)
        };
        let outcomes = two_jobs(
            |file| job("accept", file, accepting),
            |file| job("connect", file, connecting),
        );
        outcomes.iter().for_each(holds);
    }
}

#[test]
fn jobs_that_share_memory_part_and_meet_again_at_once() {
    meet_often("sm,self", 60, &[(1, 1), (2, 1), (2, 3)]);
}

#[test]
fn jobs_that_are_connected_by_tcp_part_and_meet_again_at_once() {
    meet_often("tcp,self", 30, &[(1, 1), (2, 1), (2, 3)]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn jobs_part_and_meet_again_a_thousand_times() {
    let sizes = [(1, 1), (1, 2), (2, 1), (3, 2), (4, 4)];
    meet_often("sm,self", 1000, &sizes);
    meet_often("tcp,self", 1000, &sizes);
    meet_often("sm,tcp,self", 1000, &sizes);
}

#[test]
fn ranks_are_notified_of_the_end_of_a_job_whose_ranks_they_have_never_spoken_to() {
    for btl in ["sm,self", "tcp,self"] {
        let with = ["--mca", "btl", btl];
        let [awaiting, perished] = two_jobs(
            |file| part("await", file, 3).arg("perish").with(with),
            |file| part("perish", file, 3).with(with),
        );
        holds(&awaiting);
        assert!(!perished.status.success());
    }
}

#[test]
fn where_a_job_survives_a_death_other_jobs_are_notified_of_that_death_alone() {
    let [awaiting, lost] = two_jobs(
        |file| part("await", file, 2).arg("lose"),
        |file| part("lose", file, 3).with(["--with-ft", "ulfm"]),
    );
    holds(&awaiting);
    holds(&lost);
}

#[test]
fn a_child_that_dies_after_it_has_parted_from_its_parent_ends_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = part("survive", &folder.path().join("sign"), 2).run();
    assert!(
        outcome.stdout.contains("all claims of encounters hold"),
        "{}",
        outcome.stderr
    );
    // mpirun's exit status is that of the first failure.
    assert_eq!(outcome.status.code(), Some(128 + 9));
    let said = "of spawned job 1 (of 1; ";
    let ends = "was killed by signal 9 (SIGKILL)";
    let on = "Jobs that are not connected with it go on.";
    for words in [said, ends, on] {
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
}

/// Writes an executable script and returns its path.
fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    bounded::write_program(&path, text).expect("a program");
    path
}

#[test]
fn spawns_that_cannot_come_about_fail_at_all_members_and_the_job_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = script(folder.path(), "broken", "#!/no/such/interpreter\n");
    for ranks in [1, 2] {
        part("futile", &broken, ranks).holds();
    }
}

#[test]
fn spawns_on_another_host_that_cannot_come_about_fail_at_all_members() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = script(folder.path(), "broken", "#!/no/such/interpreter\n");
    // The host `elsewhere` does not exist: the script runs its launcher on this machine.
    let agent = script(
        folder.path(),
        "agent",
        "#!/bin/sh\nshift\nexec sh -c \"$*\"\n",
    );
    let agent = agent.display().to_string();
    let with = [
        "--launch-agent",
        &agent,
        "--host",
        "localhost:2,elsewhere:4",
    ];
    part("far", &broken, 2).arg("elsewhere").with(with).holds();
}
