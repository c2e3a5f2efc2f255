//! Fortran programs that check their own results, each with the three Fortran interfaces.
//!
//! gfortran and flang compile the programs for this library. The same binaries also run
//! on MPICH's standard ABI library, and on Open MPI and Intel MPI by `mpirun --on`.

use std::io::Write as _;
use std::path::Path;

use tests::fortran::{Compiler, WAYS, Way, compile};
use tests::{Job, installation, mpich, open_mpi};

/// Compiles a program with each compiler and interface, and runs it on each number of ranks.
/// The program's argument is a new folder.
fn hold(compilers: &[Compiler], ways: &[Way], sources: &[&str], ranks: &[u32]) {
    for &compiler in compilers {
        for &way in ways {
            let program = compile(compiler, way, sources);
            for &ranks in ranks {
                let folder = tempfile::tempdir().unwrap();
                job(&program).ranks(ranks).arg(folder.path()).holds();
            }
        }
    }
}

fn job(program: &Path) -> Job {
    Job::command(program).under(&installation().join("bin/mpirun"))
}

/// Makes one test per program.
/// With gfortran, all interfaces run on the first number of ranks, and only `mpi_f08` on the
/// other numbers; with flang, `mpif.h` and `mpi_f08`, which differ most, run on the first number.
macro_rules! programs {
    ($($claim:ident: $source:literal on $ranks:expr;)*) => {
        $(
            #[test]
            fn $claim() {
                let gfortran: Vec<_> = Compiler::gfortran().into_iter().collect();
                hold(&gfortran, &WAYS, &[$source], &$ranks[..1]);
                hold(&gfortran, &[Way::F08], &[$source], &$ranks[1..]);
                let flang: Vec<_> = Compiler::flang().into_iter().collect();
                hold(&flang, &[Way::Header, Way::F08], &[$source], &$ranks[..1]);
            }
        )*
    };
}

