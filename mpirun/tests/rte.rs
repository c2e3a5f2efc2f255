//! Tests of the PMI-1 client under this and other servers, and of the server with other clients.
//!
//! The client is this test program, which runs [`as_a_rank`] as a rank.
//! The function [`as_a_rank`] does nothing without a launcher.

mod common;

use common::{Done, Launch, mpich, run_bounded};
use mpi_base::param::Params;
use mpi_base::state::{About, Waits};
use mpi_core::rte::{self, Env, Rte};
use std::path::Path;
use std::process::Command;

/// The variable that selects the task of a rank; the tests below set it.
const TASK: &str = "PORTCULLIS_TEST_TASK";

#[test]
fn as_a_rank() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    let opened = rte::open(&Env::of_this_process(), &Params::default()).unwrap();
    let rte = opened.rte.as_ref();
    match task.as_str() {
        "meet" => meet(rte),
        "abort" => {
            rte.fence().unwrap();
            if rte.identity().rank == 1 {
                rte.abort(42, "out of cheese");
            }
            std::thread::sleep(common::PATIENCE);
        }
        "leave" => {
            rte.fence().unwrap();
            if rte.identity().rank != 1 {
                std::thread::sleep(common::PATIENCE);
            }
        }
        "die in a call" => {
            let attached = rte.node_segment().unwrap().place.join().unwrap();
            let page = attached.state(attached.rank()).unwrap();
            page.start(std::process::id(), rte.identity().rank);
            page.run();
            page.enter(1);
            page.about(&About {
                waits: Waits::Send,
                peer: 0,
                proc: 0,
                tag: 7,
                bytes: 4096,
                ..About::default()
            });
            rte.fence().unwrap();
            if rte.identity().rank == 1 {
                common::kill(std::process::id() as i32, libc::SIGABRT);
            }
            std::thread::sleep(common::PATIENCE);
        }
        "watch the launcher" => {
            rte.fence().unwrap();
            assert_eq!(rte.lost(), None);
            rte.finalize().unwrap();
            assert_eq!(rte.lost(), None);
        }
        "lose others" => lose_others(rte),
        "spawn a spare" => spawn_a_spare(rte),
        other => panic!("no task {other}"),
    }
}

/// Rank 1 dies; each other rank is notified once, and enters a fence without rank 1.
fn lose_others(rte: &dyn Rte) {
    let me = rte.identity().clone();
    rte.put("card", b"here").unwrap();
    rte.fence().unwrap();
    if me.rank == 1 {
        common::kill(std::process::id() as i32, libc::SIGKILL);
    }
    // No process sends a request in the meantime, so the server sends the notice unrequested.
    assert_eq!(deaths_of(rte, 1), [(me.job.clone(), 1)]);
    rte.fence().unwrap();
    assert_eq!(rte.get(1, "card").unwrap(), b"here");
    assert!(rte.get(1, "nothing").is_err());
    // A rank that has passed the fence may already have finalized, which is reported as well.
    assert!(rte.deaths().into_iter().all(|gone| gone.left));
    assert_eq!(rte.lost(), None);
    rte.finalize().unwrap();
    println!("\nMET {} without 1", me.rank);
}

/// Rank 0 spawns a replacement for rank 1, and the replacement is notified of the earlier death.
/// Then the replacement dies as well.
fn spawn_a_spare(rte: &dyn Rte) {
    let me = rte.identity().clone();
    if me.spawned {
        let dead = rte.left_by_parent("of").unwrap();
        assert_eq!(deaths_of(rte, 1), [(dead, 1)]);
        common::kill(std::process::id() as i32, libc::SIGKILL);
    }
    rte.fence().unwrap();
    if me.rank == 1 {
        common::kill(std::process::id() as i32, libc::SIGKILL);
    }
    if me.rank == 0 {
        assert_eq!(deaths_of(rte, 1), [(me.job.clone(), 1)]);
        let app = rte::SpawnedApp {
            procs: 1,
            program: self::me().into(),
            args: ["--exact", "as_a_rank", "--nocapture", "--test-threads=1"]
                .map(std::ffi::OsString::from)
                .to_vec(),
            info: Vec::new(),
        };
        let left = vec![("of".to_string(), me.job.clone())];
        let apps = vec![app];
        let spare = rte.spawn_job(&rte::SpawnRequest { apps, left }).unwrap();
        assert_eq!(deaths_of(rte, 1), [(spare.unwrap(), 0)]);
    } else {
        let dead = deaths_of(rte, 2);
        assert_eq!(dead[0], (me.job.clone(), 1));
        assert!(dead[1].1 == 0 && dead[1].0 != me.job, "{dead:?}");
    }
    rte.fence().unwrap();
    rte.finalize().unwrap();
    println!("\nMET {} without a spare", me.rank);
}

