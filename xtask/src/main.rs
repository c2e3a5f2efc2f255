//! The command line of `cargo xtask`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{
    bench, bug_suites, cargo::Profile, checkpoints, demo, firmware, fpga, generate, guests, hpcc,
    install, kit, mpi4py, mpich_tests, package, pnetcdf, races, rsmpi, test, verbs,
};

/// Builds, shows, tests, measures and installs Portcullis.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the main job: sixty ranks pass the hardware barrier in the simulator
    Demo(demo::Options),
    /// Install what the tests need and run all of them
    Test(test::Options),
    /// Run mpi4py's own tests on our library and compare with the list of known failures
    Mpi4py(mpi4py::Options),
    /// Run MPICH's own tests on our library and compare with the list of known failures
    MpichTests(mpich_tests::Options),
    /// Run MPICH's own Fortran tests (mpif.h, use mpi, use mpi_f08) in the same way
    MpichFortran(mpich_tests::Options),
    /// Build PnetCDF with our mpicc and run its own tests
    Pnetcdf(pnetcdf::Options),
    /// Build the crate mpi (rsmpi) with our mpicc and run its examples
    Rsmpi(rsmpi::Options),
    /// Build the HPC Challenge benchmark with our mpicc and run it, also with MPICH and Open MPI
    Hpcc(hpcc::Options),
    /// Run collections of wrong programs and count how many mistakes are reported
    BugSuites(bug_suites::Options),
    /// Stop and kill jobs with checkpoints many times, and restart them
    Checkpoints(checkpoints::Options),
    /// Run programs with threads under ThreadSanitizer, on an instrumented library
    Races(races::Options),
    /// Write the files that are made from tables
    Gen,
    /// Install into a folder: programs, library, header, plugins
    Install {
        /// Folder of the installation, for bin, include and lib
        #[arg(long, value_name = "DIR")]
        prefix: PathBuf,
        /// Build without optimisation, quickly
        #[arg(long)]
        dev: bool,
        /// Compile the Fortran modules for these compilers now, as in gfortran,flang; mpifort compiles them for others on first use
        #[arg(long, value_name = "COMPILERS", value_delimiter = ',')]
        fortran: Vec<String>,
    },
    /// Pack an installation: a Python wheel, Debian packages, an archive
    Package(package::Options),
    /// Pack libhwbarr, one node of the barrier for C and Python, as a Python wheel
    HwbarrWheel {
        /// Folder of the wheel [default: target/packages]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Compile without optimisation and compress little
        #[arg(long)]
        dev: bool,
    },
    /// Build the bitstreams of the barrier and show what they need
    Fpga(fpga::Options),
    /// Write the files of the desk kit, for KiCad and for a board house
    Kit(kit::Options),
    /// Build the programs of the barrier's nodes for microcontrollers
    Firmware,
    /// Boot two virtual machines whose kernels' parport drivers synchronise through the simulator
    NightlyQemu,
    /// Boot a virtual machine with an emulated InfiniBand device, and run programs over UCX and libfabric there
    NightlyVerbs,
    /// Measure, also against MPICH and Open MPI
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Demo(options) => demo::run(&options).map_err(|e| e.to_string()),
        Task::Test(options) => test::run(&options).map_err(|e| e.to_string()),
        Task::Mpi4py(options) => mpi4py::run(&options).map_err(|e| e.to_string()),
        Task::MpichTests(options) => {
            mpich_tests::run(&options, &mpich_tests::C).map_err(|e| e.to_string())
        }
        Task::MpichFortran(options) => {
            mpich_tests::run(&options, &mpich_tests::FORTRAN).map_err(|e| e.to_string())
        }
        Task::Pnetcdf(options) => pnetcdf::run(&options).map_err(|e| e.to_string()),
        Task::Rsmpi(options) => rsmpi::run(&options).map_err(|e| e.to_string()),
        Task::Hpcc(options) => hpcc::run(&options).map_err(|e| e.to_string()),
        Task::BugSuites(options) => bug_suites::run(&options).map_err(|e| e.to_string()),
        Task::Checkpoints(options) => checkpoints::run(&options).map_err(|e| e.to_string()),
        Task::Races(options) => races::run(&options).map_err(|e| e.to_string()),
        Task::Gen => generate::run(),
        Task::Install {
            prefix,
            dev,
            fortran,
        } => {
            let profile = if dev { Profile::Dev } else { Profile::Release };
            install::run(&prefix, profile, &fortran).map_err(|e| e.to_string())
        }
        Task::Package(options) => package::run(&options).map_err(|e| e.to_string()),
        Task::HwbarrWheel { out, dev } => {
            package::hwbarr_wheel::run(out.as_deref(), dev).map_err(|e| e.to_string())
        }
        Task::Firmware => firmware::run().map_err(|e| e.to_string()),
        Task::Fpga(options) => fpga::run(&options).map_err(|e| e.to_string()),
        Task::Kit(options) => kit::run(&options),
        Task::NightlyQemu => guests::run().map_err(|e| e.to_string()),
        Task::NightlyVerbs => verbs::run().map_err(|e| e.to_string()),
        Task::Bench(options) => bench::run(&options).map_err(|e| e.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("xtask: {sentence}");
            ExitCode::FAILURE
        }
    }
}
