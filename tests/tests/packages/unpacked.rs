//! Tests of packages that are unpacked into a folder and used there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::fortran::Compiler;
use tests::needs;
use xtask::process;
use xtask::{venv, workspace};

use super::{HELLO, LIMIT, MPI4PY, made, output};

/// Builds and runs three programs with the compilers and launcher in `bin`:
/// the README's first program, a simulated hardware barrier, and a Fortran program.
fn works(bin: &Path) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["hello", "barrier_loop"] {
        let source = workspace::programs().join(name).with_extension("c");
        let mut mpicc = Command::new(bin.join("mpicc"));
        mpicc.arg("-o").arg(folder.path().join(name)).arg(source);
        output(&mut mpicc);
    }
    let mut hello = Command::new(bin.join("mpirun"));
    hello.args(["-n", "4"]).arg(folder.path().join("hello"));
    let hello = output(&mut hello);
    assert!(
        hello.stdout.contains("Hello from 3 of 4"),
        "{}",
        hello.stdout
    );
    let mut barrier = Command::new(bin.join("mpirun"));
    barrier
        .args(["-n", "3", "--explain", "--mca", "coll_hwbarr_port", "sim"])
        .arg(folder.path().join("barrier_loop"))
        .args(["20", "0"]);
    let barrier = output(&mut barrier);
    assert!(barrier.stderr.contains("hwbarr"), "{}", barrier.stderr);
    if Compiler::gfortran().is_none() {
        return;
    }
    let greeting = folder.path().join("greeting");
    let mut mpifort = Command::new(bin.join("mpifort"));
    mpifort.args(["-fc=gfortran", "-o"]).arg(&greeting);
    output(mpifort.arg(workspace::programs().join("greeting_f08.f90")));
    let mut mpirun = Command::new(bin.join("mpirun"));
    let said = output(mpirun.args(["-n", "2"]).arg(&greeting)).stdout;
    assert_eq!(said, "all claims of greeting hold on 2 ranks\n");
}

/// Each package format has licence texts in the usual folder, and dependencies with versions.
#[test]
fn packages_bring_their_terms_and_manual_pages_and_say_which_c_library_they_need() {
    let packages = &made().packages;
    let mut list = Command::new("tar");
    let archive = output(list.arg("-tzf").arg(&packages.tarball)).stdout;
    let mut list = Command::new("python3");
    list.args(["-m", "zipfile", "-l"]).arg(&packages.wheel);
    let wheel = output(&mut list).stdout;
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "LICENSES-OF-OTHERS"] {
        assert!(
            archive.contains(&format!("share/doc/portcullis/{name}")),
            "{archive}"
        );
        assert!(
            wheel.contains(&format!("dist-info/licenses/{name}")),
            "{wheel}"
        );
    }
    for page in ["man1/mpirun.1", "man1/hwbarr.1", "man3/MPI_Send.3"] {
        assert!(archive.contains(&format!("share/man/{page}")), "{archive}");
    }
    let name = packages.wheel.file_name().unwrap().to_str().unwrap();
    let tag = name.split("-none-manylinux_2_").nth(1);
    let minor = tag.and_then(|tag| tag.split('_').next()?.parse::<u32>().ok());
    assert!(minor.is_some(), "{name}");
    if !needs(Path::new("/usr/bin/dpkg-deb").exists(), "dpkg-deb") {
        return;
    }
    for (package, of, page) in [
        (
            &packages.debian.library,
            "portcullis",
            "mpirun.portcullis.1",
        ),
        (
            &packages.debian.development,
            "libportcullis-dev",
            "mpicc.portcullis.1",
        ),
    ] {
        let depends = output(
            Command::new("dpkg-deb")
                .arg("-f")
                .arg(package)
                .arg("Depends"),
        )
        .stdout;
        assert!(depends.starts_with("libc6 (>= 2."), "{depends}");
        let contents = output(Command::new("dpkg-deb").arg("-c").arg(package)).stdout;
        let file = format!("./usr/share/doc/{of}/copyright");
        assert!(contents.contains(&file), "{contents}");
        let page = format!("./usr/share/man/man1/{page}");
        assert!(contents.contains(&page), "{contents}");
    }
}

