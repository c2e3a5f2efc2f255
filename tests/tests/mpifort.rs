//! Tests of the compiler wrapper `mpifort`, with programs that use `mpif.h`, `use mpi` and `use mpi_f08`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tests::fortran::Compiler;
use tests::{Job, installation};
use xtask::{process, workspace};

fn wrapper() -> PathBuf {
    installation().join("bin/mpifort")
}

/// Compiles `programs/SOURCE` to a program `name` in this folder.
fn compile(compiler: Compiler, source: &str, folder: &Path, name: &str) -> PathBuf {
    let program = folder.join(name);
    let mut command = Command::new(wrapper());
    command
        .arg(format!("-fc={}", compiler.name()))
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(workspace::programs().join(source))
        // Compilers write the module files of a program to the current folder.
        .current_dir(folder);
    let output = process::output(&mut command, Duration::from_secs(120));
    let output = output.unwrap_or_else(|e| panic!("{e}"));
    // Compiler and linker must print nothing. The wrapper compiles the modules at its first use, and may print that.
    let unexpected: Vec<&str> = output
        .stderr
        .lines()
        .filter(|line| !line.contains("compiled the modules"))
        .collect();
    assert!(unexpected.is_empty(), "{source}: {unexpected:#?}");
    program
}

fn holds(compiler: Compiler, source: &str, name: &str, ranks: &[u32]) {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(compiler, source, folder.path(), name);
    for &ranks in ranks {
        Job::command(&program)
            .under(&installation().join("bin/mpirun"))
            .ranks(ranks)
            .holds();
    }
}

#[test]
fn every_interface_greets_in_every_compiler() {
    for compiler in Compiler::all() {
        for source in ["greeting_mpif.f", "greeting_mpi.f90", "greeting_f08.f90"] {
            holds(compiler, source, "greeting", &[1, 3]);
        }
    }
}

