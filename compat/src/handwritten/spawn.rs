//! Process creation: conversion of error code arrays, and of the infos of several commands.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::{ShortArray, code_out, handles_in, words_out};
use crate::family::{Family, Kind, Word};
use std::ffi::{c_char, c_int};

/// Returns the number of started processes: the size of the intercommunicator's remote group,
/// or 0 for the null communicator.
unsafe fn started<F: Family>(intercomm: F::Below) -> c_int {
    let mut size = 0;
    if intercomm != F::null(Kind::Comm) {
        // SAFETY: the MPI standard requires that the program passes valid arguments.
        unsafe { (backend::MPI_Comm_remote_size::<F>())(intercomm, &mut size) };
    }
    size
}

pub unsafe fn MPI_Comm_spawn<F: Family>(
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: F::Handle,
    root: c_int,
    comm: F::Handle,
    intercomm: *mut F::Handle,
    errcodes: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let mut made = F::null(Kind::Comm);
        let code = (backend::MPI_Comm_spawn::<F>())(
            command,
            argv,
            maxprocs,
            F::handle_in(Kind::Info, info),
            F::word_in(Word::Rank, root),
            F::handle_in(Kind::Comm, comm),
            if intercomm.is_null() {
                std::ptr::null_mut()
            } else {
                &raw mut made
            },
            errcodes,
        );
        if !intercomm.is_null() {
            intercomm.write(F::handle_out(Kind::Comm, made));
        }
        if code == 0 {
            words_out::<F>(Word::Error, errcodes, started::<F>(made));
        }
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Comm_spawn_multiple<F: Family>(
    count: c_int,
    commands: *mut *mut c_char,
    argvs: *mut *mut *mut c_char,
    maxprocs: *const c_int,
    infos: *const F::Handle,
    root: c_int,
    comm: F::Handle,
    intercomm: *mut F::Handle,
    errcodes: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let comm = F::handle_in(Kind::Comm, comm);
        let root = F::word_in(Word::Rank, root);
        let mut rank = -1;
        if comm != F::null(Kind::Comm) {
            (backend::MPI_Comm_rank::<F>())(comm, &mut rank);
        }
        // The array of infos is valid only at the root.
        let mut short = ShortArray::new();
        let count_here = if rank == root { count } else { 0 };
        let infos = handles_in::<F>(&mut short, Kind::Info, infos, count_here);
        let mut made = F::null(Kind::Comm);
        let code = (backend::MPI_Comm_spawn_multiple::<F>())(
            count,
            commands,
            argvs,
            maxprocs,
            infos.argument(),
            root,
            comm,
            if intercomm.is_null() {
                std::ptr::null_mut()
            } else {
                &raw mut made
            },
            errcodes,
        );
        if !intercomm.is_null() {
            intercomm.write(F::handle_out(Kind::Comm, made));
        }
        if code == 0 {
            words_out::<F>(Word::Error, errcodes, started::<F>(made));
        }
        code_out::<F>(code)
    }
}