#[test]
fn the_archive_runs_where_it_was_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a place with blanks");
    fs::create_dir(&place).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&made().packages.tarball);
    output(tar.arg("-C").arg(&place));
    let unpacked: Vec<PathBuf> = fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(unpacked.len(), 1, "{unpacked:?}");
    works(&unpacked[0].join("bin"));
}

#[test]
fn the_wheel_installs_and_mpi4py_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("venv");
    output(Command::new("python3").args(["-m", "venv"]).arg(&place));
    let pip = |what: &Path| {
        let mut pip = venv::pip(&place.join("bin/python"), "install");
        process::output(pip.arg(what), LIMIT)
    };
    pip(&made().packages.wheel).unwrap_or_else(|e| panic!("{e}"));
    works(&place.join("bin"));
    let mpi4py = pip(Path::new(MPI4PY));
    if !needs(mpi4py.is_ok(), "mpi4py from the package index") {
        return;
    }
    let mut alone = Command::new(place.join("bin/python"));
    alone.args(["-c", HELLO]);
    let alone = output(&mut alone);
    assert!(alone.stdout.starts_with("1 Portcullis"), "{}", alone.stdout);
    let mut job = Command::new(place.join("bin/mpirun"));
    job.args(["-n", "3"])
        .arg(place.join("bin/python"))
        .args(["-c", HELLO]);
    let job = output(&mut job);
    assert_eq!(
        job.stdout.matches("3 Portcullis").count(),
        3,
        "{}",
        job.stdout
    );
    refuses_the_module_of_checkpoints(&place.join("bin"));
}

/// mpi4py's wheel uses the handles of MPICH or Open MPI, so importing the Python module of checkpoints must fail with a message.
fn refuses_the_module_of_checkpoints(bin: &Path) {
    let mut python = Command::new(bin.join("python"));
    python.args(["-c", "import portcullis_checkpoint"]);
    python.env_remove("PYTHONPATH");
    let refused = process::Running::start(&mut python).and_then(|running| running.wait(LIMIT));
    let refused = refused.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    let sentence =
        "ImportError: this mpi4py was compiled for the binary interface of MPICH or Open MPI";
    assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
}

#[test]
fn debian_packages_unpack_into_a_root_and_take_part_in_its_alternatives() {
    if !needs(Path::new("/usr/bin/dpkg-deb").exists(), "dpkg-deb") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let packages = &made().packages.debian;
    let root = folder.path().join("root");
    for made in [&packages.library, &packages.development] {
        output(Command::new("dpkg-deb").arg("-x").arg(made).arg(&root));
    }
    for name in ["var/lib/dpkg/alternatives", "etc/alternatives", "var/log"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let scripts = |package: &Path, script: &str, word: &str| {
        let control = folder.path().join("control");
        output(
            Command::new("dpkg-deb")
                .arg("-e")
                .arg(package)
                .arg(&control),
        );
        let mut run = Command::new("sh");
        run.arg(control.join(script))
            .arg(word)
            .env("DPKG_ROOT", &root);
        output(&mut run);
    };
    scripts(&packages.library, "postinst", "configure");
    scripts(&packages.development, "postinst", "configure");
    let choice = |name: &str| fs::read_link(root.join("etc/alternatives").join(name)).unwrap();
    assert_eq!(choice("mpirun"), Path::new("/usr/bin/mpirun.portcullis"));
    assert_eq!(choice("mpi"), Path::new("/usr/bin/mpicc.portcullis"));
    assert_eq!(choice("mpicxx"), Path::new("/usr/bin/mpicxx.portcullis"));
    // Debian's alternatives refer to these programs; here they run from the folder in which they are installed.
    assert!(root.join("usr/bin/mpirun.portcullis").is_file());
    works(&root.join("usr/lib/portcullis/bin"));
    scripts(&packages.library, "prerm", "remove");
    assert!(fs::read_link(root.join("etc/alternatives/mpirun")).is_err());
}
