//! `libportcullis-queues.so`: displays a rank's message queues in debuggers.
//!
//! Debuggers such as TotalView and DDT load this library, whose path is in the rank's variable
//! `MPIR_dll_name`.
//!
//! The interface is described in Cownie and Gropp, "A Standard Interface for Debugger Access to
//! Message Queue Information in MPI" (1999). This is version 2 of its header.
//! The debugger passes tables of callbacks.
//! This library asks the debugger for the address of the rank's [debug page](mpi_base::debug_page).
//! It reads the page from the rank's memory, and needs no debug information about the rank's types.
//! One thread of the debugger calls all functions.

#![deny(unsafe_code)]

mod exports;
mod interface;
mod process;
