//! One binary, two libraries, two launchers: everybody starts everybody.

use std::io::{Seek as _, Write as _};
use std::path::Path;

use tests::hosts::Hosts;
use tests::{Job, compile, installation, mpich};

/// Programs that touch start, point-to-point and collectives.
const PROGRAMS: [&str; 3] = ["hello", "ring", "operators"];

fn everybody(launcher: &Path, library: &Path) {
    for program in PROGRAMS {
        for ranks in [1, 2, 4] {
            Job::command(&compile(program))
                .under(launcher)
                .on_library_of(library)
                .ranks(ranks)
                .holds();
        }
    }
}

#[test]
fn hydra_starts_programs_on_our_library() {
    let Some(mpich) = mpich() else { return };
    everybody(&mpich.bin("mpiexec.hydra"), installation());
}

#[test]
fn our_mpirun_starts_programs_on_mpichs_library() {
    let Some(mpich) = mpich() else { return };
    everybody(&installation().join("bin/mpirun"), &mpich.path());
}

#[test]
fn the_same_binary_reports_the_library_it_runs_on() {
    let Some(mpich) = mpich() else { return };
    let bench = installation().join("bin/mpi-bench");
    for (prefix, word) in [(installation(), "portcullis"), (&mpich.path(), "mpich")] {
        for launcher in [
            installation().join("bin/mpirun"),
            mpich.bin("mpiexec.hydra"),
        ] {
            let outcome = Job::command(&bench)
                .under(&launcher)
                .ranks(2)
                .arg("latency")
                .args_for_a_short_run()
                .arg("--lib")
                .arg(prefix.join("lib"))
                .succeeds();
            assert!(
                outcome.stdout.to_lowercase().contains(word),
                "{word} is not in {}",
                outcome.stdout
            );
        }
    }
}

trait ShortRun {
    fn args_for_a_short_run(self) -> Self;
}

impl ShortRun for Job {
    fn args_for_a_short_run(self) -> Self {
        self.arg("--sizes")
            .arg("8")
            .arg("--iterations")
            .arg("10")
            .arg("--json")
    }
}

#[test]
fn a_program_without_launcher_is_alone_in_its_world() {
    for program in [
        "hello",
        "ring",
        "sendrecv",
        "collectives",
        "communicators",
        "errors",
    ] {
        let job = Job::of(program).alone();
        let job = if program == "collectives" {
            job.arg("1000")
        } else {
            job
        };
        job.holds();
    }
}

#[test]
fn a_program_that_a_rank_starts_is_alone_too() {
    Job::of("child").ranks(3).holds();
}

#[test]
fn mpiexec_is_mpirun() {
    Job::of("hello")
        .under(&installation().join("bin/mpiexec"))
        .ranks(3)
        .arg("3")
        .holds();
}

#[test]
fn standard_input_goes_to_rank_zero_only() {
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(b"one\ntwo\n").unwrap();
    input.rewind().unwrap();
    let outcome = Job::command(Path::new("cat"))
        .under(&installation().join("bin/mpirun"))
        .ranks(3)
        .stdin(input)
        .succeeds();
    assert_eq!(outcome.stdout, "one\ntwo\n");
}

#[test]
fn lines_of_different_ranks_are_not_torn() {
    // Each rank prints its lines in two pieces.
    let script = r#"i=0; while [ $i -lt 100 ]; do printf 'aaaaaaaaaa'; printf 'bbbbbbbbbb\n'; i=$((i+1)); done"#;
    let outcome = Job::command(Path::new("sh"))
        .under(&installation().join("bin/mpirun"))
        .ranks(6)
        .arg("-c")
        .arg(script)
        .succeeds();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 600);
    assert!(
        lines.iter().all(|line| *line == "aaaaaaaaaabbbbbbbbbb"),
        "a line was torn"
    );
}

#[test]
fn the_slots_of_pbs_say_which_rank_runs_where() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut slots = tempfile::NamedTempFile::new().unwrap();
    slots.write_all(b"h0\nh0\nh1\n").unwrap();
    let outcome = Job::command(Path::new("sh"))
        .under(&installation().join("bin/mpirun"))
        .ranks(3)
        .with(["--launch-agent"])
        .with([hosts.in_place_of_ssh()])
        .env("PBS_NODEFILE", slots.path())
        .limit(30)
        .arg("-c")
        .arg("echo rank $PMI_RANK on host $(ip netns identify | sed 's/.*-//')")
        .succeeds();
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["rank 0 on host 0", "rank 1 on host 0", "rank 2 on host 1"]
    );
}
