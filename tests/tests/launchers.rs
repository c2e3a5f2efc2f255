//! Tests in which this project's and MPICH's launcher each run the same binary on this library and on
//! MPICH's library.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tests::hosts::Hosts;
use tests::peers::Program;
use tests::{Job, compile, installation, mpich};
use xtask::process;

/// Programs that use start-up, point-to-point and collectives.
const PROGRAMS: [&str; 3] = ["hello", "ring", "operators"];

fn all_ranks_meet(launcher: &Path, library: &Path) {
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
    all_ranks_meet(&mpich.bin("mpiexec.hydra"), installation());
}

#[test]
fn our_mpirun_starts_programs_on_mpichs_library() {
    let Some(mpich) = mpich() else { return };
    all_ranks_meet(&installation().join("bin/mpirun"), &mpich.path());
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

/// With `-n` and without a launcher, mpi-bench starts the ranks itself.
#[test]
fn mpi_bench_starts_as_many_ranks_as_it_is_told() {
    let mut bench = Command::new(installation().join("bin/mpi-bench"));
    bench.args(["barrier", "-n", "3", "--iterations", "10", "--rounds", "1"]);
    let outcome = process::output(&mut bench, Duration::from_secs(60)).expect("a run");
    assert!(
        outcome.stdout.contains("mpi-bench barrier, 3 ranks"),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
}

/// The benchmark `first` must print a row for every operation, and leave no file behind.
#[test]
fn first_uses_have_a_row_each_and_leave_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Command::new(installation().join("bin/mpi-bench"));
    bench.args(["first", "-n", "2", "--rounds", "1", "--directory"]);
    bench.arg(folder.path());
    let outcome = process::output(&mut bench, Duration::from_secs(60)).expect("a run");
    let said = &outcome.stdout;
    let rows: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows.len() > 30, "{said}{}", outcome.stderr);
    for row in [
        "first barrier ",
        "first allreduce 8 on a duplicate ",
        "first free of a window ",
        "second write, file kept open ",
    ] {
        assert!(
            rows.iter().any(|line| line.starts_with(row)),
            "{row}: {said}"
        );
    }
    let left = std::fs::read_dir(folder.path())
        .expect("the folder")
        .count();
    assert_eq!(left, 0);
}

/// The library is compared with itself, so that no other library is needed.
#[test]
fn mpi_bench_compares_operations_beside_busy_loops() {
    let mut bench = Command::new(installation().join("bin/mpi-bench"));
    bench
        .args(["beside", "-n", "2", "--load", "1", "--rounds", "1"])
        .args(["--max-seconds", "0.02", "--settle", "0", "--vs"])
        .arg(installation().join("lib"));
    let outcome = process::output(&mut bench, Duration::from_secs(120)).expect("a run");
    for row in [
        "ping-pong 8 ",
        "barrier ",
        "200 us of work and an allreduce ",
    ] {
        let found = outcome.stdout.lines().find(|line| line.starts_with(row));
        let figures = found.map(|line| line[row.len()..].split_whitespace().count());
        assert!(
            figures.is_some_and(|figures| figures >= 4),
            "{row}: no figures of both in {}{}",
            outcome.stdout,
            outcome.stderr
        );
    }
}

#[test]
fn mpi_bench_farm_reports_the_share_of_the_cores_that_compute() {
    let mut bench = Command::new(installation().join("bin/mpi-bench"));
    bench.args(["farm", "-n", "3", "--sizes", "50,1K", "--rounds", "1"]);
    bench.args(["--max-seconds", "0.05", "--settle", "0"]);
    let outcome = process::output(&mut bench, Duration::from_secs(120)).expect("a run");
    for task in ["50 ", "1024 "] {
        let row = outcome.stdout.lines().find(|line| line.starts_with(task));
        let share = row.and_then(|row| row[task.len()..].trim().parse::<f64>().ok());
        assert!(
            share.is_some_and(|share| share > 0.0 && share < 110.0),
            "{}{}",
            outcome.stdout,
            outcome.stderr
        );
    }
}

/// The printed percentiles must be in order; the times themselves are not checked.
/// Ranks of one host have the same clock, so a clock error is printed only for estimated clocks.
#[test]
fn mpi_bench_exit_skew_reports_a_distribution_and_how_well_it_knows_the_clocks() {
    for (more, has_error) in [(&[][..], false), (&["--estimate-clocks"], true)] {
        let mut bench = Job::command(&installation().join("bin/mpi-bench"))
            .under(&installation().join("bin/mpirun"))
            .ranks(3);
        for argument in ["exit-skew", "-i", "50", "--settle", "0"]
            .iter()
            .chain(more)
        {
            bench = bench.arg(argument);
        }
        let outcome = bench.run();
        let rows = ["median", "90 %", "99 %", "largest", "clocks, +-"].map(|row| {
            let found = outcome.stdout.lines().find(|line| line.starts_with(row));
            let figure = found.and_then(|line| line.split_whitespace().last()?.parse::<f64>().ok());
            figure.unwrap_or_else(|| panic!("{row}: {}{}", outcome.stdout, outcome.stderr))
        });
        assert!(rows[..4].is_sorted(), "{}", outcome.stdout);
        assert_eq!(rows[4] > 0.0, has_error, "{}", outcome.stdout);
    }
}

