//! Tests of dynamic processes: spawn, ports, published names, join, and two jobs that connect.

use std::path::Path;
use std::time::{Duration, Instant};
use tests::{Job, compile, installation, needs};

fn dynamic(what: &str, ranks: u32) -> Job {
    Job::of("dynamic").arg(what).ranks(ranks)
}

#[test]
fn a_job_spawns_another_and_they_share_communicators_and_windows() {
    for ranks in [1, 2, 3, 5] {
        dynamic("spawn", ranks).holds();
    }
}

#[test]
fn a_program_learns_how_many_processes_there_is_room_for() {
    let universe = |count: usize, ranks| dynamic("universe", ranks).arg(count.to_string());
    universe(5, 2).with(["--host", "localhost:5"]).holds();
    // The job's processes take both slots, and two more may be spawned: the universe size is 4.
    universe(4, 2).with(["--host", "localhost:2"]).holds();
    let more = ["--host", "localhost:2", "--oversubscribe"];
    universe(5, 3).with(more).holds();
    // Without a launcher, the universe size is the number of cores.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    universe(cores.max(2), 1).alone().holds();
}

#[test]
fn a_job_whose_ranks_are_connected_by_tcp_spawns_another() {
    dynamic("spawn", 3)
        .with(["--mca", "btl", "tcp,self"])
        .holds();
}

#[test]
fn jobs_of_one_node_need_nothing_but_shared_memory() {
    dynamic("spawn", 3)
        .with(["--mca", "btl", "sm,self"])
        .holds();
    dynamic("rounds", 2)
        .arg("20")
        .with(["--mca", "btl", "sm,self"])
        .holds();
}

#[test]
fn ports_serve_within_a_job_and_refuse_with_the_right_class() {
    for ranks in [2, 3, 4] {
        dynamic("ports", ranks).holds();
    }
}

/// The job runs in a mount namespace with an empty /proc, so no process can identify its machine.
#[test]
fn a_spawn_that_fails_where_proc_is_missing_says_so() {
    for transports in ["tcp,self", "sm,self"] {
        let run = format!(
            "mount -t tmpfs none /proc && exec '{}' --mca btl {transports} -n 1 '{}' spawn",
            installation().join("bin/mpirun").display(),
            compile("dynamic").display()
        );
        let namespace = ["--mount", "--map-root-user", "sh", "-c", &run];
        let job = Job::command(Path::new("unshare"));
        let outcome = namespace.iter().fold(job, |job, word| job.arg(word)).run();
        let said = outcome.stderr;
        let refused = ["unshare: ", "mount: "]
            .iter()
            .any(|by| said.starts_with(by));
        if !needs(!refused, "a mount namespace") {
            return;
        }
        assert!(!outcome.status.success(), "{transports}: {said}");
        let why = "this process cannot find out which machine it runs on (reading the machine's boot id failed: ";
        let question =
            "so it takes each other process for one of another machine; is /proc mounted?";
        assert!(said.contains(why), "{transports}: {said}");
        assert!(said.contains(question), "{transports}: {said}");
    }
}

#[test]
fn nothing_is_left_of_jobs_that_came_and_went() {
    dynamic("rounds", 2).arg("40").holds();
}

#[test]
fn two_jobs_meet_that_know_nothing_of_each_other_but_the_name_of_a_port() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("port");
    for (accepting, connecting) in [(1, 1), (3, 2), (2, 4)] {
        let accepting = dynamic("accept", accepting).arg(&file).start();
        let connecting = dynamic("connect", connecting).arg(&file);
        connecting.holds();
        let accepted = accepting.wait();
        assert!(accepted.status.success(), "{}", accepted.stderr);
        std::fs::remove_file(&file).expect("the file was made");
    }
}

#[test]
fn a_process_without_a_launcher_starts_one_when_it_spawns() {
    dynamic("spawn", 1).alone().holds();
    let folder = tempfile::tempdir().expect("a folder");
    let sign = folder.path().join("its parent has ended");
    dynamic("survivor", 1).arg(&sign).alone().holds();
    let limit = Instant::now() + Duration::from_secs(30);
    while !sign.exists() {
        let late = Instant::now() > limit;
        assert!(!late, "the child has not seen the end of its parent");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_process_without_a_launcher_publishes_is_found_by_others_with_and_without_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = format!("ocean, process {} of the tests", std::process::id());
    let part = |what: &str, ranks| {
        let job = dynamic(what, ranks).arg(&name);
        job.env("XDG_RUNTIME_DIR", folder.path())
    };
    let serving = part("serve", 1).alone().start();
    part("visit", 1).alone().holds();
    part("visit", 3).holds();
    let served = serving.wait();
    assert!(served.status.success(), "{}", served.stderr);
    let names = folder.path().join("portcullis-names");
    let left = std::fs::read_dir(names).expect("the folder of names");
    assert_eq!(left.count(), 0, "a name is left");
}

#[test]
fn a_process_without_a_launcher_ends_with_what_it_has_spawned() {
    let outcome = dynamic("mortal", 1).arg("no sign").alone().run();
    assert!(!outcome.status.success());
    // The job is ended by the process that first detects the end of its child or of the launcher,
    // possibly before the launcher prints its own message.
    let seen = ["has lost its other end", "the launcher has ended"];
    assert!(
        seen.iter().any(|said| outcome.stderr.contains(said)),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_spawned_program_that_never_calls_mpi_init_ends_the_wait_of_its_parent() {
    let outcome = dynamic("mute", 2).run();
    assert!(!outcome.status.success());
    let said = "(of 1; true, ";
    let why = "exited without calling MPI_Init, for which the job that has spawned it waits";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    assert!(!dynamic("mute", 1).alone().run().status.success());
}
