//! Tests of the detection of launchers, and of the errors for an incomplete environment.

use super::*;

fn env(pairs: &[(&str, &str)]) -> Env {
    pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
}

fn opened(pairs: &[(&str, &str)]) -> Result<Opened, RteError> {
    open(&env(pairs), &Params::default())
}

#[test]
fn a_program_without_a_launcher_is_alone() {
    let opened = opened(&[]).unwrap();
    let identity = opened.rte.identity();
    assert_eq!((identity.rank, identity.size), (0, 1));
    assert_eq!(opened.rte.component(), "singleton");
    assert_eq!(opened.rejected.len(), 2);
    opened.rte.put("k", b"v").unwrap();
    opened.rte.fence().unwrap();
    assert_eq!(opened.rte.get(0, "k").unwrap(), b"v");
    assert!(opened.rte.get(1, "k").is_err());
    assert_eq!(opened.rte.node_segment().unwrap().local_ranks, [0]);
}

#[test]
fn a_pmi_fd_that_is_no_socket_makes_a_singleton() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file).to_string();
    for fd in [number.as_str(), "999999", "1", "4000000000"] {
        let opened = opened(&[("PMI_FD", fd), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]).unwrap();
        assert_eq!(opened.rte.component(), "singleton", "{fd}");
    }
    assert!(rustix::io::fcntl_getfd(&file).is_ok());
}

#[test]
fn a_launcher_that_gives_no_wire_up_is_refused_in_one_sentence() {
    let error = opened(&[("SLURM_STEP_NUM_TASKS", "4")]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "this is one of 4 processes that srun started without a way to find each other; use srun --mpi=pmi2 or --mpi=pmix"
    );
    assert!(opened(&[("OMPI_COMM_WORLD_SIZE", "2")]).is_err());
    assert!(opened(&[("OMPI_COMM_WORLD_SIZE", "1")]).is_ok());
    // A child process of a rank that Slurm started with PMI.
    assert!(opened(&[("SLURM_STEP_NUM_TASKS", "4"), ("PMI_FD", "999999")]).is_ok());
}

#[test]
fn a_variable_of_the_launcher_that_is_no_number_is_named() {
    let error = opened(&[("PMI_FD", "three")]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the launcher set PMI_FD=\"three\", which is not a whole number"
    );
}

#[test]
fn the_selection_is_obeyed() {
    let mut params = Params::default();
    params.set("rte", "pmi1", mpi_base::param::Source::CommandLine);
    let error = open(&env(&[]), &params).err().unwrap().to_string();
    assert!(
        error.contains("pmi1: neither PMI_FD nor PMI_PORT is set"),
        "{error}"
    );
    params.set("rte", "hydra", mpi_base::param::Source::CommandLine);
    assert!(
        open(&env(&[]), &params)
            .err()
            .unwrap()
            .to_string()
            .contains("no rte component \"hydra\"")
    );
}
