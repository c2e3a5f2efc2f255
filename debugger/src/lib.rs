//! `libportcullis-queues.so`: the message queues of a rank for debuggers such as TotalView and DDT, which load it because the rank
//! names it in `MPIR_dll_name`.
//!
//! The interface is the one that Cownie and Gropp describe in "A Standard Interface for Debugger Access to Message Queue Information in MPI"
//! (1999), version 2 of its header. The debugger passes tables of callbacks, by which this library finds the symbol of the rank's
//! [debug page](mpi_base::debug_page) and reads its memory; it needs no types of the rank.
//! All functions are called by one thread of the debugger.

#![deny(unsafe_code)]

mod exports;
mod interface;
mod process;
