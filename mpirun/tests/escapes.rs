//! Tests of external text in messages of mpirun, mpi-info and mpicc.
//!
//! Control characters reach no terminal, and no line of such text looks like a message of mpirun.

mod common;

use common::Launch;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

/// A window title, a bell, a carriage return, a forged line, a C1 control, right-to-left text.
const EVIL: &str = "forged\x1b]0;title\x07\r\nmpirun: forged\u{9b}31m\u{202e}";

/// The escaped form of `EVIL`, as messages must print it.
const SHOWN: &str = "forged\\u{1b}]0;title\\u{7}\\r\\nmpirun: forged\\u{9b}31m\\u{202e}";

#[track_caller]
fn shows(what: &str, said: &str) {
    let special = |c: &char| (c.is_control() && !matches!(c, '\n' | '\t')) || *c == '\u{202e}';
    let found = said.chars().find(special);
    assert_eq!(found, None, "{what}: a terminal obeys this: {said:?}");
    let forged = said.lines().find(|line| line.starts_with("mpirun: forged"));
    assert_eq!(forged, None, "{what}: a forged line: {said:?}");
    assert!(
        said.contains(SHOWN),
        "{what}: the text is not shown: {said:?}"
    );
}

/// Returns the standard output and standard error of a command.
fn said(command: &mut Command) -> String {
    let Output { stdout, stderr, .. } = common::run_bounded(command.stdin(Stdio::null()));
    String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr)
}

fn mpirun(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpirun"));
    command.args(args);
    command
}

#[test]
fn arguments_are_shown() {
    let unwritable = format!("/proc/{EVIL}");
    for before in [
        &["-n"][..],
        &["-N"],
        &["--soft"],
        &["--map-by"],
        &["--rank-by"],
        &["--bind-to"],
        &["--rankfile"],
        &["--hostfile"],
        &["--host"],
        &["--configfile"],
        &["--display"],
        &["--stdin"],
        &["--stream-buffering"],
        &["--with-ft"],
        &["--compat"],
        &["--on"],
        &["--timeout"],
        &["--generate"],
        &["--replay"],
        &["--cpus-per-rank"],
        &["--wdir"],
        &["--mca", "btl_tcp_links"],
        &[],
    ] {
        let args = [before, &[EVIL, "true"]].concat();
        shows(&format!("{before:?}"), &said(&mut mpirun(&args)));
    }
    for args in [
        &[&format!("--{EVIL}"), "true"][..],
        &["--help", EVIL],
        &["-x", &format!("={EVIL}"), "true"],
        &["--output", &format!("tag,{EVIL}"), "true"],
        &["--output", &unwritable, "true"],
        &["--trace", &format!("{unwritable}/t.json"), "true"],
        &["--record", &unwritable, "true"],
        &["--mca", &format!("mpirun_{EVIL}"), "1", "true"],
        &["true", ":", &format!("--{EVIL}"), "true"],
        &["--wdir", EVIL, "./no"],
        &[&format!("./{EVIL}")],
    ] {
        shows(&format!("{args:?}"), &said(&mut mpirun(args)));
    }
}

#[test]
fn files_and_the_environment_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // A line of a file contains no newline, so the newline is replaced.
    let line = EVIL.replace('\n', "\\n");
    for (option, text) in [
        ("--hostfile", format!("node {line}\n")),
        ("--rankfile", format!("rank {line}\n")),
        ("--configfile", format!("-n '{line}' true\n")),
    ] {
        let path = file(&option[2..], text);
        let said = said(mpirun(&[option, &path, "true"]).env("PATH", "/bin"));
        shows(option, &said);
    }
    for (variable, args) in [
        ("SLURM_JOB_NODELIST", &["true"][..]),
        ("LSB_MCPU_HOSTS", &["true"]),
        ("PBS_NODEFILE", &["true"]),
        ("MPIEXEC_TIMEOUT", &["true"]),
        ("PORTCULLIS_MCA_btl_tcp_links", &["true"]),
    ] {
        let said = said(mpirun(args).env(variable, EVIL).env_remove("SLURM_JOB_ID"));
        shows(variable, &said);
    }
}

