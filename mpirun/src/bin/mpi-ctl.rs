//! `mpi-ctl`: requests the status, a checkpoint, a hang report or the end of a running job.

fn main() {
    let sentence = mpirun::cli::usage::sentence;
    std::process::exit(mpirun::control::client::main(std::env::args_os(), sentence));
}
