//! A program that has more rights than its user takes no code and no settings from that user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use tests::{compile, installation, needs};
use xtask::process;

/// Ordinary users of every Debian: "nobody".
const USER: &str = "--reuid=65534";

#[test]
fn a_set_user_id_program_ignores_its_users_settings() {
    let is_root = rustix::process::geteuid().is_root();
    if !needs(is_root, "root, to make a set-user-ID program") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = folder.path().join("program");
    let library = folder.path().join("lib");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&library).unwrap();
    fs::copy(
        installation().join("lib/libmpi_abi.so.1"),
        library.join("libmpi_abi.so.1"),
    )
    .unwrap();
    // Its loader ignores the library path, so the library is found by a run path.
    let source = xtask::workspace::programs().join("hello.c");
    compile("hello");
    let mut mpicc = Command::new(installation().join("bin/mpicc"));
    mpicc.arg(source).arg("-o").arg(&program);
    mpicc.arg(format!("-Wl,-rpath,{}", library.display()));
    process::output(&mut mpicc, Duration::from_secs(60)).unwrap();

    let run = |mode: u32| {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args([USER, "--clear-groups"])
            .arg(&program)
            // A value that ends any program that reads it.
            .env("PORTCULLIS_MCA_mpi_base_explain", "neither")
            .env("HOME", folder.path());
        process::output(&mut command, Duration::from_secs(30))
    };
    let refused = run(0o755).unwrap_err().to_string();
    assert!(refused.contains("mpi_base_explain"), "{refused}");
    let said = run(0o4755).unwrap();
    assert!(said.stdout.contains("all claims of hello hold on 1 ranks"));

    // The same of a file in the user's home.
    fs::create_dir(folder.path().join(".portcullis")).unwrap();
    fs::write(
        folder.path().join(".portcullis/mca-params.conf"),
        "mpi_base_explain = perhaps\n",
    )
    .unwrap();
    run(0o4755).unwrap();
}
