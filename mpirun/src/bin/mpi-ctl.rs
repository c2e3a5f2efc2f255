//! `mpi-ctl`: asks a running mpirun for its status, a checkpoint, a hang report or its end.

fn main() {
    let sentence = mpirun::cli::usage::sentence;
    std::process::exit(mpirun::control::client::main(std::env::args_os(), sentence));
}