/// HDF5 and other projects select a Fortran standard.
/// gfortran then rejects extensions in `mpif.h` too.
#[test]
fn programs_that_demand_a_standard_are_compiled() {
    if Compiler::gfortran().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for standard in ["-std=f2008", "-std=f2018"] {
        for source in ["greeting_mpif.f", "greeting_mpi.f90", "greeting_f08.f90"] {
            let program = folder.path().join("greeting");
            let mut command = Command::new(wrapper());
            command
                .args(["-fc=gfortran", standard, "-pedantic", "-o"])
                .args([program, workspace::programs().join(source)])
                .current_dir(folder.path());
            process::output(&mut command, Duration::from_secs(120))
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// A warning about `mpif.h` would be printed at each compilation of a program's files.
#[test]
fn a_program_without_warnings_has_none_with_mpif_h() {
    if Compiler::gfortran().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(wrapper());
    command
        .args(["-fc=gfortran", "-Wall", "-Werror", "-c"])
        .arg(workspace::programs().join("greeting_mpif.f"))
        .current_dir(folder.path());
    process::output(&mut command, Duration::from_secs(120)).unwrap_or_else(|e| panic!("{e}"));
}

/// A call without `ierror` finds the content of a register in its place; the program passes a null pointer.
#[test]
fn a_call_without_ierror_is_reported_once_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("missing.f");
    let call = "      call MPI_BARRIER(MPI_COMM_WORLD, %VAL(0_8))\n";
    let text = format!(
        "      include 'mpif.h'\n      integer ierr\n      call MPI_INIT(ierr)\n{call}{call}      call MPI_FINALIZE(ierr)\n      end\n"
    );
    std::fs::write(&source, text).unwrap();
    for compiler in Compiler::all() {
        let program = compile(compiler, source.to_str().unwrap(), folder.path(), "missing");
        let job = Job::command(&program).under(&installation().join("bin/mpirun"));
        let said = job.ranks(2).succeeds().stderr;
        let sentence = "MPI_BARRIER was called without its last argument, ierror";
        assert_eq!(said.matches(sentence).count(), 2, "{said}");
    }
}

#[test]
fn module_mpi_f08_is_what_chapter_19_says() {
    for compiler in Compiler::all() {
        holds(compiler, "claims_f08.f90", "claims_f08", &[1, 2, 3]);
    }
}

/// With options such as `-fdefault-real-8`, DOUBLE PRECISION has 16 bytes in gfortran and flang,
/// but the clock functions return C's `double` of 8 bytes.
#[test]
fn the_clock_is_read_by_programs_whose_reals_have_8_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let source = workspace::programs().join("fortran/wide_reals.F90");
    for compiler in Compiler::all() {
        for way in 1..=3 {
            let program = folder.path().join("wide_reals");
            let mut command = Command::new(wrapper());
            command
                .arg(format!("-fc={}", compiler.name()))
                .args(["-fdefault-real-8", "-cpp", &format!("-DWAY={way}"), "-o"])
                .args([&program, &source])
                .current_dir(folder.path());
            process::output(&mut command, Duration::from_secs(120))
                .unwrap_or_else(|e| panic!("{e}"));
            Job::command(&program)
                .under(&installation().join("bin/mpirun"))
                .ranks(1)
                .holds();
        }
    }
}

/// Runs mpifort, which must fail, and returns its standard error.
fn refusal(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(wrapper())
        .args(args)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The flags contain a folder with another compiler's modules, as settings of a project may.
#[test]
fn the_folder_of_another_compilers_modules_in_the_flags_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("uses.f90");
    std::fs::write(&file, "use mpi_f08\nprint *, MPI_COMM_WORLD%MPI_VAL\nend\n").unwrap();
    let run = |compiler: Compiler, args: &[&str]| {
        let mut command = Command::new(wrapper());
        command.arg(format!("-fc={}", compiler.name()));
        command.args(args).current_dir(folder.path());
        let output = process::output(&mut command, Duration::from_secs(120));
        output.unwrap_or_else(|e| panic!("{e}")).stdout
    };
    for one in Compiler::all() {
        for other in Compiler::all() {
            let flags = run(other, &["--showme:compile"]);
            let folders = flags
                .split_whitespace()
                .filter(|flag| flag.starts_with("-I"));
            let mut args: Vec<&str> = folders.collect();
            args.extend(["-c", "uses.f90"]);
            run(one, &args);
        }
    }
}

#[test]
fn a_cache_of_modules_that_cannot_be_written_is_named_with_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path();
    let from = installation();
    for part in ["bin", "share/portcullis/fortran"] {
        std::fs::create_dir_all(prefix.join(part)).unwrap();
    }
    for file in [
        "bin/mpifort",
        "share/portcullis/fortran/mpi.f90",
        "share/portcullis/fortran/mpi_f08.f90",
    ] {
        bounded::copy_program(&from.join(file), &prefix.join(file)).unwrap();
    }
    // A file takes the place of the folder `lib`, so that not even root can write into that folder.
    std::fs::write(prefix.join("lib"), "").unwrap();
    for compiler in Compiler::all() {
        let output = Command::new(prefix.join("bin/mpifort"))
            .arg(format!("-fc={}", compiler.name()))
            .args(["-c", "a.f90"])
            .env("XDG_CACHE_HOME", prefix.join("lib"))
            .current_dir(prefix)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().next().unwrap_or_default();
        assert!(
            line.contains("and the folders for them cannot be written: ")
                && line.contains("set XDG_CACHE_HOME to a folder that you may write"),
            "{said}"
        );
    }
}

#[test]
fn eight_byte_integers_and_missing_compilers_are_refused_in_a_sentence() {
    let said = refusal(&["-fdefault-integer-8", "-c", "a.f90"]);
    assert!(
        said.starts_with("mpifort: -fdefault-integer-8 makes default INTEGER 8 bytes long")
            && said.lines().count() == 1,
        "{said}"
    );
    let said = refusal(&["-fc=no-such-compiler", "-c", "a.f90"]);
    assert!(
        said.starts_with("mpifort: the compiler no-such-compiler cannot be run")
            && said.lines().count() == 1,
        "{said}"
    );
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(wrapper())
        .args(["-c", "a.f90"])
        .env("PATH", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("mpifort: no Fortran compiler is in PATH (gfortran, flang"),
        "{said}"
    );
}