#[test]
fn the_name_of_a_program_is_shown_in_all_messages_about_its_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(EVIL);
    symlink("/bin/false", &program).unwrap();
    let program = program.to_str().unwrap();
    for args in [
        &[program][..],
        &["--verbose", program],
        &["--display-map", program],
        &["--with-ft", "ulfm", "-n", "2", program],
    ] {
        let done = Launch::new(args).run();
        shows(&format!("{args:?}"), &done.stderr);
    }
    fs::remove_file(program).unwrap();
    fs::write(program, "not executable").unwrap();
    shows("a plain file", &Launch::new(&[program]).run().stderr);
}

#[test]
fn the_command_that_reaches_a_host_is_shown() {
    // The launch agent contains no space, since spaces separate its words.
    let agent = "/nowhere/forged\x1b]0;title\x07";
    let args = ["--launch-agent", agent, "--host", "elsewhere", "true"];
    let said = Launch::new(&args).run().stderr;
    assert!(
        said.contains("forged\\u{1b}]0;title\\u{7} did not reach it"),
        "{said:?}"
    );
    assert!(!said.contains('\x1b'), "{said:?}");
    // The message shows no pid, since the rank was never started.
    assert!(
        said.contains("rank 0 (of 1; true, not started) on elsewhere"),
        "{said:?}"
    );
}

/// The text comes from a rank over PMI-1, which any program may speak.
#[test]
fn the_words_of_a_rank_that_aborts_are_shown() {
    let script = "printf 'cmd=init pmi_version=1 pmi_subversion=1\\n' >&$PMI_FD; \
                  printf 'cmd=abort exitcode=3 message=forged\\033]0;title\\007\\n' >&$PMI_FD; sleep 1000";
    // The script needs bash, since some versions of sh accept only one-digit descriptors.
    let said = Launch::new(&["-n", "1", "bash", "-c", script]).run().stderr;
    assert!(said.contains("forged\\u{1b}]0;title\\u{7}"), "{said:?}");
    assert!(!said.contains('\x1b') && !said.contains('\x07'), "{said:?}");
}

#[test]
fn mpi_info_and_mpicc_show_what_they_are_given() {
    let info = || Command::new(env!("CARGO_BIN_EXE_mpi-info"));
    for args in [
        &["--param", EVIL][..],
        &["--param", "btl", EVIL],
        &["--explain", EVIL],
        &["--explain", "coll", EVIL],
        &["--level", EVIL],
        &[EVIL],
    ] {
        let said = said(info().args(args));
        assert!(said.contains("\\u{1b}]0;title\\u{7}"), "{args:?}: {said:?}");
        assert!(
            !said.contains('\x1b') && !said.contains('\u{9b}'),
            "{said:?}"
        );
    }
    let said_of = |variable: &str, args: &[&str]| said(info().args(args).env(variable, EVIL));
    for args in [&["--param", "btl", "base"][..], &["--json"]] {
        let said = said_of("PORTCULLIS_MCA_btl", args);
        assert!(
            !said.contains('\x1b') && !said.contains('\u{9b}'),
            "{args:?}"
        );
    }
    // mpicc searches for the library beside its own folder.
    let prefix = tempfile::tempdir().unwrap();
    for folder in ["bin", "include", "lib"] {
        fs::create_dir(prefix.path().join(folder)).unwrap();
    }
    let mpicc = prefix.path().join("bin/mpicc");
    bounded::copy_program(env!("CARGO_BIN_EXE_mpicc").as_ref(), &mpicc).unwrap();
    let no_compiler = format!("/nowhere/{EVIL}");
    let said = said(Command::new(mpicc).arg("x.c").env("MPICC_CC", no_compiler));
    assert!(said.contains("\\u{1b}]0;title\\u{7}"), "{said:?}");
    assert!(!said.contains('\x1b'), "{said:?}");
}
