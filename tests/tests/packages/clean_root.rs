//! Tests of packages in a minimal Debian system (a root folder) that has only C and Fortran compilers and Python.
//!
//! debootstrap creates the root folder once, in the target folder.
//! Each test mounts a temporary overlay over the root, in its own mount namespace.
//! So a test leaves no files in the root, and does not see another test's installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tests::needs;
use xtask::process;
use xtask::{venv, workspace};

use super::{HELLO, MPI4PY, output, shipped};

/// Time limit for downloading and unpacking the root's hundred packages.
const MAKING: Duration = Duration::from_secs(900);

/// Returns the root, or `None` if this machine cannot create one.
fn root() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let named = |key: &str| {
            let line = release.lines().find_map(|line| line.strip_prefix(key));
            line.map(|name| name.trim_matches('"').to_owned())
        };
        let can = rustix::process::geteuid().is_root()
            && named("ID=").as_deref() == Some("debian")
            && Path::new("/usr/sbin/debootstrap").exists();
        if !needs(can, "root's rights, Debian and debootstrap") {
            return None;
        }
        let suite = named("VERSION_CODENAME=")?;
        // The name must change with the list of additional packages, so that a new root is created.
        let root = workspace::target()
            .join("clean-root")
            .join(format!("{suite}-fortran"));
        if !root.exists() {
            make(&suite, &root);
        }
        Some(root)
    })
    .as_deref()
}

/// Creates the root under a temporary name and then renames it, so that a root with the final name is complete.
fn make(suite: &str, root: &Path) {
    let fresh = root.with_extension("new");
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh).unwrap_or_else(|e| panic!("{}: {e}", fresh.display()));
    let mut debootstrap = Command::new("/usr/sbin/debootstrap");
    debootstrap
        .args([
            "--variant=minbase",
            "--include=gcc,gfortran,libc6-dev,python3-venv",
        ])
        .arg(suite)
        .arg(&fresh);
    process::output(&mut debootstrap, MAKING).unwrap_or_else(|e| panic!("{e}"));
    fs::rename(&fresh, root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
}

/// Returns the folder that is mounted as `/given` in the root:
/// it contains the packages, two C programs, a Fortran program, and mpi4py's wheel.
fn given() -> &'static Path {
    static GIVEN: OnceLock<&Path> = OnceLock::new();
    GIVEN.get_or_init(|| {
        let given = shipped().folder.as_path();
        for name in ["hello.c", "barrier_loop.c", "check.h", "greeting_f08.f90"] {
            fs::copy(workspace::programs().join(name), given.join(name)).unwrap();
        }
        let mut pip = venv::pip(Path::new("python3"), "download");
        output(pip.args(["--no-deps", MPI4PY, "--dest"]).arg(given));
        given
    })
}

/// Runs a script in the root with a temporary overlay, and returns its output.
fn inside(root: &Path, script: &str) -> String {
    let layer = tempfile::tempdir().unwrap();
    let mounts = "set -e\n\
        mount -t tmpfs layer \"$LAYER\"\n\
        mkdir \"$LAYER/upper\" \"$LAYER/work\" \"$LAYER/root\"\n\
        mount -t overlay -o lowerdir=\"$BASE\",upperdir=\"$LAYER/upper\",workdir=\"$LAYER/work\" root \"$LAYER/root\"\n\
        cd \"$LAYER/root\"\n\
        mkdir -p given dev/shm\n\
        mount --bind \"$GIVEN\" given\n\
        mount -t proc proc proc\n\
        mount -t tmpfs shm dev/shm\n\
        exec chroot . /bin/sh -euc \"$SCRIPT\"\n";
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            mounts,
        ])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("LAYER", layer.path())
        .env("BASE", root)
        .env("GIVEN", given())
        .env("SCRIPT", script);
    let outcome = output(&mut command);
    format!("{}{}", outcome.stdout, outcome.stderr)
}

/// A script that runs the README's first program, a program with the simulated hardware barrier,
/// a Fortran program and mpi4py, with the installed programs in the search path.
const WORKS: &str = r#"
cd /root
mpicc -o hello /given/hello.c
mpirun -n 4 ./hello
mpicc -o barrier_loop /given/barrier_loop.c
mpirun -n 3 --explain --mca coll_hwbarr_port sim ./barrier_loop 20 0
mpifort -o greeting /given/greeting_f08.f90
mpirun -n 2 ./greeting
python3 -m venv --system-site-packages mpi4py
mpi4py/bin/pip install --quiet --no-index --find-links /given mpi4py
mpirun -n 3 mpi4py/bin/python -c "$HELLO"
"#;

fn works_after(installed: &str) {
    let Some(root) = root() else { return };
    let script = format!("HELLO='{HELLO}'\n{installed}\n{WORKS}");
    let said = inside(root, &script);
    assert!(said.contains("Hello from 3 of 4"), "{said}");
    assert!(said.contains("hwbarr"), "{said}");
    assert!(
        said.contains("all claims of greeting hold on 2 ranks"),
        "{said}"
    );
    assert_eq!(said.matches("3 Portcullis").count(), 3, "{said}");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_archive_runs_in_a_clean_root() {
    works_after(
        "mkdir /opt/somewhere && tar -xzf /given/*.tar.gz -C /opt/somewhere\n\
         PATH=$(echo /opt/somewhere/*/bin):$PATH",
    );
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_wheel_runs_in_a_clean_root() {
    works_after(
        "python3 -m venv /opt/venv\n\
         /opt/venv/bin/pip install --quiet --no-index /given/portcullis-*.whl\n\
         PATH=/opt/venv/bin:$PATH",
    );
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn debian_packages_install_into_a_clean_root() {
    works_after(
        "dpkg -i /given/*.deb\n\
         test \"$(readlink /etc/alternatives/mpirun)\" = /usr/bin/mpirun.portcullis",
    );
}
