//! libmpi_abi: the standard MPI 5.0 C ABI over the engine
