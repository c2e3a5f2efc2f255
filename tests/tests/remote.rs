//! Tests of ranks on other hosts, started by a script that replaces ssh: they must behave and end as on one host.
//!
//! The hosts are network namespaces of this machine; `Job::wait` checks for leftovers of all of them.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::hosts::Hosts;
use tests::job::send;
use tests::{Job, Started, compile, installation};
use xtask::workspace;

fn cluster(count: u32) -> Option<Hosts> {
    Hosts::new(count).map(|hosts| hosts.network(0, &[1500]))
}

fn shell(hosts: &Hosts, ranks_per_host: u32, script: &str) -> Job {
    let job = hosts.remote_job(Path::new("/bin/sh"), ranks_per_host);
    job.arg("-c").arg(script)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn ranks_of_two_hosts_are_one_job_and_those_of_one_share_memory() {
    let Some(hosts) = cluster(2) else { return };
    for program in ["hello", "ring", "requests"] {
        hosts.remote_job(&compile(program), 2).holds();
    }
    hosts
        .remote_job(&compile("collectives"), 2)
        .arg("300")
        .holds();
}

#[test]
fn the_death_of_a_rank_elsewhere_is_reported_and_not_that_of_ranks_whose_memory_goes_with_it() {
    let Some(hosts) = cluster(2) else { return };
    for way in ["kill", "exit", "kill", "exit"] {
        for (victim, its_neighbour) in [("3", 2), ("0", 1)] {
            let job = hosts.remote_job(&compile("memory_gone"), 2);
            let outcome = job.arg(way).arg(victim).run();
            let said = &outcome.stderr;
            let code = if way == "kill" { 128 + 9 } else { 3 };
            assert_eq!(outcome.status.code(), Some(code), "{way} {victim}: {said}");
            assert!(said.contains(&format!("rank {victim} (")), "{said}");
            assert!(!said.contains(&format!("rank {its_neighbour} (")), "{said}");
        }
    }
}

#[test]
fn environment_and_working_directory_are_those_of_mpirun() {
    let Some(hosts) = cluster(2) else { return };
    let script = "echo $PMI_RANK/$PMI_SIZE $MPI_LOCALRANKID/$MPI_LOCALNRANKS $COLOUR $FRUIT $PWD";
    let job = shell(&hosts, 2, script).env("COLOUR", "dark green").with([
        "-x",
        "FRUIT=plum",
        "-wdir",
        "/usr",
    ]);
    let said = job.succeeds().stdout;
    let expected = [
        "0/4 0/2 dark green plum /usr",
        "1/4 1/2 dark green plum /usr",
        "2/4 0/2 dark green plum /usr",
        "3/4 1/2 dark green plum /usr",
    ];
    assert_eq!(sorted(&said), expected);
}

#[test]
fn each_host_is_a_host_of_its_own() {
    let Some(hosts) = cluster(3) else { return };
    let said = shell(&hosts, 1, "readlink /proc/self/ns/net")
        .succeeds()
        .stdout;
    let mut spaces = sorted(&said);
    spaces.dedup();
    assert_eq!(spaces.len(), 3, "{said}");
}

#[test]
fn input_and_output_pass_whole_and_in_order() {
    let Some(hosts) = cluster(2) else { return };
    let text: String = (0..60_000).map(|n| format!("line {n}\n")).collect();
    let input = || {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        file
    };
    let cat = || hosts.remote_job(Path::new("/bin/cat"), 1);
    assert!(cat().stdin(input()).succeeds().stdout == text);
    let second = cat().with(["--stdin", "1"]).stdin(input()).succeeds();
    assert!(second.stdout == text);
    let both = cat().with(["--stdin", "all"]).stdin(input()).succeeds();
    assert!(sorted(&both.stdout).len() == 120_000);
    let none = cat().with(["--stdin", "none"]).stdin(input()).succeeds();
    assert_eq!(none.stdout, "");
}

#[test]
fn lines_are_tagged_wherever_they_come_from() {
    let Some(hosts) = cluster(2) else { return };
    let outcome = shell(&hosts, 1, "echo out; echo err >&2")
        .with(["--tag-output"])
        .succeeds();
    assert_eq!(
        sorted(&outcome.stdout),
        ["[1,0]<stdout>: out", "[1,1]<stdout>: out"]
    );
    assert_eq!(
        sorted(&outcome.stderr),
        ["[1,0]<stderr>: err", "[1,1]<stderr>: err"]
    );
}

#[test]
fn hosts_that_are_reached_through_others_are_as_good() {
    let Some(hosts) = cluster(3) else { return };
    let job = hosts.remote_job(&compile("ring"), 2);
    job.with(["--mca", "mpirun_fanout", "1"]).holds();
}

#[test]
fn a_job_may_be_here_and_elsewhere() {
    let Some(hosts) = cluster(1) else { return };
    let said = shell(&hosts, 1, "echo $PMI_RANK $MPI_LOCALNRANKS")
        .ranks(2)
        .with(["--host", "localhost"])
        .succeeds();
    assert_eq!(sorted(&said.stdout), ["0 1", "1 1"]);
}

/// Returns a job of `leave.c`: rank 1, on the second host, ends as `way` names, while rank 0 waits.
fn leaves(hosts: &Hosts, way: &str) -> Job {
    hosts.remote_job(&compile("leave"), 1).arg(way).arg("1")
}

#[test]
fn the_end_of_a_rank_elsewhere_is_reported_with_its_host_and_last_call() {
    let Some(hosts) = cluster(2) else { return };
    for (way, code, parts) in [
        (
            "kill",
            137,
            &["rank 1", "on h1", "SIGKILL", "last call was MPI_Barrier"][..],
        ),
        ("exit", 3, &["rank 1", "on h1", "exited with status 3"]),
        ("quiet", 1, &["rank 1", "on h1", "MPI_Finalize"]),
        (
            "abort",
            42,
            &["rank 1", "on h1", "with code 42", "called MPI_Abort"],
        ),
    ] {
        let outcome = leaves(&hosts, way).run();
        assert_eq!(
            outcome.status.code(),
            Some(code),
            "{way}: {}",
            outcome.stderr
        );
        for part in parts {
            assert!(
                outcome.stderr.contains(part),
                "{part} is not in: {}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn a_signal_to_mpirun_ends_ranks_everywhere_even_deaf_ones() {
    let Some(hosts) = cluster(2) else { return };
    for (way, signal, code) in [
        ("wait", Signal::INT, Some(130)),
        ("deaf", Signal::TERM, Some(143)),
        ("fork", Signal::HUP, Some(129)),
        ("fork", Signal::KILL, None),
    ] {
        let job = leaves(&hosts, way).start();
        job.ready(2);
        job.signal(signal);
        let outcome = job.wait();
        assert_eq!(outcome.status.code(), code, "{way}: {}", outcome.stderr);
    }
}

/// The connections between ranks of two hosts break when the ranks end, which is no failure.
#[test]
fn ctrl_c_prints_no_broken_connection_of_ranks_that_exchange_messages() {
    let Some(hosts) = cluster(2) else { return };
    for _ in 0..3 {
        let job = hosts.remote_job(&compile("endless"), 2).start();
        job.ready(4);
        // Most ranks have passed MPI_Init by then; the claim also holds for the others.
        std::thread::sleep(Duration::from_millis(500));
        job.signal(Signal::INT);
        let outcome = job.wait();
        assert_eq!(outcome.status.code(), Some(130), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("connection"), "{}", outcome.stderr);
    }
}

/// Returns the process ids of a job's remote launchers (`mpirun --daemon`)
/// and of their guard processes.
fn outposts(job: &Started) -> Vec<i32> {
    let all = tests::leftovers::processes(job.mark());
    let agents = all.iter().filter(|line| line.contains("mpirun --daemon"));
    let numbers = agents.filter_map(|line| line.split(' ').next()?.parse().ok());
    numbers.collect()
}

#[test]
fn a_launcher_that_is_killed_elsewhere_ends_the_job_with_its_hosts_name() {
    let Some(hosts) = cluster(2) else { return };
    // The ranks have child processes, which would survive if there were no guard process.
    let job = leaves(&hosts, "fork").start();
    job.ready(4);
    let outposts = outposts(&job);
    assert_eq!(outposts.len(), 4, "a guard and an outpost on each host");
    send(outposts[3], Signal::KILL);
    let outcome = job.wait();
    assert_eq!(outcome.status.code(), Some(1));
    let said = "is lost with its host h";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
}

/// The limit is long enough that a host on a busy machine is not given up before it is stopped or unplugged.
const SILENCE: [&str; 3] = ["--mca", "mpirun_silence", "2s"];

/// Processes that are stopped until this value is dropped.
struct Stopped(Vec<i32>);

impl Stopped {
    fn these(processes: Vec<i32>) -> Stopped {
        processes
            .iter()
            .for_each(|process| send(*process, Signal::STOP));
        Stopped(processes)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0
            .iter()
            .for_each(|process| send(*process, Signal::CONT));
    }
}

#[test]
fn a_host_that_falls_silent_is_given_up() {
    let Some(hosts) = cluster(2) else { return };
    let job = leaves(&hosts, "wait").with(SILENCE).start();
    job.ready(2);
    let outposts = outposts(&job);
    assert_eq!(outposts.len(), 4, "a guard and an outpost on each host");
    // The launchers of both hosts start at the same time, so the order of the process ids does not tell their hosts.
    let host = |process: &i32| fs::read_link(format!("/proc/{process}/ns/net")).unwrap();
    let of_one_host = |process: &&i32| host(process) == host(&outposts[0]);
    let of_one_host: Vec<i32> = outposts.iter().filter(of_one_host).copied().collect();
    assert_eq!(of_one_host.len(), 2, "a guard and an outpost");
    let stopped = Stopped::these(of_one_host);
    job.complains(": it has sent nothing for 2 s", 1);
    // While a host is stopped, mpirun cannot end the processes there.
    // The host continues, detects that mpirun has ended, and ends its processes.
    drop(stopped);
    let outcome = job.wait_with_grace(Duration::from_secs(10));
    assert_eq!(outcome.status.code(), Some(1));
}

#[test]
fn a_host_whose_cable_is_pulled_is_given_up_on_both_sides() {
    let Some(hosts) = cluster(2) else { return };
    let far = Path::new(env!("CARGO_BIN_EXE_far"));
    let (job, _servers) = hosts.distant_job(far, &compile("leave"));
    let job = job.arg("fork").with(SILENCE).start();
    job.ready(4);
    hosts.unplug(1, 0);
    // The disconnected host detects the silence, too, and ends its processes.
    let outcome = job.wait_with_grace(Duration::from_secs(10));
    assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stderr);
    let said = "is lost with its host h1: it has sent nothing for 2 s";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
}

#[test]
fn a_host_that_cannot_be_reached_is_named() {
    let outcome = Job::command(Path::new("/bin/true"))
        .under(&installation().join("bin/mpirun"))
        .ranks(1)
        .with(["--launch-agent", "false", "--host", "h0"])
        .run();
    assert_eq!(outcome.status.code(), Some(1));
    let said = "is lost with its host h0: false did not reach it";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
}

/// Returns a job on a host whose launcher accepts the connection but never sends a message.
fn mute() -> Job {
    // All tests execute one script, so only the first call may write it.
    static SCRIPT: OnceLock<PathBuf> = OnceLock::new();
    let script = SCRIPT.get_or_init(|| {
        let folder = workspace::target().join("mute");
        fs::create_dir_all(&folder).unwrap();
        let script = folder.join("reaches-no-host");
        let text = "#!/bin/sh\necho called >&2\nexec sleep 1000\n";
        bounded::write_program(&script, text).unwrap();
        script
    });
    Job::command(Path::new("/bin/true"))
        .under(&installation().join("bin/mpirun"))
        .ranks(1)
        .with([Path::new("--launch-agent"), script])
        .with(["--host", "h0"])
}

#[test]
fn a_host_that_never_answers_is_named_when_its_time_is_over() {
    let outcome = mute().with(["--mca", "mpirun_greeting", "300ms"]).run();
    assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stderr);
    let said = "is lost with its host h0: it has not answered for 0.3 s";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
}

#[test]
fn ctrl_c_does_not_wait_for_a_host_that_never_answers() {
    let job = mute().start();
    job.complains("called", 1);
    let begin = Instant::now();
    job.signal(Signal::INT);
    let outcome = job.wait();
    assert_eq!(outcome.status.code(), Some(130), "{}", outcome.stderr);
    // mpirun ends the job because of the signal, so it must not report the loss of the host.
    assert!(!outcome.stderr.contains("is lost"), "{}", outcome.stderr);
    // There are no ranks on the mute host, so mpirun must not wait its grace period of 5 s.
    assert!(
        begin.elapsed() < Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_program_or_directory_that_a_host_lacks_is_reported_by_that_host() {
    let Some(hosts) = cluster(2) else { return };
    let outcome = hosts.remote_job(Path::new("./nowhere"), 1).run();
    assert_eq!(outcome.status.code(), Some(127));
    let said = ": there is no program ./nowhere (seen from ";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let outcome = shell(&hosts, 1, "true").with(["-wdir", "/nowhere"]).run();
    assert!(
        outcome
            .stderr
            .contains("there is no working directory /nowhere"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn output_is_also_written_where_the_launcher_is() {
    let Some(hosts) = cluster(2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let outcome = shell(&hosts, 1, "echo $PMI_RANK; echo wrong >&2")
        .with(["--output"])
        .with([format!("{}:nocopy", folder.path().display())])
        .succeeds();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    for rank in 0..2 {
        let file = |name: &str| folder.path().join(format!("1/rank.{rank}/{name}"));
        assert_eq!(
            fs::read_to_string(file("stdout")).unwrap(),
            format!("{rank}\n")
        );
        assert_eq!(fs::read_to_string(file("stderr")).unwrap(), "wrong\n");
    }
}