/// Each of these benchmarks needs a second rank, as a partner or a worker.
#[test]
fn mpi_bench_asks_for_a_second_rank_where_one_has_nothing_to_measure() {
    for benchmark in ["beside", "farm", "exit-skew"] {
        let bench = Job::command(&installation().join("bin/mpi-bench"))
            .under(&installation().join("bin/mpirun"))
            .ranks(1)
            .arg(benchmark);
        let outcome = bench.run();
        let said = outcome.stderr.contains("start more with -n");
        assert!(said && !outcome.status.success(), "{}", outcome.stderr);
    }
}

/// The report names each compared guideline with both times;
/// violations do not change the exit status.
#[test]
fn guidelines_are_compared_in_one_job_and_violated_ones_are_explained() {
    let mut bench = Command::new(installation().join("bin/mpi-bench"));
    bench.args(["guidelines", "-n", "2", "--sizes", "8,4K", "--json"]);
    bench.args(["--iterations", "2", "--rounds", "1", "--settle", "0"]);
    let outcome = process::output(&mut bench, Duration::from_secs(100)).expect("a run");
    let lines: Vec<serde_json::Value> = (outcome.stdout.lines())
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let find = |guideline: &str, size: u64| {
        let mut all = lines.iter();
        let found = all.find(|line| line["guideline"] == guideline && line["size"] == size);
        found.unwrap_or_else(|| panic!("{guideline}: {}{}", outcome.stdout, outcome.stderr))
    };
    for guideline in [
        "allreduce <= reduce + bcast",
        "gatherv <= gather",
        "ibcast <= bcast",
    ] {
        for size in [8, 4096] {
            let line = find(guideline, size);
            let both = ["left", "right"].map(|side| line[side].as_f64().expect("a time"));
            assert!(both.iter().all(|time| *time > 0.0), "{line}");
        }
    }
    find("bcast <= bcast of more bytes", 8);
    for line in lines.iter().filter(|line| line["violated"] == true) {
        let chosen = line["chosen"].as_array().expect("a list");
        let explained = |choice: &serde_json::Value| {
            let choice = choice.as_str().unwrap_or_default();
            choice.contains("shm") || choice.contains("tuned")
        };
        assert!(!chosen.is_empty() && chosen.iter().all(explained), "{line}");
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

/// Runs a job and returns the PMI lines that each rank sent to its launcher, by rank.
fn overheard(job: &str, unset: &[&str], ranks: u32) -> Vec<Vec<String>> {
    let program = compile(job);
    let ear = Path::new(env!("CARGO_BIN_EXE_overheard"));
    let job = Job::command(ear)
        .under(&installation().join("bin/mpirun"))
        .ranks(ranks)
        .arg("env");
    let job = unset.iter().fold(job, |job, name| job.arg("-u").arg(name));
    let outcome = job.arg(program).succeeds();
    let mut said = vec![Vec::new(); ranks as usize];
    for line in outcome.stderr.lines() {
        let Some((rank, words)) = line
            .strip_prefix("overheard ")
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        let rank: usize = rank.parse().unwrap();
        said[rank].push(words.to_string());
    }
    said
}

/// A process gets its rank, the size of the job and the shared memory from its parent,
/// so it finds the other ranks without asking the launcher.
#[test]
fn ranks_of_one_host_send_the_launcher_only_hello_and_goodbye() {
    for program in ["ring", "operators", "communicators"] {
        for said in overheard(program, &[], 4) {
            let hello = "cmd=init pmi_version=1 pmi_subversion=1 portcullis_program=";
            let [first, last] = &said[..] else {
                panic!("{program}: {said:?}")
            };
            assert!(
                first.starts_with(hello) && last == "cmd=finalize",
                "{program}: {said:?}"
            );
        }
    }
}

/// The launcher's variables are unset, so the ranks exchange their addresses.
#[test]
fn ranks_without_launcher_variables_exchange_addresses_through_the_launcher() {
    for said in overheard("ring", &["PORTCULLIS_NODE_FD", "PORTCULLIS_JOB"], 2) {
        let words = said.iter().filter_map(|line| line.split(' ').next());
        let words: Vec<&str> = words.collect();
        for word in ["cmd=get_my_kvsname", "cmd=put", "cmd=barrier_in", "cmd=get"] {
            assert!(words.contains(&word), "{word} is not in {said:?}");
        }
    }
}

/// Runs a job and returns rank 0's explanation of how it waits.
#[track_caller]
fn waiting(job: Job) -> String {
    let outcome = job
        .env("PORTCULLIS_MCA_mpi_base_explain", "true")
        .succeeds();
    let mut lines = outcome.stderr.lines();
    let told = lines.find_map(|line| line.split_once("waiting: "));
    told.unwrap_or_else(|| panic!("no rank waits in:\n{}", outcome.stderr))
        .1
        .to_string()
}

/// Returns the first two processors that this process may use; `None` if it may use only one.
fn two_processors() -> Option<[usize; 2]> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let mut all = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    Some([all.next()?, all.next()?])
}

/// Each rank is bound to one processor core.
/// The address cards that the ranks exchange at start show which ranks share a core.
#[test]
fn ranks_that_another_launcher_has_bound_know_which_ranks_share_their_core() {
    let Some([one, other]) = two_processors() else {
        return;
    };
    let program = compile("hello").display().to_string();
    // Runs ranks as under a launcher that passes no variables and binds groups of `pair` ranks
    // alternately to two processors.
    let bound = |ranks: u32, pair: u32| {
        let mask = format!("$([ $((PMI_RANK / {pair} % 2)) = 0 ] && echo {one} || echo {other})");
        let unset = "env -u PORTCULLIS_NODE_FD -u PORTCULLIS_JOB";
        let job = Job::command(Path::new("sh"))
            .under(&installation().join("bin/mpirun"))
            .ranks(ranks);
        let script = format!("exec {unset} taskset -c {mask} {program}");
        waiting(job.arg("-c").arg(script))
    };
    let alone = "1 of 2 bound ranks on 1 usable cores: a waiting rank polls 200 times, then with";
    let told = bound(2, 1);
    assert!(told.starts_with(alone), "{told}");
    // Ranks 0 and 1 share a core.
    let crowded = "ranks on 1 usable cores: a waiting rank yields after each of";
    for ranks in [2, 4] {
        let told = bound(ranks, 2);
        assert!(told.contains(crowded), "{told}");
    }
    if let Some(mpich) = mpich() {
        let job = Job::of("hello").under(&mpich.bin("mpiexec.hydra"));
        let job = job.on_library_of(installation()).ranks(2);
        let told = waiting(job.with(["-bind-to", "core"]));
        assert!(told.starts_with(alone), "{told}");
    }
}

/// Runs MPICH's launcher `times` times, one after the other, in each of the ranks of a job of this `mpirun`.
/// `command` is its path and its arguments; each of these inner jobs must print `line`.
#[track_caller]
fn inner_jobs_print(line: &str, command: &[&str], outer: u32, times: usize) {
    // Hydra gets an input that does not end, as under `process::silence`.
    let script = "input=$TMPDIR/input.$PMI_RANK; mkfifo $input; exec 8<>$input; rm $input; \
                  times=$0; while [ $times -gt 0 ]; do \"$@\" <&8 || exit; times=$((times - 1)); done";
    let job = Job::command(Path::new("sh"))
        .under(&installation().join("bin/mpirun"))
        .ranks(outer);
    let job = job.arg("-c").arg(script).arg(times.to_string());
    let outcome = command.iter().fold(job, Job::arg).succeeds();
    let found = outcome.stdout.lines().filter(|found| *found == line);
    assert_eq!(found.count(), outer as usize * times, "{outcome:?}");
}

/// The ranks of the inner jobs inherit the variables of both launchers.
#[test]
fn a_rank_can_start_mpichs_launcher_whose_ranks_are_a_job_of_their_own() {
    let Some(mpich) = mpich() else { return };
    let hydra = mpich.bin("mpiexec.hydra").display().to_string();
    let line = "all claims of ring hold on 2 ranks";
    let ours = compile("ring").display().to_string();
    let theirs = Program::new(&mpich.bin("mpicc"), "ring.c");
    let theirs = theirs.path().display().to_string();
    for program in [&ours, &theirs] {
        for outer in [1, 2] {
            inner_jobs_print(line, &[&hydra, "-n", "2", program], outer, 1);
        }
    }
    inner_jobs_print(line, &[&hydra, "-pmi-port", "-n", "2", &ours], 2, 1);
}

/// A process of such a job has the same rank and the same size as the rank that starts it, and perhaps the same descriptor.
#[test]
fn a_rank_can_start_mpichs_launcher_for_one_rank_twice() {
    let Some(mpich) = mpich() else { return };
    let hydra = mpich.bin("mpiexec.hydra").display().to_string();
    let hello = compile("hello").display().to_string();
    let line = "all claims of hello hold on 1 ranks";
    inner_jobs_print(line, &[&hydra, "-n", "1", &hello], 1, 2);
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
    // Each rank prints every line in two pieces.
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
