//! Tests that `mpirun` in a Slurm allocation executes `srun`; a script named srun prints its arguments.
//!
//! `slurm.rs` tests that a real Slurm interprets these arguments as intended.

use std::path::Path;

use tempfile::TempDir;
use tests::{Job, installation};

/// A script that prints its arguments and environment, and exits with status 7; it replaces srun.
const IN_PLACE_OF_SRUN: &str = r#"#!/bin/sh
for word in "$@"; do echo "word $word"; done
env | sed 's/^/variable /'
exit 7
"#;

fn folder_with_srun() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let srun = folder.path().join("srun");
    bounded::write_program(&srun, IN_PLACE_OF_SRUN).expect("written");
    folder
}

/// Returns a job of `mpirun` in an allocation of two hosts with two slots each.
fn allocated(folder: &Path) -> Job {
    let path = std::env::var("PATH").unwrap_or_default();
    Job::command(Path::new("./program"))
        .under(&installation().join("bin/mpirun"))
        .ranks(4)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("SLURM_JOB_ID", "4711")
        .env("SLURM_JOB_NODELIST", "n[1-2]")
        .env("SLURM_TASKS_PER_NODE", "2(x2)")
}

fn after<'a>(text: &'a str, what: &str) -> Vec<&'a str> {
    let lines = text.lines();
    lines.filter_map(|line| line.strip_prefix(what)).collect()
}

#[test]
fn srun_gets_the_hosts_of_all_ranks_the_programs_words_and_their_variables() {
    let folder = folder_with_srun();
    let outcome = allocated(folder.path())
        .with(["-x", "FRUIT=plum", "--mca", "btl", "self,tcp"])
        .with(["--wdir", "/usr", "--bind-to", "core", "--stdin", "all"])
        // If they were passed on, these variables would change what srun does with mpirun's arguments.
        .env("SLURM_HOSTFILE", "/nowhere")
        .env("SLURM_NTASKS_PER_NODE", "1")
        .env("SLURM_DISTRIBUTION", "cyclic")
        .env("SLURM_CPU_BIND_TYPE", "none")
        .env("COLOUR", "dark green")
        .arg("a word")
        .arg("--its=own")
        .run();
    // mpirun has replaced itself by srun (`exec`), so the exit status is srun's.
    assert_eq!(outcome.status.code(), Some(7), "{}", outcome.stderr);
    assert_eq!(
        after(&outcome.stdout, "word "),
        [
            "--mpi=pmi2",
            "--ntasks=4",
            "--nodes=2",
            "--nodelist=n1,n1,n2,n2",
            "--distribution=arbitrary",
            "--export=ALL",
            "--kill-on-bad-exit=1",
            "--quit-on-interrupt",
            "--input=all",
            "--cpu-bind=cores",
            "--chdir=/usr",
            "./program",
            "a word",
            "--its=own",
        ]
    );
    let variables = after(&outcome.stdout, "variable ");
    for set in [
        "FRUIT=plum",
        "COLOUR=dark green",
        "PORTCULLIS_MCA_btl=self,tcp",
        "SLURM_JOB_ID=4711",
        "SLURM_JOB_NODELIST=n[1-2]",
    ] {
        assert!(variables.contains(&set), "no {set} in:\n{}", outcome.stdout);
    }
    for gone in [
        "SLURM_HOSTFILE",
        "SLURM_NTASKS_PER_NODE",
        "SLURM_DISTRIBUTION",
        "SLURM_CPU_BIND_TYPE",
    ] {
        let is_gone = |variable: &&str| variable.split('=').next() == Some(gone);
        assert!(!variables.iter().any(is_gone), "{gone} is still there");
    }
}

#[test]
fn without_srun_or_for_options_that_it_lacks_a_sentence_names_the_launcher() {
    let folder = folder_with_srun();
    let no_ssh = ["--launch-agent", "/bin/false"];
    let job = allocated(folder.path()).with(no_ssh);
    let outcome = job.with(["--display-map"]).run();
    let said = "srun has no --display-map, so the allocation's hosts are reached without srun";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert!(after(&outcome.stdout, "word ").is_empty());
    let empty = tempfile::tempdir().expect("a folder");
    let path = empty.path().to_string_lossy().into_owned();
    let job = allocated(empty.path()).env("PATH", &path).with(no_ssh);
    let outcome = job.run();
    let said = "there is no srun in PATH, so the allocation's hosts are reached without srun";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let job = allocated(folder.path()).with(no_ssh);
    let outcome = job.with(["--mca", "plm", "rsh"]).run();
    assert!(!outcome.stderr.contains("srun"), "{}", outcome.stderr);
}
