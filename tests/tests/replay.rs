//! Tests of record and replay: a job whose results depend on timing is recorded and then replayed repeatedly.

use std::path::Path;
use tests::hosts::Hosts;
use tests::{Job, compile};

/// Runs a job and returns the results of rank 0, which show the order of events.
fn seen(job: Job) -> String {
    let outcome = job.run();
    let line = outcome.stdout.lines().find(|line| line.starts_with("seen"));
    match line {
        Some(line) => line.to_string(),
        None => panic!("nothing seen:\n{}{}", outcome.stdout, outcome.stderr),
    }
}

fn race(option: &str, folder: &Path) -> Job {
    let job = Job::of("race").ranks(4);
    job.with([option.as_ref(), folder.as_os_str()])
}

#[test]
fn a_replay_repeats_what_was_recorded_twenty_times() {
    let place = tempfile::tempdir().expect("a folder");
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    let recorded = seen(race("--record", &first));
    // Two recordings do not have the same order by chance, because each contains over a hundred decisions.
    assert_ne!(recorded, seen(race("--record", &second)));
    for _ in 0..20 {
        assert_eq!(seen(race("--replay", &first)), recorded);
    }
}

#[test]
fn a_cancelled_receive_is_cancelled_again_although_its_message_is_faster_this_time_and_the_other_way_round()
 {
    let place = tempfile::tempdir().expect("a folder");
    let run = |option: &str, folder: &str, way: &str| {
        let job = Job::of("cancelled").ranks(2).arg(way);
        seen(job.with([option.as_ref(), place.path().join(folder).as_os_str()]))
    };
    for (folder, way, other, expected) in [
        ("in time", "late", "early", "seen cancelled 1"),
        ("too late", "early", "late", "seen cancelled 0"),
    ] {
        assert_eq!(run("--record", folder, way), expected);
        assert_eq!(run("--replay", folder, other), expected);
        assert_eq!(run("--replay", folder, way), expected);
    }
}

#[test]
fn locks_and_accesses_of_windows_come_in_the_recorded_order() {
    let place = tempfile::tempdir().expect("a folder");
    let run = |option: &str, folder: &str| -> Vec<String> {
        let folder = place.path().join(folder);
        let job = Job::of("turns").ranks(3);
        let outcome = job.with([option.as_ref(), folder.as_os_str()]).succeeds();
        let lines = outcome.stdout.lines().filter(|line| line.contains("seen"));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let recorded = run("--record", "first");
    assert_eq!(recorded.len(), 3, "{recorded:?}");
    assert_ne!(recorded, run("--record", "second"));
    for _ in 0..10 {
        assert_eq!(run("--replay", "first"), recorded);
    }
}

#[test]
fn ranks_of_two_hosts_repeat_a_run_as_those_of_one() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("run");
    let run = |option: &str| {
        let job = hosts.remote_job(&compile("race"), 2);
        seen(job.with([option.as_ref(), folder.as_os_str()]))
    };
    let recorded = run("--record");
    for _ in 0..3 {
        assert_eq!(run("--replay"), recorded);
    }
}

#[test]
fn threads_that_call_at_once_are_not_promised_while_a_run_is_recorded() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("run");
    for option in ["--record", "--replay"] {
        let job = Job::of("level").ranks(2);
        let outcome = job.with([option.as_ref(), folder.as_os_str()]).succeeds();
        let said = "rank 0: a run that is recorded or replayed follows one order of calls in each rank, \
                    so MPI_THREAD_SERIALIZED is provided instead of MPI_THREAD_MULTIPLE";
        assert_eq!(
            outcome.stderr.matches(said).count(),
            1,
            "{}",
            outcome.stderr
        );
        assert_eq!(outcome.stdout.matches("provided serialized").count(), 2);
    }
    let plain = Job::of("level").ranks(2).succeeds();
    assert_eq!(plain.stdout.matches("provided multiple").count(), 2);
}

#[test]
fn a_run_that_was_killed_can_be_repeated() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("run");
    let recorded = seen(race("--record", &folder).arg("die"));
    assert_eq!(seen(race("--replay", &folder).arg("die")), recorded);
}

#[test]
fn a_program_that_goes_another_way_ends_with_a_sentence() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("run");
    race("--record", &folder).succeeds();
    let outcome = race("--replay", &folder).arg("other").run();
    assert!(!outcome.status.success());
    let sentence = "the replay has left the recording on rank 0 at decision 1: the program calls MPI_Iprobe or MPI_Improbe, \
                    recorded is a receive with a wildcard, which found the message from rank";
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    let outcome = race("--replay", &folder).ranks(3).run();
    assert!(!outcome.status.success(), "a job of another size");
}

#[test]
fn what_is_there_is_not_overwritten_unless_it_is_a_recording() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("run");
    race("--record", &folder).succeeds();
    race("--record", &folder).succeeds();
    std::fs::write(folder.join("thesis.tex"), "all of it").expect("written");
    let outcome = race("--record", &folder).run();
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.stderr.contains("thesis.tex"), "{}", outcome.stderr);
    let outcome = race("--replay", place.path()).run();
    assert!(
        outcome.stderr.contains("there is no recording"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_damaged_recording_is_refused_with_a_sentence() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("run");
    seen(race("--record", &folder));
    let file = folder.join("rank.0");
    let whole = std::fs::read(&file).expect("a recording");
    // Damaged bytes of the record that begins at byte 16: in its call, in its value, and in an unused byte.
    for byte in [16, 18, 21] {
        let mut bytes = whole.clone();
        bytes[byte] ^= 1;
        std::fs::write(&file, bytes).expect("written");
        let outcome = race("--replay", &folder).run();
        assert!(!outcome.status.success());
        let said = format!("the recording {} is damaged at byte 16", file.display());
        assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    }
}
