//! Jobs that are stopped or killed at random moments, and kills at each step of writing a checkpoint.
//!
//! The restarts give the results of undisturbed jobs. The last complete checkpoint stays whole.
//! Environment variables set the numbers: `CHECKPOINT_STOPS` for each job, and `CHECKPOINT_KILLS` for each test of kills.

use super::hosts::hosts;
use super::{
    PAUSE, PROGRAM, STEPS, ctl, file, folder, has_criu, is_over, job, numbers, plain, printed,
    result, script,
};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::hosts::Hosts;
use tests::{Job, Outcome, Started, compile, installation, killed_at, leftovers, mpi4py_python};

/// A restart that has not printed a result after this number of attempts is an error.
const ATTEMPTS: u32 = 400;

/// Returns the number that an environment variable sets.
pub(super) fn times(variable: &str, otherwise: u32) -> u32 {
    let set = std::env::var(variable).ok();
    set.and_then(|set| set.parse().ok()).unwrap_or(otherwise)
}

/// A generator of random numbers (linear congruential).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1);
        (self.0 >> 33) % limit
    }

    pub(super) fn pause(&mut self, limit_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.below(limit_ms)));
    }
}

/// Returns a restart of the job in `kept`, as a job of the harness.
fn restart(kept: &Path) -> Job {
    let mpirun = installation().join("bin/mpirun");
    let restart = Job::command(&mpirun).limit(100).arg("--restart");
    restart.arg(kept.join("saved"))
}

/// Checks that no process of the first job is left; restored processes have its mark.
pub(super) fn nothing_is_left_of(mark: &str, kept: &Path) {
    let nothing = kept.join("nothing");
    leftovers::assert_none_after(mark, &nothing, Duration::from_secs(20));
}

