//! Tests that arbitrary bytes reach the system calls unchanged: in file names, program names, arguments,
//! variables and info values.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use tests::{Job, compile, installation};

/// A string with a Latin-1 byte, a space and a newline: it is not UTF-8, and a shell would split it.
const ODD: &[u8] = b"\xe4 \n\xff";

fn every_byte_but_zero() -> OsString {
    OsString::from_vec((1..=255).collect())
}

/// Returns a job of the program in a folder named `ODD`; its arguments and a variable contain every
/// byte.
fn job(folder: &std::path::Path) -> Job {
    let place = folder.join(OsString::from_vec(ODD.to_vec()));
    fs::create_dir_all(&place).expect("a folder");
    let program = place.join("any_bytes");
    bounded::copy_program(&compile("any_bytes"), &program).expect("a copy");
    Job::command(&program)
        .under(&installation().join("bin/mpirun"))
        .arg("job")
        .arg(every_byte_but_zero())
        .arg(&place)
        .arg("two\nlines\n")
        .arg(OsString::from_vec(b"\xef\x9f\xa4\xe4".to_vec()))
        .arg("")
        .env("ANY_BYTES", every_byte_but_zero())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn names_arguments_and_values_keep_bytes_that_are_not_utf_8() {
    let folder = folder();
    job(folder.path()).ranks(2).holds();
}

#[test]
fn a_program_without_a_launcher_spawns_with_arguments_of_any_bytes() {
    let folder = folder();
    job(folder.path()).alone().holds();
}

/// The options name the folder of the output files and the working directory of the ranks.
#[test]
fn options_that_name_files_take_any_bytes() {
    let folder = folder();
    let place = folder.path().join(OsString::from_vec(ODD.to_vec()));
    fs::create_dir_all(&place).expect("a folder");
    let mut output = OsString::from("--output=");
    output.push(place.join("out"));
    let job = Job::of("hello").ranks(1).with([&output]);
    job.with(["-wdir".as_ref(), place.as_os_str()]).holds();
    let written = fs::read_to_string(place.join("out/1/rank.0/stdout")).expect("the output");
    assert!(written.contains("Hello from 0 of 1"), "{written}");

    let hosts = place.join("hosts");
    fs::write(&hosts, b"# f\xfcr alle\nlocalhost slots=2\n").expect("a file");
    let job = Job::of("hello").ranks(2);
    job.with(["--hostfile".as_ref(), hosts.as_os_str()]).holds();
}

/// The parameter's value is a file name with arbitrary bytes.
#[test]
fn a_parameter_names_a_file_by_its_bytes() {
    let folder = folder();
    let hints = folder.path().join(OsString::from_vec(ODD.to_vec()));
    fs::write(&hints, "file_perm 604\n").expect("written");
    let job = Job::of("file_hints").arg("604").arg("40").ranks(2);
    job.with([
        "--mca".as_ref(),
        "io_base_hints".as_ref(),
        hints.as_os_str(),
    ])
    .holds();
}
