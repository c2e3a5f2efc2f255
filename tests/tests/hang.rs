//! Tests of hang reports, which name the ranks for which each rank waits, and the rank that causes the hang.

use rustix::process::Signal;
use std::ffi::OsStr;
use tests::Job;
use tests::hosts::Hosts;

/// Runs a job that hangs, and returns its report without the parts that differ between runs.
fn report_of(job: Job) -> String {
    let outcome = job.with(["--timeout", "1500ms", "--end-dead", "no"]).run();
    assert_eq!(outcome.status.code(), Some(124), "{}", outcome.stderr);
    let (_, report) = outcome
        .stderr
        .split_once("All ranks are ended.\n")
        .unwrap_or_else(|| panic!("no report in:\n{}", outcome.stderr));
    let mut text = String::new();
    // A rank may print this error if a rank on another host was ended a moment before.
    let complaint = |line: &str| line.contains("cannot arrive: the connection between");
    for line in report.lines().filter(|line| !complaint(line)) {
        // The waiting time of a rank differs between runs and is removed.
        match line.rsplit_once(", for ") {
            Some((before, time)) if time.ends_with(" s") => text += before,
            _ => text += line,
        }
        text += "\n";
    }
    text
}

fn hang(way: &str, ranks: u32) -> Job {
    Job::of("hang").arg(way).ranks(ranks)
}

/// Makes a test for each mistake, with a snapshot of the report that a reviewer can read.
macro_rules! mistakes {
    ($($claim:ident: $way:literal on $ranks:literal;)*) => {$(
        #[test]
        fn $claim() {
            insta::assert_snapshot!(report_of(hang($way, $ranks)));
        }
    )*};
}

mistakes! {
    crossed_sends_are_a_circle: "crossed" on 2;
    a_wrong_tag_is_named: "tag" on 2;
    a_missing_receive_is_found: "missing" on 2;
    a_rank_that_computes_is_the_culprit: "computes" on 2;
    a_stopped_rank_is_the_culprit: "stopped" on 2;
    a_rank_that_has_left_is_the_culprit: "left" on 2;
    different_collectives_are_told_apart: "collective" on 2;
    a_wrong_root_is_named: "root" on 2;
    members_that_differ_and_one_that_computes_are_named: "absent" on 4;
    a_receive_from_any_source_without_a_possible_sender_is_found: "any" on 3;
    what_a_waitall_waits_for_is_named: "waitall" on 2;
    ranks_of_other_communicators_are_found_in_the_job: "inner" on 3;
    the_other_group_of_an_intercommunicator_is_missing: "inter" on 3;
    a_rank_that_waits_for_itself_is_reported: "self" on 1;
    other_lengths_of_a_scatter_are_suspected: "length" on 2;
}

#[test]
fn the_holder_of_a_lock_is_named_and_part_of_the_circle() {
    let report = report_of(Job::of("held_lock").ranks(3));
    for line in [
        "ranks 1, 2 wait for each other in a circle:",
        "rank 2 waits in MPI_Win_lock for the lock of rank 0 of window board, held by rank 1 of the job",
    ] {
        assert!(report.contains(line), "no {line:?} in:\n{report}");
    }
}

#[test]
fn what_a_rank_waits_for_at_a_window_is_named() {
    let ways = [
        (
            "computes",
            "rank 2 waits in MPI_Win_lock for the lock of rank 0 of window board, held by rank 1 of the job",
        ),
        (
            "post",
            "rank 2 waits in MPI_Win_start for rank 1 to call MPI_Win_post on window board",
        ),
        (
            "complete",
            "rank 2 waits in MPI_Win_wait for rank 1 to call MPI_Win_complete on window board",
        ),
    ];
    // If the other rank is outside MPI for long enough, the report also says for how long.
    for (way, line) in ways {
        let report = report_of(Job::of("held_lock").arg(way).ranks(3));
        assert!(report.contains(line), "no {line:?} in:\n{report}");
        let culprit = "waits for rank 1, which computes";
        let found = report.contains(culprit) || report.contains("wait for rank 1, which computes");
        assert!(found, "no {culprit:?} in:\n{report}");
    }
}

#[test]
fn a_straggling_wire_of_the_hardware_barrier_is_named() {
    let job = hang("crossed", 2).with(["--mca", "coll_hwbarr_port", "sim"]);
    let report = report_of(job);
    assert!(
        !report.contains("hardware barrier"),
        "no rank is in a barrier:\n{report}"
    );
    let job = hang("straggler", 3).with(["--mca", "coll_hwbarr_port", "sim"]);
    insta::assert_snapshot!(report_of(job));
}

#[test]
fn tools_read_the_report_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hang.json");
    report_of(hang("crossed", 2).with([OsStr::new("--hang-report"), file.as_os_str()]));
    let text = std::fs::read_to_string(&file).expect("a report");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let finding = &json["jobs"][0]["findings"][0];
    assert_eq!(finding["kind"], "circle", "{text}");
    assert_eq!(finding["ranks"], serde_json::json!([0, 1]));
    let rank = &json["jobs"][0]["ranks"][1]["snapshot"];
    assert_eq!(rank["call"], "MPI_Ssend");
    assert_eq!(rank["waiting"]["send"]["tag"], 7);
}

#[test]
fn ranks_of_other_hosts_are_in_the_report() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let program = tests::compile("hang");
    insta::assert_snapshot!(report_of(hosts.remote_job(&program, 1).arg("crossed")));
}

#[test]
fn a_hang_and_a_signal_make_reports_and_the_job_goes_on() {
    let job = Job::of("leave").arg("wait").ranks(3);
    let job = job.with(["--hang-after", "300ms"]).start();
    job.ready(3);
    let (still, circle) = (
        "nothing has moved for 0.3 s",
        "ranks 0, 1, 2 wait for each other in a circle",
    );
    job.complains(circle, 1);
    // A second report of the same hang would be printed in this time, if mpirun printed one.
    std::thread::sleep(std::time::Duration::from_millis(700));
    job.signal(Signal::USR1);
    job.complains(circle, 2);
    job.signal(Signal::TERM);
    let said = job.wait().stderr;
    assert_eq!(said.matches(still).count(), 1, "{said}");
    assert_eq!(said.matches(circle).count(), 2, "{said}");
}
