//! Tests of failing file operations, of `mpirun --io-report`, of the file tracks of `mpirun --trace`,
//! and of the report of errors that a program has not checked.

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tests::job::send;
use tests::{Job, compile, installation, needs};

const RANKS: u32 = 3;

fn faults(what: &str, folder: &Path, ranks: u32) -> Job {
    Job::of("file_faults").arg(what).arg(folder).ranks(ranks)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A small file system; unmounted on drop.
struct Small {
    _folder: TempDir,
    at: PathBuf,
}

impl Small {
    /// Mounts a small file system; returns `None` if this process may not mount.
    fn new() -> Option<Small> {
        let folder = folder();
        let at = folder.path().join("small");
        std::fs::create_dir(&at).expect("a folder");
        let options = c"size=6m";
        let mounted = mount("none", &at, "tmpfs", MountFlags::empty(), options);
        needs(mounted.is_ok(), "the right to mount a file system").then_some(Small {
            _folder: folder,
            at,
        })
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_has_the_same_class_at_all_ranks() {
    let Some(disk) = Small::new() else { return };
    for ranks in [2, 3, 5] {
        faults("full", &disk.at, ranks).holds();
    }
    let by_messages = faults("full", &disk.at, RANKS);
    by_messages.with(["--mca", "osc", "am"]).holds();
}

#[test]
fn a_file_system_that_is_mounted_for_reading_refuses_writers_only() {
    let Some(disk) = Small::new() else { return };
    std::fs::write(disk.at.join("there"), "some text").expect("written");
    mount_remount(&disk.at, MountFlags::RDONLY, "").expect("mounted again");
    faults("readonly", &disk.at, RANKS).holds();
}

#[test]
fn one_rank_s_limit_of_file_sizes_ends_a_collective_access_alike_at_all() {
    for ranks in [2, 3] {
        faults("limit", folder().path(), ranks).holds();
    }
}

#[test]
fn a_rank_whose_part_is_done_before_the_others_meet_ends_alike_at_all() {
    for ranks in [2, 3, 5] {
        faults("apart", folder().path(), ranks).holds();
    }
    let folder = folder();
    let by_messages = faults("apart", folder.path(), RANKS);
    by_messages.with(["--mca", "osc", "am"]).holds();
}

#[test]
fn names_that_are_no_files_have_their_classes() {
    faults("names", folder().path(), RANKS).holds();
}

#[test]
fn a_file_whose_name_is_removed_stays_open() {
    faults("removed", folder().path(), RANKS).holds();
}

#[test]
fn reading_past_a_cut_gives_true_counts_and_leaves_the_rest_alone() {
    for ranks in [1, 2, 3, 5] {
        faults("cut", folder().path(), ranks).holds();
    }
    let folder = folder();
    let by_messages = faults("cut", folder.path(), RANKS);
    by_messages.with(["--mca", "osc", "am"]).holds();
}

#[test]
fn long_nonblocking_reads_go_on_while_the_program_computes() {
    for ranks in [1, 2, 3, 5] {
        let folder = folder();
        Job::of("file_meanwhile")
            .arg(folder.path())
            .ranks(ranks)
            .holds();
    }
}

/// Docker's default profile blocks io_uring's system calls, so the call itself executes the read.
#[test]
fn long_nonblocking_reads_are_done_at_once_where_the_system_has_no_rings() {
    let folder = folder();
    let contained = Path::new(env!("CARGO_BIN_EXE_contained"));
    let job = Job::command(contained).under(&installation().join("bin/mpirun"));
    let job = job.arg("docker").arg(compile("file_meanwhile"));
    let outcome = job.arg(folder.path()).ranks(2).succeeds();
    let line = "all claims of file_meanwhile hold on 2 ranks";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
}

#[test]
fn handles_and_files_of_one_name_have_pointers_of_their_own() {
    let folder = folder();
    faults("twice", folder.path(), RANKS).holds();
}

#[test]
fn two_jobs_with_files_of_one_name_do_not_meet() {
    let (one, other) = (folder(), folder());
    let jobs = [&one, &other].map(|folder| faults("twice", folder.path(), RANKS).start());
    for job in jobs {
        let outcome = job.wait();
        assert!(outcome.status.success(), "{}", outcome.stderr);
    }
}

/// `Started::wait` panics if a process or a file of the job is left.
#[test]
fn a_rank_that_is_killed_in_a_collective_write_leaves_the_data_file_only() {
    let folder = folder();
    let job = faults("forever", folder.path(), RANKS).start();
    let victim = job.ready(RANKS as usize)[1];
    send(victim, Signal::KILL);
    let outcome = job.wait();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    let left = std::fs::read_dir(folder.path()).expect("a folder");
    let left: Vec<_> = left
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect();
    assert_eq!(left, ["data"]);
}

#[test]
fn a_report_counts_what_all_ranks_did_to_each_file() {
    let folder = folder();
    let file = folder.path().join("report.json");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let option = format!("--io-report={}", file.display());
    faults("cut", &data, RANKS).with([&option]).holds();
    let text = std::fs::read_to_string(&file).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let [told] = &report["files"].as_array().expect("files")[..] else {
        panic!("{text}")
    };
    assert!(
        told["name"]
            .as_str()
            .expect("a name")
            .ends_with("/data/data"),
        "{text}"
    );
    // Each of three ranks writes 100 pieces of 1,000 bytes in one call and reads 51 of them,
    // except that the file ends in the last rank's last piece.
    assert_eq!(told["ranks"], 3);
    assert_eq!(told["bytes_written"], 300_000);
    assert_eq!(told["bytes_read"], 152_500);
    assert_eq!((&told["writes"], &told["reads"]), (&3.into(), &3.into()));
    assert_eq!(
        (&told["collective"], &told["aggregated"]),
        (&6.into(), &6.into())
    );
    let columns = told["call_sizes"].as_array().expect("sizes");
    let calls: u64 = columns.iter().filter_map(Value::as_u64).sum();
    assert_eq!(calls, 6);
    assert!(told["system_writes"].as_u64() >= Some(1), "{text}");
    assert!(told["slowest"]["rank"].as_u64() < Some(3), "{text}");
}

#[test]
fn a_report_without_a_name_is_a_table_on_standard_error() {
    let folder = folder();
    let outcome = faults("removed", folder.path(), RANKS)
        .with(["--io-report"])
        .holds();
    for part in [
        "/data: opened 3 times by 3 ranks",
        "300 B in 3 calls",
        "slowest",
    ] {
        assert!(
            outcome.stderr.contains(part),
            "{part:?} is missing in:\n{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_trace_has_a_lane_for_each_file_with_its_system_calls() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let option = format!("--trace={}", file.display());
    faults("removed", &data, RANKS).with([&option]).holds();
    let text = std::fs::read_to_string(&file).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let lanes = events.iter().filter(|event| {
        let name = event["args"]["name"].as_str().unwrap_or_default();
        event["name"] == "thread_name" && name.ends_with("/data/data")
    });
    assert_eq!(lanes.count(), RANKS as usize);
    let writes = events
        .iter()
        .filter(|event| event["cat"] == "file" && event["name"] == "pwrite");
    let mut offsets: Vec<_> = writes
        .filter_map(|event| event["args"]["offset"].as_u64())
        .collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 100, 200]);
}

/// The program calls `MPI_File_sync` once; one rank of the node calls fsync.
#[test]
fn the_members_of_a_node_bring_a_file_to_the_disk_once_for_all() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let option = format!("--trace={}", file.display());
    let job = Job::of("file_representations").ranks(RANKS);
    job.with([&option]).holds();
    let text = std::fs::read_to_string(&file).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let syncs = events
        .iter()
        .filter(|event| event["cat"] == "file" && event["name"] == "fsync");
    assert_eq!(syncs.count(), 1, "{text}");
}

#[test]
fn an_ignored_error_of_a_file_is_reported_if_the_parameter_is_set() {
    const WANTED: [&str; 3] = ["--mca", "io_base_tell_unseen_errors", "true"];
    let folder = folder();
    let job = || Job::of("file_unseen").arg(folder.path()).ranks(2);
    let said = job().with(WANTED).holds().stderr;
    let lines: Vec<_> = said
        .lines()
        .filter(|line| line.contains("never asked"))
        .collect();
    let [line] = lines[..] else { panic!("{said}") };
    for part in ["rank 0", "MPI_File_open", "MPI_ERR_NO_SUCH_FILE", "missing"] {
        assert!(line.contains(part), "{part:?} is missing in: {line}");
    }
    // A program may check an error by comparing the code with MPI_SUCCESS,
    // which the library cannot see.
    assert_eq!(job().holds().stderr, "");
    let looked_at = Job::of("file_unseen")
        .arg(folder.path())
        .arg("look")
        .ranks(2);
    assert_eq!(looked_at.with(WANTED).holds().stderr, "");
}

#[test]
fn a_file_of_hints_sets_the_mode_of_files_that_are_created() {
    let folder = folder();
    let hints = folder.path().join("hints");
    std::fs::write(&hints, "file_perm 604\n").expect("written");
    let hints = hints.display().to_string();
    let job = Job::of("file_hints").arg("604").arg("40").ranks(RANKS);
    job.with(["--mca", "io_base_hints", &hints]).holds();
}

#[test]
fn ineffective_lines_of_a_file_of_hints_are_reported_once() {
    let folder = folder();
    let hints = folder.path().join("hints");
    let told = |setting: &str| {
        let job = Job::of("files").ranks(RANKS);
        let job = job.with(["--mca", "io_base_hints", setting]);
        let said = job.holds().stderr;
        let lines = said.lines().filter(|line| line.contains("file of hints"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let name = hints.display().to_string();
    std::fs::write(&hints, "striping_unit 65536\n").expect("written");
    assert_eq!(told(&name), Vec::<String>::new());
    std::fs::write(&hints, "cb_bufer_size 8388608\n").expect("written");
    let lines = told(&name);
    let [line] = &lines[..] else {
        panic!("{lines:?}")
    };
    for part in ["rank 0", &*name, "line 1", "cb_buffer_size"] {
        assert!(line.contains(part), "{part:?} is missing in: {line}");
    }
    let missing = format!("{name}.missing");
    let lines = told(&missing);
    let [line] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert!(
        line.contains(&missing) && line.contains("cannot be read"),
        "{line}"
    );
}
