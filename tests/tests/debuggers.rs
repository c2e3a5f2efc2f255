//! What tools see that look into a program: no error of ours beside those of the program.

use tests::{Job, compile, installation, needs};

fn has(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

#[test]
fn valgrind_finds_nothing_uninitialised_and_nothing_lost() {
    if !needs(has("valgrind"), "valgrind (cargo xtask test installs it)") {
        return;
    }
    let mpirun = installation().join("bin/mpirun");
    let env = "/usr/bin/env".as_ref();
    let options = [
        "valgrind",
        "--quiet",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        "--error-exitcode=9",
    ];
    for ways in ["self,sm", "self,tcp"] {
        let job = options
            .iter()
            .fold(Job::command(env).under(&mpirun).ranks(2), |job, word| {
                job.arg(word)
            });
        let outcome = job
            .arg(compile("examined"))
            .with(["--mca", "btl", ways])
            .limit(120)
            .succeeds();
        assert!(
            outcome
                .stdout
                .contains("all claims of examined hold on 2 ranks")
        );
    }
}
