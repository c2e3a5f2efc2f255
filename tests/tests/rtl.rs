//! Tests of jobs whose barriers use the simulated RTL (`--mca coll_hwbarr_port rtl`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hdl::tool::Tool;
use rustix::process::Signal;
use tests::job::send;
use tests::{Job, needs};
use xtask::demo::{Report, number, parameters};
use xtask::workspace;

const RANKS: u32 = 4;

fn can_translate() -> bool {
    [Tool::VERILATOR, Tool::CXX]
        .into_iter()
        .all(|tool| needs(tool.is_there(), tool.package))
}

/// Returns the cache that the tests of the packages `hdl` and `coll-hwbarr` use too.
fn shared_cache() -> PathBuf {
    workspace::target().join("tmp/hdl")
}

/// Returns mpirun's arguments for barriers on the RTL; `cache` holds the compiled model.
fn on_the_rtl(cache: &Path) -> Vec<String> {
    let cache = cache.display().to_string();
    [
        "--mca",
        parameters::PORT,
        "rtl",
        "--mca",
        "coll_hwbarr_rtl_cache",
        &cache,
    ]
    .map(str::to_owned)
    .into()
}

#[test]
fn the_barriers_of_a_program_are_released_by_the_rtl() {
    if !can_translate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report");
    let outcome = Job::of("barrier_loop")
        .with(on_the_rtl(&shared_cache()))
        .with(["--mca", parameters::REPORT, &file.display().to_string()])
        .ranks(RANKS)
        .arg("200")
        .arg("300")
        .holds();
    let report = Report::read(&file).unwrap_or_else(|e| panic!("{e}"));
    let barriers = number(&outcome.stdout, "barriers").unwrap() as u64;
    assert_eq!(report.releases, barriers);
    // Each release takes three clock edges after the last arrival, and only the RTL model counts edges.
    assert!(report.rtl_edges >= 3 * barriers, "{report:?}");
}

#[test]
fn a_rank_that_is_killed_on_the_rtl_leaves_nothing_behind() {
    if !can_translate() {
        return;
    }
    let job = Job::of("leave")
        .arg("wait")
        .arg("1")
        .with(on_the_rtl(&shared_cache()))
        .ranks(RANKS)
        .start();
    send(job.ready(RANKS as usize)[1], Signal::KILL);
    assert_eq!(job.wait().status.code(), Some(128 + 9));
}

/// Returns true if an entry of the cache has this name while a process fills it (`hdl::cache`).
fn is_unfinished(name: &str) -> bool {
    name.ends_with(".unfinished")
}

#[test]
fn a_job_that_is_killed_while_it_translates_leaves_nothing_that_hinders_the_next() {
    if !can_translate() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    // Verilator's run-time library, which takes the longest, is linked if an earlier test has compiled it.
    for entry in shared_cache().read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("verilator-runtime-") && !is_unfinished(&name) {
            std::os::unix::fs::symlink(entry.path(), cache.path().join(name)).unwrap();
        }
    }
    let begun = || {
        let mut entries = cache.path().read_dir().unwrap().flatten();
        entries.any(|entry| is_unfinished(&entry.file_name().to_string_lossy()))
    };
    let job = Job::of("barrier_loop")
        .with(on_the_rtl(cache.path()))
        .ranks(2)
        .arg("10")
        .start();
    let begin = Instant::now();
    while !begun() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "nothing is translated"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    job.signal(Signal::KILL);
    // `wait` fails if the compiler still runs or has left a temporary file.
    job.wait();
    Job::of("barrier_loop")
        .with(on_the_rtl(cache.path()))
        .ranks(2)
        .arg("10")
        .holds();
}