programs! {
    messages_and_statuses_are_the_same_in_each_interface: "messages.F90" on [3, 2];
    collectives_agree_in_each_interface: "collectives.F90" on [3, 1, 4];
    strings_are_padded_and_trimmed: "strings.F90" on [2, 1];
    procedures_of_the_program_are_called: "callbacks.F90" on [3, 1];
    files_are_written_and_read: "files.F90" on [3, 1];
    files_have_representations_of_the_program: "representations.F90" on [2, 1];
    sizes_are_stated_and_read: "sizes.F90" on [2, 1];
    windows_are_put_to_and_got_from: "windows.F90" on [3, 1];
    processes_are_started_with_arguments: "spawning.F90" on [2];
    kernels_of_five_patterns_compute_what_one_process_would: "kernels.F90" on [4, 1];
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn kernels_of_five_patterns_compute_it_at_sixteen_times_the_length() {
    for compiler in Compiler::all() {
        for way in [Way::Header, Way::F08] {
            let program = compile(compiler, way, &["kernels.F90"]);
            for ranks in [3, 4] {
                let folder = tempfile::tempdir().unwrap();
                let job = job(&program).ranks(ranks).arg(folder.path());
                job.arg("16").holds();
            }
        }
    }
}

#[test]
fn sections_are_sent_and_received_in_place() {
    hold(&Compiler::all(), &[Way::F08], &["sections.f90"], &[1, 3]);
}

#[test]
fn sections_that_no_datatype_describes_are_copied_until_the_request_is_complete() {
    let sources = ["copied_sections.f90"];
    hold(&Compiler::all(), &[Way::F08], &sources, &[1, 3]);
}

#[test]
fn a_copied_section_whose_request_c_code_completes_is_reported() {
    let gfortran: Vec<_> = Compiler::gfortran().into_iter().collect();
    for compiler in gfortran {
        let program = compile(
            compiler,
            Way::F08,
            &["completed_by_c.f90", "completed_by_c.c"],
        );
        let outcome = job(&program).ranks(2).run();
        let all = "all claims of completed_by_c hold on 2 ranks";
        assert!(outcome.stdout.contains(all), "{}", outcome.stdout);
        let sentence = "was completed by C code, so its result is not in the array";
        assert_eq!(
            outcome.stderr.matches(sentence).count(),
            1,
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn sections_are_taken_by_address_by_element_and_by_partitions() {
    let sources = ["addressed_sections.f90"];
    hold(&Compiler::all(), &[Way::F08], &sources, &[1, 2]);
}

#[test]
fn random_sections_have_the_elements_of_the_datatypes_that_describe_them() {
    let sources = ["walking.F90", "walking.c"];
    let gfortran: Vec<_> = Compiler::gfortran().into_iter().collect();
    hold(&gfortran, &[Way::F08], &sources, &[1]);
}

#[test]
fn ierror_may_be_absent() {
    let sources = ["absent_ierror.f90"];
    hold(&Compiler::all(), &[Way::F08], &sources, &[1, 2]);
}

#[test]
fn logicals_have_the_values_that_the_program_states() {
    hold(&Compiler::all(), &[Way::Header], &["logicals.f"], &[1, 3]);
}

#[test]
fn a_logical_of_another_value_is_reported_once_and_is_true() {
    for compiler in Compiler::all() {
        let program = compile(compiler, Way::Header, &["unstated_logicals.f"]);
        let outcome = job(&program).ranks(1).run();
        assert!(outcome.status.success(), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, "periods 1 0\nperiods 1 0\n");
        let sentence = "a LOGICAL argument is -1, but MPI takes 1 for .TRUE. and 0 for .FALSE.";
        assert_eq!(
            outcome.stderr.matches(sentence).count(),
            1,
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_copy_of_mpi_bottom_is_reported_once() {
    for compiler in Compiler::all() {
        // `mpi_f08` is left out: its buffer arguments have assumed type, and compilers pass them without a copy.
        for way in [Way::Header, Way::Mpi] {
            let program = compile(compiler, way, &["copied_bottom.F90"]);
            let outcome = job(&program).ranks(1).run();
            assert!(outcome.status.success(), "{}", outcome.stderr);
            let sentence = "a buffer is a copy of a constant such as MPI_BOTTOM or MPI_IN_PLACE";
            assert_eq!(
                outcome.stderr.matches(sentence).count(),
                1,
                "{}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn old_programs_in_fixed_form_run() {
    hold(&Compiler::all(), &[Way::Header], &["fixed.f"], &[1, 3]);
}

#[test]
fn attributes_and_handles_are_shared_with_c() {
    let sources = ["attributes.F90", "attributes.c"];
    hold(&Compiler::all(), &WAYS, &sources, &[2]);
}

#[test]
fn a_tool_in_c_sees_each_call_of_a_fortran_program_once() {
    let sources = ["watched_by_tool.F90", "watched_by_tool.c"];
    hold(&Compiler::all(), &WAYS, &sources, &[2]);
}

/// Programs, with their interface, that also pass on the other libraries.
const ELSEWHERE: &[(Way, &str)] = &[
    (Way::Header, "messages.F90"),
    (Way::F08, "messages.F90"),
    (Way::Mpi, "collectives.F90"),
    (Way::F08, "callbacks.F90"),
    (Way::F08, "windows.F90"),
    (Way::F08, "kernels.F90"),
    (Way::F08, "sections.f90"),
    (Way::F08, "copied_sections.f90"),
];

fn hold_on(library: &Path) {
    let mut failed = Vec::new();
    for compiler in Compiler::all() {
        for (way, source) in ELSEWHERE {
            let program = compile(compiler, *way, &[source]);
            let outcome = job(&program).ranks(2).with(["--on"]).with([library]).run();
            let line = format!(
                "all claims of {} hold on 2 ranks",
                program.file_stem().unwrap_or_default().to_string_lossy()
            );
            if !outcome.status.success() || !outcome.stdout.contains(&line) {
                let said = [outcome.stdout, outcome.stderr].concat();
                failed.push(format!("{}:\n{said}", program.display()));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_same_programs_run_on_mpichs_library_of_the_standard_abi() {
    if let Some(mpich) = mpich() {
        hold_on(&mpich.lib().join("libmpi_abi.so.1"));
    }
}

#[test]
fn the_same_programs_run_on_open_mpi() {
    if let Some(open_mpi) = open_mpi() {
        hold_on(&open_mpi.lib().join("libmpi.so.40"));
    }
}

/// Skipped without Intel MPI, which `cargo xtask test` does not install:
/// `pip install impi-rt` installs its runtime; `I_MPI_ROOT` must be its prefix.
#[test]
fn the_same_programs_run_on_intel_mpi() {
    let root = std::env::var_os("I_MPI_ROOT").unwrap_or_default();
    let library = Path::new(&root).join("lib/libmpi.so.12");
    if library.is_file() {
        hold_on(&library);
    } else {
        let _ = writeln!(
            std::io::stderr().lock(),
            "skipped: the_same_programs_run_on_intel_mpi needs Intel MPI's runtime, whose prefix I_MPI_ROOT names"
        );
    }
}
