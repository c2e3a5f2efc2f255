//! Tests of windows with every access method: directly, by copies that the system makes, and by messages.

use std::path::Path;
use tests::{Job, compile, installation};

/// Makes a job's ranks access each other's windows by messages even on one node; `transports` carry the messages.
fn by_messages(job: Job, transports: &str) -> Job {
    job.with(["--mca", "osc", "am", "--mca", "btl", transports])
}

#[test]
fn what_was_reported_of_other_libraries_is_right_here() {
    for ranks in [1, 2, 3, 5] {
        Job::of("window_reports").ranks(ranks).holds();
    }
}

#[test]
fn what_was_reported_of_other_libraries_is_right_here_by_messages() {
    for transports in ["self,sm", "self,tcp"] {
        let job = Job::of("window_reports").arg("4").ranks(3);
        by_messages(job, transports).holds();
    }
}

#[test]
fn random_accesses_agree_with_an_oracle_whatever_the_seed() {
    accesses_of_seeds("5", &["2", "3"]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn random_accesses_agree_with_an_oracle_for_more_seeds() {
    accesses_of_seeds("10", &["2", "3", "4"]);
}

fn accesses_of_seeds(phases: &str, seeds: &[&str]) {
    for seed in seeds {
        let job = || Job::of("accesses").arg(phases).arg(seed);
        job().ranks(4).holds();
        by_messages(job().ranks(2), "self,tcp").holds();
    }
}

#[test]
fn windows_left_at_finalize_are_reported_in_one_line_per_rank_that_knows_more() {
    let outcome = Job::of("left_windows").ranks(3).succeeds();
    let told: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("MPI_Win_free was not"))
        .collect();
    let line = |rank: u32| {
        let begin = format!("rank {rank} ");
        told.iter().find(|line| line.contains(&begin)).copied()
    };
    let of_0 = line(0).unwrap_or_default();
    assert!(
        of_0.ends_with(
            "MPI_Finalize is called, but MPI_Win_free was not for board; a window of 3 processes"
        ),
        "{told:?}"
    );
    let of_2 = line(2).unwrap_or_default();
    assert!(
        of_2.ends_with("a window of 3 processes, while it holds locks of MPI_Win_lock: MPI_Win_unlock is missing"),
        "{told:?}"
    );
    assert_eq!(told.len(), 2, "{told:?}");
}

/// A node's ranks access memory that the program allocated: they map the memory through XPMEM,
/// or the kernel copies the data.
#[test]
fn memory_that_the_program_got_elsewhere_is_reached_with_and_without_xpmem() {
    elsewhere_with_and_without_xpmem("20", "5");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn memory_that_the_program_got_elsewhere_is_reached_many_times() {
    elsewhere_with_and_without_xpmem("200", "10");
}

fn elsewhere_with_and_without_xpmem(times: &str, phases: &str) {
    for value in ["false", "true"] {
        let with = || ["--mca", "osc_direct_xpmem", value];
        for ranks in [1, 2, 4] {
            let job = Job::of("elsewhere").arg(times).ranks(ranks);
            job.with(with()).holds();
        }
        let accesses = Job::of("accesses").arg(phases).arg("5").ranks(4);
        accesses.with(with()).holds();
    }
}

/// A datatype has elements in several attached regions, with gaps that are not attached:
/// in mapped memory, in memory that the kernel copies or XPMEM maps, in both, and by messages.
#[test]
fn one_access_may_use_several_attached_regions() {
    for memory in ["malloc", "alloc_mem", "mixed"] {
        let job = |ranks| Job::of("regions").arg(memory).ranks(ranks);
        job(1).holds();
        for value in ["false", "true"] {
            job(3).with(["--mca", "osc_direct_xpmem", value]).holds();
        }
        for transports in ["self,sm", "self,tcp"] {
            by_messages(job(3), transports).holds();
        }
    }
}

/// Memory of `MPI_Alloc_mem` is mapped, and other memory is accessed by messages, in one access.
#[test]
fn one_access_may_use_mapped_memory_and_messages() {
    let contained = Path::new(env!("CARGO_BIN_EXE_contained"));
    let job = Job::command(contained).under(&installation().join("bin/mpirun"));
    let job = job.arg("no-ptrace").arg(compile("regions")).arg("mixed");
    let outcome = job.ranks(3).succeeds();
    let line = "all claims of regions hold on 3 ranks";
    assert!(outcome.stdout.contains(line), "{}", outcome.stderr);
}

/// A seccomp filter prevents all or some ranks from copying other ranks' memory;
/// then accesses to memory that is not shared use messages, even within a node.
#[test]
fn a_window_can_be_used_at_once_where_neighbours_may_not_copy_each_others_memory() {
    let contained = env!("CARGO_BIN_EXE_contained");
    let program = compile("unready");
    let all = Job::command(Path::new(contained)).under(&installation().join("bin/mpirun"));
    let all = all.arg("no-ptrace").arg(&program).arg("200");
    let outcome = all.ranks(4).succeeds();
    let line = "all claims of unready hold on 4 ranks";
    assert!(outcome.stdout.contains(line), "{}", outcome.stderr);
    // The first two ranks may copy their neighbours' memory, the last two may not.
    let some = Job::of("unready").arg("200").ranks(2);
    let others = [":", "-n", "2", contained, "no-ptrace"];
    let some = others.iter().fold(some, |job, word| job.arg(word));
    let outcome = some.arg(&program).arg("200").succeeds();
    assert!(outcome.stdout.contains(line), "{}", outcome.stderr);
}

#[test]
fn the_explanation_says_how_memory_from_elsewhere_is_reached() {
    let explained = |more: &[&str]| {
        let job = Job::of("elsewhere").arg("5").ranks(2).with(["--explain"]);
        let outcome = job.with(more.iter().copied()).succeeds();
        let lines = outcome.stderr.lines();
        let of_windows = lines.filter(|line| line.contains("explain: osc: "));
        of_windows.map(str::to_owned).collect::<Vec<_>>()
    };
    let told = explained(&["--mca", "osc_direct_xpmem", "false"]);
    assert!(
        told[0].ends_with("not mapped: osc_direct_xpmem is false"),
        "{told:?}"
    );
    assert!(!told.iter().any(|line| line.contains("is mapped here")));
    let told = explained(&[]);
    let device = std::path::Path::new("/dev/xpmem");
    let (general, of_one) = match device.exists() {
        true => ("is mapped (/dev/xpmem)", "is mapped here (/dev/xpmem)"),
        false => ("there is no /dev/xpmem", "is copied by the system"),
    };
    assert!(told[0].contains(general), "{told:?}");
    assert!(told[1].contains(of_one), "{told:?}");
}

#[test]
fn a_rank_that_dies_under_accesses_of_others_ends_the_job() {
    let ways = [
        ("kill", 128 + 9),
        ("segv", 128 + 11),
        ("exit", 3),
        ("abort", 42),
    ];
    for value in ["false", "true"] {
        for (way, code) in ways {
            let job = Job::of("elsewhere").arg("dies").arg(way).ranks(3);
            let outcome = job.with(["--mca", "osc_direct_xpmem", value]).run();
            let said = &outcome.stderr;
            let status = outcome.status.code();
            assert_eq!(status, Some(code), "{value}, {way}: {said}");
            assert!(said.contains("rank 1 ("), "{value}, {way}: {said}");
        }
    }
}
