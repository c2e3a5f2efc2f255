//! What images cannot contain is refused in one sentence before anything is written.

use super::{PROGRAM, ctl, folder, has_criu, numbers, plain, result, run, script};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tests::{Job, compile, installation, needs};
use xtask::packages::on_path;

/// Runs `hello` with images and these options; the job must be refused before it starts.
fn refused_at_the_start(options: &[&str], program: &[&str], sentence: &str) {
    let kept = folder();
    let new = script(kept.path(), "echo Version: 4.2")
        .display()
        .to_string();
    let dir = kept.path().join("saved").display().to_string();
    let mut command = Command::new(installation().join("bin/mpirun"));
    command.args(["--checkpoint-dir", &dir, "--mca", "crs", "criu"]);
    command.args(["--mca", "crs_criu_program", &new]);
    let outcome = run(command.args(options).args(program).arg(compile("hello")));
    assert_eq!(outcome.status.code(), Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    let lines = outcome.stderr.matches('\n').count();
    assert_eq!(lines, 1, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
    assert!(!Path::new(&dir).exists(), "{sentence}");
}

#[test]
fn another_mpi_library_is_refused() {
    let library = compile("hello").display().to_string();
    let sentence =
        "--on and checkpoints exclude each other: the other MPI library does not know them\n";
    refused_at_the_start(&["--on", &library], &[], sentence);
}

#[test]
fn valgrind_is_refused() {
    let sentence = "the job uses valgrind, and checkpoints of processes cannot contain it\n";
    refused_at_the_start(&[], &["valgrind"], sentence);
    refused_at_the_start(&[], &["/usr/bin/valgrind", "-q"], sentence);
}

#[test]
fn debuggers_are_refused() {
    let sentence =
        "the job uses a debugger (--gdb or --rr), and checkpoints of processes cannot contain it\n";
    if needs(on_path("gdb") && on_path("tmux"), "gdb and tmux") {
        refused_at_the_start(&["--gdb"], &[], sentence);
    }
    if needs(on_path("rr"), "rr") {
        refused_at_the_start(&["--rr"], &[], sentence);
    }
}

/// Starts a job with images whose rank 1 is started by shell commands that end in `exec "$@"`.
fn job_by(commands: &str, kept: &Path) -> Job {
    let by = kept.join("by");
    fs::create_dir_all(&by).expect("made");
    let by = script(
        &by,
        &format!("if [ $PMI_RANK = 1 ]; then {commands}\nfi\nexec \"$@\""),
    );
    let dir = kept.join("saved");
    let images = compile("images");
    let job = Job::command(&by).under(&installation().join("bin/mpirun"));
    let job = job.with(["--checkpoint-dir".as_ref(), dir.as_os_str()]);
    let job = job.with(["--mca", "crs", "criu"]).ranks(2).limit(100);
    job.arg(images)
        .arg("40")
        .arg("20000")
        .arg(kept.join("file"))
}

/// The request must be refused by one sentence, with nothing written; the job then has its result.
/// `what` is the end of the sentence, after the name of the rank.
fn refused_at_the_checkpoint(job: Job, kept: &Path, what: &str) {
    refused_with(job, kept, &["rank 1 (of 2; ", what]);
}

/// As [`refused_at_the_checkpoint`]; the sentence contains all of `words`.
fn refused_with(job: Job, kept: &Path, words: &[&str]) {
    let undisturbed = folder();
    let expected = result(&plain(undisturbed.path(), "file").succeeds());
    let started = job.start();
    started.says("step 3");
    let asked = ctl(&["checkpoint"], &started);
    assert!(!asked.status.success(), "{}", asked.stdout);
    let said = &asked.stderr;
    assert!(said.contains("no checkpoint is taken: "), "{said}");
    for words in words {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(said.matches('\n').count(), 1, "{said}");
    assert_eq!(numbers(kept), [], "nothing is written");
    let outcome = started.wait();
    assert_eq!(result(&outcome), expected, "{}", outcome.stderr);
}

/// The descriptor is of a device file with a GPU's name, in a mount namespace of the rank.
#[test]
fn a_gpu_is_refused_with_the_rank_and_its_descriptor() {
    if !has_criu() {
        return;
    }
    let kept = folder();
    let opens = "exec unshare -m sh -c 'mount -t tmpfs none /mnt && mkdir /mnt/dev && mknod /mnt/dev/nvidia0 c 1 3 && mount --bind /mnt/dev /dev && exec 9</dev/nvidia0 && exec \"$@\"' sh \"$@\"";
    let sentence = " has descriptor 9 (a CUDA device), which CRIU cannot save\n";
    refused_at_the_checkpoint(job_by(opens, kept.path()), kept.path(), sentence);
}

#[test]
fn a_tcp_connection_to_outside_of_the_job_is_refused_with_the_rank_and_the_address() {
    if !has_criu() || !needs(on_path("bash"), "bash") {
        return;
    }
    let kept = folder();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let connects =
        format!("exec bash -c 'exec 9<>/dev/tcp/127.0.0.1/{port} && exec \"$@\"' bash \"$@\"");
    let sentence = format!(
        " has a TCP connection with 127.0.0.1:{port}, outside of the job, which CRIU cannot save\n"
    );
    refused_at_the_checkpoint(job_by(&connects, kept.path()), kept.path(), &sentence);
}

/// A process whose parent has ended is below mpirun and below no rank; CRIU would dump it, too.
/// A script stands for CRIU, and would succeed.
#[test]
fn a_tcp_connection_of_an_orphan_is_refused_with_its_process() {
    if !needs(on_path("bash"), "bash") {
        return;
    }
    let kept = folder();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let connected = kept.path().join("connected");
    let connected = connected.display();
    let orphan = format!(
        "(bash -c 'exec 9<>/dev/tcp/127.0.0.1/{port} && touch {connected} && exec sleep 100' >/dev/null 2>&1 &)\n\
         while ! test -e {connected}; do sleep 0.01; done"
    );
    let program = kept.path().join("program");
    fs::create_dir(&program).expect("made");
    let criu = script(&program, "echo Version: 4.2");
    let job = job_by(&orphan, kept.path()).env(PROGRAM, criu);
    let sentence = format!(
        " of the job has a TCP connection with 127.0.0.1:{port}, outside of the job, which CRIU cannot save\n"
    );
    refused_with(
        job,
        kept.path(),
        &["no checkpoint is taken: process ", &sentence],
    );
}

/// valgrind that a script of the user starts is found at the checkpoint.
#[test]
fn valgrind_in_a_script_is_refused_with_the_rank() {
    if !has_criu() || !needs(on_path("valgrind"), "valgrind") {
        return;
    }
    let kept = folder();
    let sentence = " runs under valgrind, which CRIU cannot save\n";
    let by = "exec valgrind -q --tool=none \"$@\"";
    refused_at_the_checkpoint(job_by(by, kept.path()), kept.path(), sentence);
}

/// A tracer that a script of the user starts: CRIU cannot seize its processes, as with gdb.
#[test]
fn a_traced_process_is_refused_with_its_tracer() {
    if !has_criu() || !needs(on_path("strace"), "strace") {
        return;
    }
    let kept = folder();
    let sentence = " is traced by strace (process ";
    let by = "exec strace -o /dev/null -e trace=none \"$@\"";
    refused_at_the_checkpoint(job_by(by, kept.path()), kept.path(), sentence);
}

/// Two jobs of two mpiruns are connected by a port.
#[test]
fn a_job_that_is_connected_with_another_one_is_refused_with_the_rank() {
    if !has_criu() {
        return;
    }
    let whys = [
        (
            "self,sm",
            " shares memory with a job of another mpirun, which CRIU cannot save\n",
        ),
        ("self,tcp", ", outside of the job, which CRIU cannot save\n"),
    ];
    for (btl, why) in whys {
        let kept = folder();
        let port = kept.path().join("port");
        let part = |name: &str| fs::write(port.with_extension(name), "").expect("written");
        let job = || {
            let job = Job::of("connected").ranks(2).limit(100).arg(&port);
            job.with(["--mca", "btl", btl])
        };
        let dir = kept.path().join("saved");
        let accepts = job().with(["--checkpoint-dir".as_ref(), dir.as_os_str()]);
        let accepts = accepts.with(["--mca", "crs", "criu"]).start();
        let connects = job().arg("connects").start();
        accepts.says("connected");
        let asked = ctl(&["checkpoint"], &accepts);
        let said = &asked.stderr;
        assert!(said.contains("no checkpoint is taken: rank "), "{said}");
        assert!(said.contains(why), "{btl}: {said}");
        assert_eq!(said.matches('\n').count(), 1, "{said}");
        assert_eq!(numbers(kept.path()), [], "nothing is written");
        part("part");
        accepts.says("apart");
        // The ranks release the connection at one of their next polls.
        let taken = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            ctl(&["checkpoint"], &accepts).status.success()
        });
        assert!(taken, "{btl}: no checkpoint after MPI_Comm_disconnect");
        part("end");
        assert!(connects.wait().status.success());
        assert!(accepts.wait().status.success());
    }
}
