//! mpirun, mpicc, mpi-info and mpi-bench
