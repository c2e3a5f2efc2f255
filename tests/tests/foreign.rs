//! Tests of the hardware barrier in other MPI libraries, under their own launchers.
//!
//! The barrier is either a component of Debian's Open MPI, or a library that LD_PRELOAD loads.
//! `hwbarr serve` serves the board, from which the tests read the number of releases.
//! The program checks that no rank leaves a barrier before all ranks have entered.

use barrier_board::served::{Address, BoardObserver};
use barrier_emulation::registers::RegisterDevice;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;
use tests::peers::{LIMIT, Peer, Program, Setting, debian_open_mpi, preload, succeeds};
use tests::served::Server;
use tests::{installation, mpich, needs};
use xtask::packages;
use xtask::process::{self, Outcome};

/// Runs a program under Debian's Open MPI.
fn run_open_mpi(
    program: &Program,
    ranks: u32,
    settings: &[Setting],
    arguments: &[&str],
) -> Outcome {
    succeeds(
        Peer::OpenMpi
            .launch(&program.path(), ranks, settings)
            .args(arguments),
    )
}

/// Returns Open MPI's component path, with this installation's folder first.
fn components() -> String {
    let folder = installation().join("lib/portcullis/openmpi");
    format!("{}:SYSTEM_DEFAULT", folder.display())
}

fn releases(server: &Server) -> u64 {
    let address: Address = server.address.parse().expect("an address");
    let mut observer = BoardObserver::connect(&address).expect("served");
    observer.look().expect("served").board.releases
}

/// Arguments of `barrier_loop.c`: 50 barriers in its loop, and delays of at most 300 us.
/// `RELEASES` also counts one barrier before and one after the loop, and two of the self-test.
const BARRIERS: &[&str] = &["50", "300"];
const RELEASES: u64 = 52 + 2;

#[test]
fn open_mpi_takes_its_barrier_from_the_board() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "barrier_loop.c");
    for ranks in [2, 4] {
        let server = Server::new(&["--nodes", &ranks.to_string()]);
        let settings = [
            ("OMPI_MCA_mca_base_component_path", &*components()),
            ("OMPI_MCA_coll_hwbarr_port", &server.address),
        ];
        let outcome = run_open_mpi(&program, ranks, &settings, BARRIERS);
        assert_eq!(releases(&server), RELEASES, "{}", outcome.stderr);
    }
}

/// The component's file is in the user's component folder, and only the variable with the port is set.
#[test]
fn open_mpi_finds_the_component_in_the_users_folder_of_components() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "barrier_loop.c");
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".openmpi/components");
    fs::create_dir_all(&folder).unwrap();
    let component = installation().join("lib/portcullis/openmpi/mca_coll_hwbarr.so");
    fs::copy(component, folder.join("mca_coll_hwbarr.so")).unwrap();
    let server = Server::new(&["--nodes", "2"]);
    let mut command = Command::new("mpirun.openmpi");
    command
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "2"])
        .args(["--mca", "coll_hwbarr_port", &server.address])
        .arg(program.path())
        .args(BARRIERS)
        .env("HOME", home.path());
    process::output(&mut command, LIMIT).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(releases(&server), RELEASES);
}

/// The board is simulated in shared memory: its report counts one release per barrier on each node.
#[test]
fn open_mpi_shares_a_board_among_its_ranks_and_its_report_is_written() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "barrier_loop.c");
    let report = program.folder().join("report.json");
    let vcd = program.folder().join("wires.vcd");
    let settings = [
        ("OMPI_MCA_mca_base_component_path", &*components()),
        ("OMPI_MCA_coll_hwbarr_port", "sim"),
        ("OMPI_MCA_coll_hwbarr_sim_report", &report.to_string_lossy()),
        ("OMPI_MCA_coll_hwbarr_sim_vcd", &vcd.to_string_lossy()),
    ];
    run_open_mpi(&program, 3, &settings, BARRIERS);
    let text = fs::read_to_string(&report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["releases"], 52, "{report}");
    assert_eq!(report["barriers_by_node"], serde_json::json!([52, 52, 52]));
    let waveform = fs::read_to_string(&vcd).unwrap();
    assert!(waveform.contains("$enddefinitions"), "{waveform}");
}

