//! Tests of several MPI programs that a script runs one after the other as the same ranks.

use std::path::Path;

use tests::hosts::Hosts;
use tests::{Job, compile, installation};
use xtask::process::Outcome;

const TCP: [&str; 3] = ["--mca", "btl", "self,tcp"];

/// Returns a job whose ranks are shells; the script refers to the C programs as `$0`, `$1` and so on.
fn script(text: &str, programs: &[&str], ranks: u32) -> Job {
    let job = Job::command(Path::new("sh")).under(&installation().join("bin/mpirun"));
    with_programs(job.ranks(ranks), text, programs)
}

fn with_programs(job: Job, text: &str, programs: &[&str]) -> Job {
    let job = job.arg("-c").arg(text);
    programs
        .iter()
        .fold(job, |job, name| job.arg(compile(name)))
}

/// Checks the number of last lines that each program has printed.
#[track_caller]
fn held(outcome: &Outcome, programs: &[(&str, usize)], ranks: u32) {
    for (name, times) in programs {
        let line = format!("all claims of {name} hold on {ranks} ranks");
        let found = outcome.stdout.matches(&line).count();
        assert_eq!(found, *times, "{name}: {outcome:?}");
    }
}

/// Returns the error message of the program that mpirun has refused.
#[track_caller]
fn refusal(outcome: &Outcome, rank: u32, size: u32) -> String {
    let begin = format!(
        "MPI_Init: the job cannot be found: rank {rank} of {size} has run a program that calls MPI_Init before, and this process cannot be its next one: "
    );
    let lines = outcome.stderr.lines();
    let said = lines.filter_map(|line| line.split_once(&begin));
    let all: Vec<&str> = said.map(|(_, why)| why).collect();
    let [why] = all[..] else {
        panic!("{} refusals of rank {rank}: {outcome:?}", all.len())
    };
    why.to_owned()
}

#[test]
fn programs_run_one_after_the_other_and_each_is_a_job_of_all_ranks() {
    let text = "\"$0\" && \"$1\" && \"$0\" && \"$2\"";
    for ranks in [1, 2, 3] {
        for way in [&[][..], &TCP[..]] {
            let job = script(text, &["hello", "ring", "requests"], ranks).with(way);
            let counts = [("hello", 2), ("ring", 1), ("requests", 1)];
            held(&job.succeeds(), &counts, ranks);
        }
    }
}

/// The ranks of a section each run their own programs; the k-th programs of all ranks are one job.
#[test]
fn sections_of_the_command_line_run_their_own_scripts() {
    let hello = compile("hello");
    let job = script("\"$0\" && \"$0\"", &["hello"], 1);
    let job = job.arg(":").arg("-n").arg("2").arg("sh").arg("-c");
    let job = job.arg("\"$0\" && sleep 0.2 && \"$0\"").arg(hello);
    held(&job.succeeds(), &[("hello", 2)], 3);
}

#[test]
fn programs_on_several_hosts_run_one_after_the_other() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let job = hosts.remote_job(Path::new("/bin/sh"), 2);
    let text = "\"$0\" && \"$1\" && \"$0\"";
    let outcome = with_programs(job, text, &["hello", "ring"]).succeeds();
    held(&outcome, &[("hello", 2), ("ring", 1)], 4);
}

/// Ranks that have inherited no memory find each other by cards, in each program anew.
#[test]
fn programs_whose_ranks_inherit_no_memory_run_one_after_the_other() {
    let text = "unset PORTCULLIS_NODE_FD; \"$0\" && \"$1\"";
    let outcome = script(text, &["hello", "ring"], 2).succeeds();
    held(&outcome, &[("hello", 1), ("ring", 1)], 2);
}

#[test]
fn later_programs_spawn_use_the_hardware_barrier_and_end_by_their_own_exit_codes() {
    let text = "\"$0\" && \"$1\" spawn && \"$0\"";
    let outcome = script(text, &["hello", "dynamic"], 2).succeeds();
    held(&outcome, &[("hello", 2), ("dynamic", 1)], 2);
    let job = script("\"$0\" && \"$1\" && \"$0\"", &["ring", "barrier_loop"], 2);
    job.with(["--mca", "coll_hwbarr_port", "sim"]).succeeds();
    let outcome = script("\"$0\" && \"$0\"; exit 7", &["hello"], 2).run();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
}

#[test]
fn a_program_is_refused_when_another_rank_has_ended() {
    let text = "\"$0\"; [ $PMI_RANK = 1 ] || { \"$0\"; echo status $?; }";
    let outcome = script(text, &["hello"], 2).run();
    held(&outcome, &[("hello", 1)], 2);
    assert!(!outcome.stdout.contains("status 0"), "{outcome:?}");
    let why = refusal(&outcome, 0, 2);
    assert!(
        why.starts_with("rank 1 has ended and runs no further program"),
        "{why}"
    );
}

#[test]
fn a_program_is_refused_if_the_earlier_one_has_not_finalized() {
    let text = "\"$1\" quiet 0; \"$0\"; echo status $?";
    let outcome = script(text, &["hello", "leave"], 1).run();
    assert!(!outcome.status.success(), "{outcome:?}");
    assert!(!outcome.stdout.contains("status 0"), "{outcome:?}");
    let why = refusal(&outcome, 0, 1);
    assert!(
        why.starts_with("the earlier program has not called MPI_Finalize"),
        "{why}"
    );
}

#[test]
fn options_that_describe_one_program_of_a_rank_refuse_a_second_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let file = file.to_str().expect("a name in UTF-8");
    let ways: [&[&str]; 5] = [
        &["--with-ft", "ulfm"],
        &["--trace", file],
        &["--matrix", file],
        &["--checkpoint-dir", file],
        &["--record", file],
    ];
    for way in ways {
        let text = "\"$0\"; \"$0\"; echo status $?";
        let outcome = script(text, &["hello"], 1).with(way).run();
        held(&outcome, &[("hello", 1)], 1);
        let why = refusal(&outcome, 0, 1);
        let said = format!("with {}", way[0]);
        assert!(why.starts_with(&said), "{said}: {why}");
        let _ = std::fs::remove_file(file);
        let _ = std::fs::remove_dir_all(file);
    }
}

/// The state pages of the later program are those that mpirun reads.
#[test]
fn a_later_program_that_cannot_go_on_is_ended_with_a_report() {
    let job = script("\"$0\" && \"$1\" crossed", &["hello", "hang"], 2);
    let outcome = job.with(["--timeout", "60"]).run();
    assert_eq!(outcome.status.code(), Some(125), "{outcome:?}");
    let report = "ranks 0, 1 wait for each other in a circle";
    assert!(outcome.stderr.contains(report), "{outcome:?}");
}

#[test]
fn a_rank_that_dies_in_a_later_program_is_reported_with_its_last_call() {
    let text = "\"$0\" && exec \"$1\" kill 1";
    let outcome = script(text, &["hello", "memory_gone"], 2).run();
    held(&outcome, &[("hello", 1)], 2);
    assert_eq!(outcome.status.code(), Some(128 + 9), "{outcome:?}");
    assert!(outcome.stderr.contains("rank 1 (of 2; "), "{outcome:?}");
    assert!(outcome.stderr.contains("SIGKILL"), "{outcome:?}");
}