/// Waits until this process has been notified of `count` deaths.
fn deaths_of(rte: &dyn Rte, count: usize) -> Vec<(String, u32)> {
    let mut dead = Vec::new();
    let begin = std::time::Instant::now();
    while dead.len() < count && begin.elapsed() < common::PATIENCE {
        let gone = rte.deaths().into_iter().filter(|gone| !gone.left);
        dead.extend(gone.map(|dead| (dead.job, dead.rank)));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    dead
}

/// Exchanges values of odd lengths, and checks the shared node segment.
fn meet(rte: &dyn Rte) {
    let me = rte.identity().clone();
    let value = |rank: u32| -> Vec<u8> { (0..rank * 700).map(|n| (n + rank) as u8).collect() };
    rte.put("long", &value(me.rank)).unwrap();
    rte.fence().unwrap();
    for rank in 0..me.size {
        assert_eq!(rte.get(rank, "long").unwrap(), value(rank));
    }
    assert!(rte.get(0, "nothing").is_err());
    let membership = rte.node_segment().unwrap();
    let node = membership.place.join().unwrap();
    rte.fence().unwrap();
    // Each rank's pid is visible in the shared node segment.
    let here = (0..node.nlocal())
        .filter(|&rank| node.processes().pid(rank).is_some())
        .count();
    rte.fence().unwrap();
    rte.finalize().unwrap();
    println!(
        "\nMET {}/{} {} local {}/{} here {here}",
        me.rank,
        me.size,
        rte.component(),
        node.rank(),
        membership.local_ranks.len()
    );
}

fn me() -> String {
    std::env::current_exe().unwrap().display().to_string()
}

fn launch(n: &str, task: &str, unset: &str) -> Done {
    let me = me();
    // Without this launcher's variables the client must query the server, as under other launchers.
    let unset = format!("exec env {unset} \"$0\" --exact as_a_rank --nocapture --test-threads=1");
    Launch::new(&["-n", n, "sh", "-c", &unset, &me])
        .env(TASK, task)
        .run()
}

fn met(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("MET ").map(str::to_string))
        .collect();
    lines.sort_unstable();
    lines
}

fn all_met(n: usize) -> Vec<String> {
    (0..n)
        .map(|rank| format!("{rank}/{n} pmi1 local {rank}/{n} here {n}"))
        .collect()
}

#[test]
fn ranks_of_our_mpirun_meet_in_the_memory_it_hands_down() {
    let done = launch("4", "meet", "");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(met(&done.stdout), all_met(4));
}

fn survive(n: &str, task: &str, options: &[&str]) -> Done {
    let me = me();
    let rank = ["--exact", "as_a_rank", "--nocapture", "--test-threads=1"];
    let args = [options, &["--with-ft", "ulfm", "-n", n, &me], &rank].concat();
    Launch::new(&args).env(TASK, task).run()
}

#[test]
fn survivors_are_notified_of_a_death_and_pass_barriers_without_the_dead() {
    let done = survive("4", "lose others", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        met(&done.stdout),
        ["0 without 1", "2 without 1", "3 without 1"]
    );
    assert!(done.stderr.contains("1 of 4 ranks was lost: 1"), "{done:?}");
}

#[test]
fn survivors_on_all_hosts_are_notified_of_a_death_on_one() {
    let folder = tempfile::tempdir().unwrap();
    let agent = common::agent(folder.path());
    let hosts = ["--launch-agent", &agent, "--host", "a:2,b:2"];
    let done = survive("4", "lose others", &hosts);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        met(&done.stdout),
        ["0 without 1", "2 without 1", "3 without 1"]
    );
}

#[test]
fn a_later_process_is_notified_of_earlier_deaths_and_may_die_as_well() {
    let done = survive("3", "spawn a spare", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        met(&done.stdout),
        ["0 without a spare", "2 without a spare"]
    );
    let last = "1 of 3 ranks was lost: 1; 1 of 1 ranks of spawned job 1 was lost: 0";
    assert!(done.stderr.contains(last), "{done:?}");
}

#[test]
fn ranks_of_a_launcher_without_our_extensions_meet_by_their_cards() {
    let done = launch("5", "meet", "-u PORTCULLIS_NODE_FD -u PORTCULLIS_JOB");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(met(&done.stdout), all_met(5));
}

#[test]
fn an_abort_ends_the_job_with_its_code() {
    let done = launch("3", "abort", "");
    assert_eq!(done.code, 42, "{done:?}");
    assert!(done.stderr.contains("rank 1 (of 3;"), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("aborted the job with code 42: out of cheese.")
    );
}

#[test]
fn a_rank_that_exits_without_finalize_ends_the_job() {
    let done = launch("3", "leave", "");
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("exited without calling MPI_Finalize"));
}