/// The board has another number of nodes than the job has ranks:
/// one rank warns, and Open MPI's own barrier is used.
#[test]
fn open_mpi_goes_on_with_its_own_barrier_where_the_board_does_not_fit() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "barrier_loop.c");
    let server = Server::new(&["--nodes", "3"]);
    let settings = [
        ("OMPI_MCA_mca_base_component_path", &*components()),
        ("OMPI_MCA_coll_hwbarr_port", &server.address),
    ];
    let outcome = run_open_mpi(&program, 2, &settings, BARRIERS);
    let said = outcome
        .stderr
        .matches("has 3 nodes, and 2 are needed")
        .count();
    assert_eq!(said, 1, "{}", outcome.stderr);
    assert_eq!(releases(&server), 0);
}

/// The board fails while the job runs: one rank warns, no barrier is lost, and later barriers use
/// software.
#[test]
fn members_leave_a_lost_board_together_and_open_mpi_goes_on() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "barrier_loop.c");
    let server = Server::new(&["--nodes", "3"]);
    let port = server.address.clone();
    let settings = [
        ("OMPI_MCA_mca_base_component_path", &*components()),
        ("OMPI_MCA_coll_hwbarr_port", &port),
    ];
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| run_open_mpi(&program, 3, &settings, &["400", "5000"]));
        let begin = Instant::now();
        while releases(&server) < 20 {
            assert!(begin.elapsed() < LIMIT, "the job does not use the board");
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(server);
        run.join().unwrap()
    });
    let said = outcome.stderr.matches("goes on in software").count();
    assert_eq!(said, 1, "{}", outcome.stderr);
}

#[test]
fn without_a_port_the_component_is_silent() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "barrier_loop.c");
    let settings = [("OMPI_MCA_mca_base_component_path", &*components())];
    let outcome = run_open_mpi(&program, 2, &settings, BARRIERS);
    assert!(!outcome.stderr.contains("portcullis"), "{}", outcome.stderr);
}

#[test]
fn a_preloaded_library_gives_open_mpi_the_hardware_on_the_world_and_its_duplicates() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "duplicates.c");
    let server = Server::new(&["--nodes", "3"]);
    let settings = [
        ("LD_PRELOAD", &*preload()),
        ("PORTCULLIS_MCA_coll_hwbarr_port", &server.address),
    ];
    run_open_mpi(&program, 3, &settings, &[]);
    assert_eq!(releases(&server), DUPLICATES + 2);
}

/// Under Open MPI's own launcher, each rank uses one node of a register block as its port.
#[test]
fn a_preloaded_library_gives_open_mpi_mapped_registers() {
    if !debian_open_mpi() {
        return;
    }
    let program = Program::new(Path::new("mpicc.openmpi"), "barrier_loop.c");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registers");
    let device = RegisterDevice::create(&file, 3, 1).expect("a device");
    let port = format!("mem:{},node={{rank}},members=0-2", file.display());
    let settings = [
        ("LD_PRELOAD", &*preload()),
        ("PORTCULLIS_MCA_coll_hwbarr_port", &port),
    ];
    let outcome = run_open_mpi(&program, 3, &settings, BARRIERS);
    let releases = device.releases();
    assert!(
        releases >= RELEASES,
        "{releases} releases\n{}",
        outcome.stderr
    );
}

/// The number of barriers in `duplicates.c` that use the hardware.
const DUPLICATES: u64 = 5 + 5 + 5 + 1;

#[test]
fn a_preloaded_library_gives_mpich_the_hardware_on_the_world_and_its_duplicates() {
    let Some(mpich) = mpich() else { return };
    let program = Program::new(&mpich.bin("mpicc"), "duplicates.c");
    let server = Server::new(&["--nodes", "3"]);
    let settings = [
        ("LD_PRELOAD", &*preload()),
        ("PORTCULLIS_MCA_coll_hwbarr_port", &server.address),
    ];
    succeeds(&mut Peer::Mpich.launch(&program.path(), 3, &settings));
    assert_eq!(releases(&server), DUPLICATES + 2);
}

/// The program calls Fortran's `MPI_Barrier` twenty times: ten times on `MPI_COMM_WORLD`, ten times on its duplicate.
#[test]
fn a_preloaded_library_serves_programs_in_fortran() {
    let fortran = packages::on_path("gfortran");
    if !debian_open_mpi() || !needs(fortran, "a Fortran compiler (gfortran)") {
        return;
    }
    let program = Program::new(Path::new("mpif90.openmpi"), "fortran_barriers.f90");
    let server = Server::new(&["--nodes", "2"]);
    let settings = [
        ("LD_PRELOAD", &*preload()),
        ("PORTCULLIS_MCA_coll_hwbarr_port", &server.address),
    ];
    run_open_mpi(&program, 2, &settings, &[]);
    assert_eq!(releases(&server), 20 + 2);
}