/// Requests a checkpoint after which the job ends, until the job has one or has ended.
/// Before the ranks are started or restored, the request has no addressee.
pub(super) fn stop(started: &Started) {
    while !is_over(started.process()) {
        let stopped = ctl(&["checkpoint", "--stop"], started);
        if stopped.status.success() {
            return;
        }
        let is_refused = stopped.stderr.contains("no checkpoint ");
        assert!(!is_refused, "{}", stopped.stderr);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stops a job at random moments and restarts it, until it has a result.
/// Returns the result, the number of stops, and the output of all parts.
fn stopped_at_random(kept: &Path, first: Job, random: &mut Random) -> (String, u32, String) {
    let mut started = first.start();
    let mark = started.mark().to_owned();
    let (mut stops, mut output) = (0, String::new());
    loop {
        random.pause(600);
        stop(&started);
        let outcome = started.wait_for_processes(Duration::from_secs(20));
        nothing_is_left_of(&mark, kept);
        output += &outcome.stdout;
        if outcome.status.code() != Some(85) {
            // A job that is stopped after its last step has printed its result before.
            let found = output.lines().find(|line| line.starts_with("result "));
            let found = found.map_or_else(|| result(&outcome), str::to_owned);
            return (found, stops, output);
        }
        stops += 1;
        assert!(stops < ATTEMPTS, "{}", outcome.stderr);
        started = restart(kept).start();
    }
}

/// Stops jobs `wanted` times in total; `job` returns a job in a new folder.
/// `check` compares the folder and the output of a complete job.
fn many_stops(
    wanted: u32,
    job: &dyn Fn(&Path) -> Job,
    expected: &str,
    check: &dyn Fn(&Path, &str),
) {
    let (mut random, mut stops) = (Random(5), 0);
    while stops < wanted {
        let kept = folder();
        let (found, times, output) = stopped_at_random(kept.path(), job(kept.path()), &mut random);
        assert_eq!(found, expected, "after {stops} and {times} stops");
        check(kept.path(), &output);
        assert!(times > 0, "the job ends before its first stop");
        stops += times;
    }
}

/// Returns a job with images in `kept/saved`.
pub(super) fn with_images(job: Job, kept: &Path) -> Job {
    let dir = kept.join("saved");
    job.with(["--checkpoint-dir".as_ref(), dir.as_os_str()])
        .with(["--mca", "crs", "criu"])
}

/// Returns the stencil of `checkpoints.c`, which does not use its own checkpoints here.
fn stencil() -> Job {
    stencil_of(Job::of("checkpoints").ranks(4).limit(100))
}

/// Adds the arguments of the stencil to a job of `checkpoints.c`.
pub(super) fn stencil_of(job: Job) -> Job {
    job.arg("400").env("CHECKPOINTS", "pause 3000")
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_stencil_that_is_stopped_at_random_moments_comes_to_the_same_result() {
    if !has_criu() {
        return;
    }
    let expected = result(&stencil().succeeds());
    let job = |kept: &Path| with_images(stencil(), kept);
    many_stops(times("CHECKPOINT_STOPS", 100), &job, &expected, &|_, _| ());
}

/// The job has two threads in MPI, a window and a shared file.
fn windows_and_files(btl: &str) {
    let undisturbed = folder();
    let expected = result(&plain(undisturbed.path(), "file").succeeds());
    let lines = file(undisturbed.path());
    let job = |kept: &Path| job(kept, btl);
    many_stops(
        times("CHECKPOINT_STOPS", 100),
        &job,
        &expected,
        &|kept, output| {
            let all: Vec<usize> = (0..STEPS).collect();
            assert_eq!(printed(output), all, "each line is printed once");
            assert_eq!(file(kept), lines);
        },
    );
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn windows_and_files_that_are_stopped_at_random_moments_come_to_the_same_result() {
    if has_criu() {
        windows_and_files("self,sm");
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_same_over_tcp() {
    if has_criu() {
        windows_and_files("self,tcp");
    }
}

/// A Python program that does not know of checkpoints.
const WALK: &str = r#"
import time
from mpi4py import MPI

world = MPI.COMM_WORLD
here, all = world.rank + 1, 0
for step in range(300):
    up, down = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    came = world.sendrecv(here, dest=up, source=down)
    here = (here * 31 + came * 17 + step) % 1000003
    all = (all * 7 + world.allreduce(here)) % 1000003
    here += world.bcast(here % 5, root=step % world.size)
    time.sleep(0.003)
if world.rank == 0:
    print(f"result {all}", flush=True)
"#;

#[test]
fn mpi4py_that_is_stopped_three_times_comes_to_the_same_result() {
    mpi4py(3);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn mpi4py_that_is_stopped_at_random_moments_comes_to_the_same_result() {
    mpi4py(times("CHECKPOINT_STOPS", 100));
}

/// A job of mpi4py: its interpreter, its script, and the variable with which mpi4py finds the library.
pub(super) struct Walk {
    pub python: PathBuf,
    pub script: PathBuf,
    pub libraries: String,
}

/// Writes the script to a folder. Returns `None` without mpi4py or CRIU.
pub(super) fn walk(folder: &Path) -> Option<Walk> {
    let python = mpi4py_python().filter(|_| has_criu())?;
    let script = folder.join("walk.py");
    fs::write(&script, WALK).expect("written");
    let libraries = format!("LD_LIBRARY_PATH={}", installation().join("lib").display());
    Some(Walk {
        python,
        script,
        libraries,
    })
}

fn mpi4py(stops: u32) {
    let scripts = folder();
    let Some(walk) = walk(scripts.path()) else {
        return;
    };
    let plain = || {
        let job = Job::command(&walk.python).under(&installation().join("bin/mpirun"));
        let job = job.with(["-x", &walk.libraries]).ranks(2).limit(100);
        job.arg(&walk.script)
    };
    let expected = result(&plain().succeeds());
    let job = |kept: &Path| with_images(plain(), kept);
    many_stops(stops, &job, &expected, &|_, _| ());
}

/// Kills mpirun at random moments and restarts the job, until it has a result; returns the number of kills.
/// The moments are in the start, in a restore, between checkpoints and in any step of one.
fn killed_at_random(kept: &Path, first: &dyn Fn() -> Job, random: &mut Random) -> (String, u32) {
    let mut kills = 0;
    loop {
        let job = match numbers(kept).iter().any(|(_, is_complete)| *is_complete) {
            true => restart(kept).arg("--checkpoint-truncate"),
            false => first(),
        };
        let started = job.start();
        let mark = started.mark().to_owned();
        random.pause(900);
        started.signal(Signal::KILL);
        let outcome = started.wait_for_processes(Duration::from_secs(20));
        nothing_is_left_of(&mark, kept);
        if outcome.stdout.contains("result ") {
            return (result(&outcome), kills);
        }
        assert_eq!(outcome.status.code(), None, "{}", outcome.stderr);
        kills += 1;
        assert!(kills < ATTEMPTS, "{}", outcome.stderr);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_job_whose_mpirun_is_killed_at_random_moments_comes_to_the_same_result() {
    if !has_criu() {
        return;
    }
    let undisturbed = folder();
    let expected = result(&plain(undisturbed.path(), "file").succeeds());
    let (wanted, mut random, mut kills) = (times("CHECKPOINT_KILLS", 200), Random(3), 0);
    while kills < wanted {
        let kept = folder();
        let first = || job(kept.path(), "self,sm").with(["--checkpoint-every", "100ms"]);
        let (found, times) = killed_at_random(kept.path(), &first, &mut random);
        assert_eq!(found, expected, "after {kills} and {times} kills");
        assert_eq!(file(kept.path()), file(undisturbed.path()));
        kills += times;
    }
}

fn two_hosts() -> Hosts {
    hosts(2).expect("hosts as before")
}

/// Returns a job of `images.c` without checkpoints, with one rank on each host.
pub(super) fn on_hosts(hosts: &Hosts, kept: &Path) -> Job {
    let job = hosts.remote_job(&compile("images"), 1).limit(100);
    let job = job.arg(STEPS.to_string()).arg(PAUSE);
    job.arg(kept.join("file"))
}

/// A job that is killed while it takes its second checkpoint, and what its restart must print.
struct Victim {
    expected: String,
    lines: Vec<u8>,
    /// Whether the job is on two hosts.
    has_hosts: bool,
}

impl Victim {
    fn new(has_hosts: bool) -> Victim {
        let undisturbed = folder();
        let at = has_hosts.then(two_hosts);
        let job = match &at {
            Some(hosts) => on_hosts(hosts, undisturbed.path()),
            None => plain(undisturbed.path(), "file"),
        };
        let expected = result(&job.succeeds());
        Victim {
            expected,
            lines: file(undisturbed.path()),
            has_hosts,
        }
    }

    /// Runs a job that has checkpoint 1 and is killed in checkpoint 2, and restarts it.
    /// `prepared` returns the job in a folder. Returns what became of the job, and the checkpoint of the restart.
    fn killed(
        &self,
        btl: &str,
        stops: bool,
        prepared: &dyn Fn(Job, &Path) -> Job,
    ) -> (Outcome, u64) {
        let kept = folder();
        let at = self.has_hosts.then(two_hosts);
        let job = match &at {
            Some(hosts) => with_images(on_hosts(hosts, kept.path()), kept.path()),
            None => job(kept.path(), btl),
        };
        let started = prepared(job, kept.path()).start();
        let mark = started.mark().to_owned();
        started.says("step 2");
        let first = ctl(&["checkpoint"], &started);
        assert!(first.status.success(), "{}", first.stderr);
        let words: &[&str] = match stops {
            true => &["checkpoint", "--stop"],
            false => &["checkpoint"],
        };
        ctl(words, &started);
        let outcome = started.wait_for_processes(Duration::from_secs(20));
        nothing_is_left_of(&mark, kept.path());
        let found = numbers(kept.path());
        let newest = found.iter().filter(|(_, is_complete)| *is_complete);
        let newest = newest.map(|(number, _)| *number).max();
        drop(at);
        let at = self.has_hosts.then(two_hosts);
        let again = match &at {
            Some(hosts) => super::hosts::restart(kept.path(), hosts),
            None => restart(kept.path()),
        };
        let again = again.arg("--checkpoint-truncate").run();
        let from = again.stderr.split("continues from the checkpoint ").nth(1);
        let from = from.and_then(|folder| folder.lines().next()?.rsplit('/').next()?.parse().ok());
        assert_eq!(from, newest, "{found:?}\n{}", again.stderr);
        assert_eq!(result(&again), self.expected, "{}", outcome.stderr);
        assert_eq!(file(kept.path()), self.lines);
        (outcome, newest.unwrap_or(0))
    }

    /// Kills a program at its step `at` of writing checkpoint 2.
    fn killed_at(&self, of: &Writer, at: u32, (after, stops): (bool, bool)) -> (Outcome, u64) {
        let preload = killed_at();
        self.killed("self,sm", stops, &|job, kept| {
            let below = kept.join("saved/2");
            let job = job
                .env("LD_PRELOAD", &preload)
                .env("KILLED_BELOW", below)
                .env("KILLED_PROGRAM", of.program)
                .env("KILLED_AT", at.to_string());
            let further = [(after, "KILLED_AFTER"), (of.is_first, "KILLED_UNFORKED")];
            let further = further.into_iter().filter(|(is, _)| *is);
            further.fold(job, |job, (_, name)| job.env(name, "1"))
        })
    }
}

/// A program that writes a checkpoint.
struct Writer {
    program: &'static str,
    /// Whether only the process that was started as the program has steps, and not those that it has forked.
    is_first: bool,
}

/// mpirun without the process that syncs the images: it makes the folder and commits the checkpoint.
const COMMITS: Writer = Writer {
    program: "mpirun",
    is_first: true,
};
const SYNCS: Writer = Writer {
    program: "mpirun",
    is_first: false,
};
const DUMPS: Writer = Writer {
    program: "criu",
    is_first: false,
};

/// Kills a program at the steps of writing a checkpoint, with a random distance between the steps,
/// until all steps are passed and the number of kills is reached.
fn at_each_step(of: &Writer, has_hosts: bool, limit: u32) {
    let victim = Victim::new(has_hosts);
    let (wanted, mut random) = (times("CHECKPOINT_KILLS", limit), Random(17));
    let (mut at, mut kills, mut taken, mut last, mut passes) = (1, 0, Vec::new(), 0, 0);
    while kills < wanted {
        // After the last step's call, the checkpoint is complete.
        let ways = (passes % 2 == 1, random.below(2) == 1);
        let (outcome, from) = victim.killed_at(of, at, ways);
        let has_result = outcome.stdout.contains("result ");
        let is_stopped = outcome.status.code() == Some(85);
        // A process of mpirun of its own syncs the images; mpirun survives its death.
        let is_sync = outcome.stderr.contains("the sync of the images was killed");
        if (has_result || is_stopped) && !is_sync {
            // The program has fewer steps: begin again.
            let program = of.program;
            assert!(
                at > 7,
                "no kill at step {at} of {program}: {}",
                outcome.stderr
            );
            (last, passes) = (last.max(at), passes + 1);
            at = 1 + random.below(3) as u32;
            continue;
        }
        kills += 1;
        taken.push(from);
        let every = (if last > 0 { last } else { 150 }) * 2 / wanted.max(1);
        at += 1 + random.below(u64::from(every) + 1) as u32;
    }
    assert!(taken.contains(&1), "{taken:?}");
    if of.is_first && wanted > 20 {
        assert!(taken.contains(&2), "{taken:?}");
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn kills_of_mpirun_at_the_steps_of_writing_leave_the_checkpoint_before_or_the_new_one() {
    if has_criu() {
        at_each_step(&COMMITS, false, 50);
        at_each_step(&SYNCS, false, 50);
    }
}

#[test]
fn kills_at_three_steps_of_writing_on_two_hosts_leave_the_checkpoint_before() {
    if !has_criu() || hosts(2).is_none() {
        return;
    }
    let victim = Victim::new(true);
    // The folder of the checkpoint, an image of CRIU, and a step of the sync.
    for (of, at) in [(&COMMITS, 1), (&DUMPS, 20), (&SYNCS, 12)] {
        let (outcome, from) = victim.killed_at(of, at, (false, false));
        let program = of.program;
        assert_eq!(from, 1, "{program} {at}: {}", outcome.stderr);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn kills_at_the_steps_of_writing_on_two_hosts_leave_the_checkpoint_before_or_the_new_one() {
    if has_criu() && hosts(2).is_some() {
        at_each_step(&COMMITS, true, 50);
        at_each_step(&SYNCS, true, 50);
        at_each_step(&DUMPS, true, 100);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn kills_of_criu_at_the_steps_of_writing_leave_the_checkpoint_before() {
    if has_criu() {
        at_each_step(&DUMPS, false, 100);
    }
}

/// CRIU is killed after a random time, in any of its phases, over each transport.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn kills_of_criu_at_random_moments_leave_the_checkpoint_before() {
    if !has_criu() {
        return;
    }
    let (victim, mut random) = (Victim::new(false), Random(29));
    let real = std::env::var(PROGRAM).unwrap_or_else(|_| "criu".into());
    for kill in 0..times("CHECKPOINT_KILLS", 100) {
        let milliseconds = random.below(200);
        let prepared = |job: Job, kept: &Path| {
            let dying = format!(
                "case \"$*\" in dump*/2.tmp/*) ((sleep 0.{milliseconds:03}; grep -q dump /proc/$$/cmdline && kill -9 $$) >/dev/null 2>&1 &);; esac\nexec {real} \"$@\"",
            );
            job.env(PROGRAM, script(kept, &dying))
        };
        let btl = ["self,sm", "self,tcp"][kill as usize % 2];
        victim.killed(btl, random.below(2) == 1, &prepared);
    }
}
