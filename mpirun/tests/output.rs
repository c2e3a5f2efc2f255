//! Tests of output: write errors, prompts, and incomplete lines.

mod common;

use common::Launch;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code of a successful job with incomplete output (EX_IOERR).
const LOST: i32 = 74;

const FULL: &str = "No space left on device";

#[test]
fn a_standard_output_that_is_full_ends_the_job_with_a_sentence() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let done = Launch::new(&["-n", "2", "sh", "-c", "echo hello; sleep 1000"])
        .stdout(full())
        .run();
    assert_eq!(done.code, LOST);
    let said = "mpirun's standard output cannot be written any more: No space left on device (os error 28). The job is ended";
    assert!(done.stderr.contains(said), "{}", done.stderr);
}

#[test]
fn a_full_standard_output_is_no_harm_to_a_job_whose_lines_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let into = folder.path().to_str().unwrap();
    let script = "echo hello; sleep 0.2; echo bye";
    let done = Launch::new(&["--output", into, "-n", "2", "sh", "-c", script])
        .stdout(full)
        .run();
    assert_eq!(done.code, LOST);
    assert!(done.stderr.contains("The job goes on"), "{}", done.stderr);
    for rank in 0..2 {
        let file = folder.path().join(format!("1/rank.{rank}/stdout"));
        assert_eq!(fs::read_to_string(file).unwrap(), "hello\nbye\n");
    }
}

/// Lost output sets the exit status only if nothing else has failed.
#[test]
fn the_status_of_a_failure_is_not_hidden_by_lost_output() {
    let folder = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let into = folder.path().to_str().unwrap();
    let script = "echo hello; sleep 0.5; exit 3";
    let done = Launch::new(&["--output", into, "-n", "1", "sh", "-c", script])
        .stdout(full)
        .run();
    assert_eq!(done.code, 3, "{}", done.stderr);
    // The hang report of a time limit cannot replace a folder.
    let program = ["-n", "1", "sleep", "1000"];
    let done =
        Launch::new(&[&["--timeout", "1", "--hang-report", into], &program[..]].concat()).run();
    assert_eq!(done.code, 124, "{}", done.stderr);
    let sentence = "the report cannot be written to ";
    assert!(done.stderr.contains(sentence), "{}", done.stderr);
}

/// The job does not run before it is known where its reports can be written.
#[test]
fn a_report_whose_folder_does_not_exist_is_refused_before_the_job() {
    for option in ["--hang-report", "--trace", "--matrix", "--io-report"] {
        let file = format!("{option}=/no/such/folder/file");
        let done = Launch::new(&[&file, "-n", "1", "sh", "-c", "echo started"]).run();
        assert_eq!(done.code, 2, "{option}: {}", done.stderr);
        assert_eq!(done.stdout, "", "{option}");
        let sentence = "its folder does not exist";
        assert!(done.stderr.contains(sentence), "{option}: {}", done.stderr);
    }
}

#[test]
fn a_list_of_mpi_info_that_a_full_disk_refuses_is_an_error() {
    for arguments in [&["--all"][..], &["--json"], &[]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut info = Command::new(env!("CARGO_BIN_EXE_mpi-info"));
        let done = info.args(arguments).stdout(full).output().unwrap();
        assert_eq!(done.status.code(), Some(LOST), "{arguments:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let sentence = format!("mpi-info: the standard output cannot be written: {FULL}");
        assert!(said.starts_with(&sentence), "{said}");
    }
}

/// Runs mpirun in a mount namespace of its own, in a file system of 64 KiB.
fn with_a_small_disk(script: &str) -> Option<std::process::Output> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--map-root-user", "sh", "-c"])
        .arg(format!(
            "mount -t tmpfs -o size=64k none \"$1\" && cd \"$1\" && {script}"
        ))
        .arg("sh")
        .arg(folder.path())
        .env("MPIRUN", env!("CARGO_BIN_EXE_mpirun"))
        .stdin(Stdio::null());
    let done = common::run_bounded(&mut command);
    let refused = String::from_utf8_lossy(&done.stderr).contains("unshare failed");
    (!refused).then_some(done)
}

#[test]
fn lines_that_a_full_disk_refuses_come_out_of_mpirun() {
    let script = "\"$MPIRUN\" --output out:nocopy -n 1 seq 40000";
    let Some(done) = with_a_small_disk(script) else {
        return eprintln!("SKIPPED: needs a mount namespace");
    };
    assert_eq!(done.status.code(), Some(LOST));
    let said = String::from_utf8(done.stderr).unwrap();
    let path = Path::new("out/1/rank.0/stdout");
    assert!(
        said.contains("rank 0's standard output cannot be written to")
            && said.contains(path.to_str().unwrap())
            && said.contains(FULL),
        "{said}"
    );
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(out.ends_with("39999\n40000\n"), "the end is lost");
    // The file contains whole pages, and standard output contains all lines after them.
    assert!(out.len() >= "1\n".len() && out.lines().count() > 20_000);
}

#[test]
fn a_prompt_is_seen_before_its_line_ends_though_the_output_is_a_pipe() {
    let script = "printf 'name? '; read name; echo hello $name";
    let mut child = Command::new(env!("CARGO_BIN_EXE_mpirun"))
        .args(["-n", "2", "sh", "-c"])
        .arg(format!("[ $PMI_RANK = 1 ] && exec sleep 0; {script}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut prompt = [0; 6];
    out.read_exact(&mut prompt).unwrap();
    assert_eq!(&prompt, b"name? ");
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"Ada\n").unwrap();
    drop(stdin);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "hello Ada\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn last_lines_without_an_end_are_lines_of_their_own() {
    let done = Launch::new(&["-n", "3", "sh", "-c", "printf %s end$PMI_RANK"]).run();
    let mut lines: Vec<&str> = done.stdout.split('\n').collect();
    lines.sort_unstable();
    assert_eq!(lines, ["end0", "end1", "end2"]);
}

#[test]
fn a_trace_that_cannot_be_written_is_reported_and_leaves_no_partial_file() {
    // A program without MPI records no events, so its trace is short: the script fills the disk.
    let script = "dd if=/dev/zero of=filler bs=4k count=100 2> filler.err; \
         \"$MPIRUN\" --trace trace.json -n 2 true; code=$?; ls trace.json 2> /dev/null; exit $code";
    let Some(done) = with_a_small_disk(script) else {
        return eprintln!("SKIPPED: needs a mount namespace");
    };
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.contains("the trace cannot be written to") && said.contains(FULL),
        "{said}"
    );
    assert_eq!(done.status.code(), Some(LOST));
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "");
}

#[test]
fn a_limit_of_file_sizes_is_reported_like_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mpirun = env!("CARGO_BIN_EXE_mpirun");
    let mut command = Command::new("bash");
    // The limit is 4,096 blocks of 1,024 bytes; it does not apply to the rank's pipe.
    let script = format!("ulimit -f 4096; exec {mpirun} --output \"$0\":nocopy -n 1 seq 1000000");
    command.args(["-c", &script]).arg(folder.path());
    let done = common::run_bounded(&mut command);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(LOST), "{said}");
    assert!(said.contains("File too large"), "{said}");
    let kept = fs::read(folder.path().join("1/rank.0/stdout")).unwrap();
    let whole = [kept, done.stdout].concat();
    let expected: String = (1..=1_000_000).map(|n| format!("{n}\n")).collect();
    assert!(whole == expected.into_bytes(), "bytes are lost");
}