#[test]
fn the_last_call_of_a_rank_that_dies_is_reported() {
    let done = launch("2", "die in a call", "");
    assert_eq!(done.code, 134, "{done:?}");
    let call = mpirun::node::call_name(1);
    let sentence = format!("(SIGABRT). It was in {call} to rank 0, tag 7, 4096 bytes.");
    assert!(done.stderr.contains(&sentence), "{}", done.stderr);
}

#[test]
fn a_launcher_is_lost_only_before_finalize() {
    let done = launch("2", "watch the launcher", "");
    assert_eq!(done.code, 0, "{done:?}");
}

fn hydra(dir: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(dir.join("bin/mpiexec.hydra"));
    command
        .args(args)
        .args([
            &me(),
            "--exact",
            "as_a_rank",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(TASK, "meet");
    let output = run_bounded(&mut command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn our_client_runs_under_hydra() {
    let Some(dir) = mpich() else {
        return;
    };
    assert_eq!(met(&hydra(&dir, &["-n", "4"]).1), all_met(4));
}

#[test]
fn our_client_runs_under_hydra_by_port() {
    let Some(dir) = mpich() else {
        return;
    };
    assert_eq!(met(&hydra(&dir, &["-pmi-port", "-n", "3"]).1), all_met(3));
}

#[test]
fn our_client_finds_that_the_hosts_of_hydra_are_one() {
    let Some(dir) = mpich() else {
        return;
    };
    let args = ["-launcher", "fork", "-hosts", "a,b", "-n", "4"];
    assert_eq!(met(&hydra(&dir, &args).1), all_met(4));
}

/// Compiles a program with MPICH's compiler wrapper against MPICH's library.
fn foreign_program(dir: &Path, name: &str, source: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let mut command = Command::new(dir.join("bin/mpicc"));
    command.arg("-o").arg(folder.path().join(name)).arg(&file);
    let output = run_bounded(&mut command);
    assert!(output.status.success(), "{output:?}");
    folder
}

fn foreign(dir: &Path, n: &str, program: &Path) -> Done {
    let lib = dir.join("lib");
    Launch::new(&["-n", n, program.to_str().unwrap()])
        .env("LD_LIBRARY_PATH", lib.to_str().unwrap())
        .run()
}

#[test]
fn a_program_of_mpich_runs_under_our_mpirun() {
    let Some(dir) = mpich() else {
        return;
    };
    let source = r#"
        #include <mpi.h>
        #include <stdio.h>
        int main(int argc, char **argv) {
            int rank, size, sum = 0;
            MPI_Init(&argc, &argv);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            MPI_Comm_size(MPI_COMM_WORLD, &size);
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            printf("%d/%d %d\n", rank, size, sum);
            MPI_Finalize();
            return 0;
        }"#;
    let folder = foreign_program(&dir, "sum", source);
    let done = foreign(&dir, "4", &folder.path().join("sum"));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.sorted(), ["0/4 6", "1/4 6", "2/4 6", "3/4 6"]);
}

#[test]
fn a_program_of_mpich_spawns_under_our_mpirun() {
    let Some(dir) = mpich() else {
        return;
    };
    let source = r#"
        #include <mpi.h>
        #include <stdio.h>
        int main(int argc, char **argv) {
            MPI_Comm parent, all;
            int rank, size, sum = 0, one = 1;
            MPI_Init(&argc, &argv);
            MPI_Comm_get_parent(&parent);
            int root = parent == MPI_COMM_NULL;
            if (root)
                MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &parent, MPI_ERRCODES_IGNORE);
            MPI_Intercomm_merge(parent, !root, &all);
            MPI_Comm_rank(all, &rank);
            MPI_Comm_size(all, &size);
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
            printf("%s %d/%d %d\n", root ? "parent" : "child", rank, size, sum);
            MPI_Comm_disconnect(&parent);
            MPI_Comm_free(&all);
            MPI_Finalize();
            return 0;
        }"#;
    let folder = foreign_program(&dir, "spawn", source);
    let done = foreign(&dir, "2", &folder.path().join("spawn"));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        done.sorted(),
        ["child 2/4 4", "child 3/4 4", "parent 0/4 4", "parent 1/4 4"]
    );
}

#[test]
fn an_abort_of_a_program_of_mpich_keeps_its_code() {
    let Some(dir) = mpich() else {
        return;
    };
    let source = r#"
        #include <mpi.h>
        int main(int argc, char **argv) {
            int rank;
            MPI_Init(&argc, &argv);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 42);
            MPI_Barrier(MPI_COMM_WORLD);
            return 0;
        }"#;
    let folder = foreign_program(&dir, "abort", source);
    let done = foreign(&dir, "3", &folder.path().join("abort"));
    assert_eq!(done.code, 42, "{done:?}");
    assert!(
        done.stderr.contains("aborted the job with code 42"),
        "{}",
        done.stderr
    );
}
