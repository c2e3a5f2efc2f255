//! Environment queries that need no engine: versions, time, addresses, memory allocation (chapter 9).

use super::args::{out, write_string};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info::{self, Hints};
use mpi_base::hardware::{Confinement, Kind};
use std::ffi::{c_char, c_int, c_void};

pub unsafe fn MPI_Get_version(version: *mut c_int, subversion: *mut c_int) -> Outcome {
    // SAFETY: `version` and `subversion` are null or writable: the C binding of MPI_Get_version requires it of the caller.
    unsafe {
        out(version, MPI_VERSION, "version")?;
        out(subversion, MPI_SUBVERSION, "subversion")
    }
}

pub unsafe fn MPI_Get_library_version(version: *mut c_char, resultlen: *mut c_int) -> Outcome {
    let text = concat!(
        "Portcullis ",
        env!("CARGO_PKG_VERSION"),
        ", MPI 5.0 with the standard ABI"
    );
    // SAFETY: `version` has MPI_MAX_LIBRARY_VERSION_STRING bytes and `resultlen` is writable: the C binding of MPI_Get_library_version requires it of the caller.
    unsafe {
        write_string(
            version,
            resultlen,
            text,
            MPI_MAX_LIBRARY_VERSION_STRING,
            "version",
        )
    }
}

pub unsafe fn MPI_Get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> Outcome {
    let host = crate::host::host_name();
    // SAFETY: `name` has MPI_MAX_PROCESSOR_NAME bytes and `resultlen` is writable: the C binding of MPI_Get_processor_name requires it of the caller.
    unsafe { write_string(name, resultlen, &host, MPI_MAX_PROCESSOR_NAME, "name") }
}

pub unsafe fn MPI_Get_hw_resource_info(hw_info: *mut MPI_Info) -> Outcome {
    let here = Confinement::of_this_process();
    let mut hints = Hints::new();
    for kind in Kind::ALL {
        let confined = here.instance(kind).is_some();
        hints.set(kind.uri().into(), confined.to_string());
    }
    // SAFETY: `hw_info` is null or writable: the C binding of MPI_Get_hw_resource_info requires it of the caller.
    unsafe { out(hw_info, info::create(hints)?, "hw_info") }
}

/// A clock of this machine in nanoseconds.
fn clock(read: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int) -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the monotonic clock exists and the result goes into a local.
    unsafe { read(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

pub unsafe fn MPI_Wtime() -> f64 {
    clock(libc::clock_gettime)
}

pub unsafe fn MPI_Wtick() -> f64 {
    clock(libc::clock_getres)
}

pub unsafe fn MPI_Get_address(location: *const c_void, address: *mut MPI_Aint) -> Outcome {
    // SAFETY: `location` and `address` are valid as the C binding of MPI_Get_address requires of its caller.
    unsafe { out(address, location.expose_provenance() as MPI_Aint, "address") }
}

pub unsafe fn MPI_Aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint {
    base.wrapping_add(disp)
}

pub unsafe fn MPI_Aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint {
    addr1.wrapping_sub(addr2)
}

/// Cache line size in bytes: the default alignment of memory.
const CACHE_LINE: usize = 64;

/// Returns the alignment requested by an info argument: a minimum in bytes (section 9.2).
fn alignment(info: MPI_Info) -> Result<usize, Failure> {
    const KEY: &str = "mpi_minimum_memory_alignment";
    let hints = info::hints(info)?;
    let asked = match hints.get(KEY) {
        None => return Ok(CACHE_LINE),
        Some(text) => text.trim().parse::<usize>().ok(),
    };
    let power = asked.filter(|n| n.is_power_of_two());
    power.map(|n| n.max(CACHE_LINE)).ok_or_else(|| {
        let text = hints.get(KEY).unwrap_or_default();
        Failure::new(
            MPI_ERR_INFO_VALUE,
            format!("{KEY} is `{text}`, which is not a power of two"),
        )
    })
}

pub unsafe fn MPI_Alloc_mem(size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) -> Outcome {
    let bytes = usize::try_from(size)
        .map_err(|_| Failure::new(MPI_ERR_ARG, format!("size is {size}, which is negative")))?;
    let alignment = alignment(info)?;
    // Memory from the node's segment can be used as a window that neighbours access directly.
    if let Ok(engine) = crate::state::engine()
        && let Some(block) = engine.node().alloc_large(bytes.max(1), alignment)
    {
        let memory = block.as_ptr();
        crate::state::state()
            .program()
            .heap()
            .borrow_mut()
            .insert(memory.addr(), block);
        // SAFETY: `baseptr` is null or the address of a pointer: the C binding of MPI_Alloc_mem requires it of the caller.
        return unsafe { out(baseptr.cast(), memory, "baseptr") };
    }
    let mut memory = std::ptr::null_mut();
    // SAFETY: a power of two and a multiple of a pointer's size; the result goes into a local.
    let failed = unsafe { libc::posix_memalign(&mut memory, alignment, bytes.max(1)) };
    if failed != 0 {
        return Err(Failure::new(
            MPI_ERR_NO_MEM,
            format!("there is no memory for {bytes} bytes"),
        ));
    }
    // SAFETY: `baseptr` is null or the address of a pointer: the C binding of MPI_Alloc_mem requires it of the caller.
    unsafe { out(baseptr.cast(), memory, "baseptr") }
}

pub unsafe fn MPI_Free_mem(base: *mut c_void) -> Outcome {
    let taken = crate::state::state()
        .program()
        .heap()
        .borrow_mut()
        .remove(&base.addr());
    if taken.is_some() {
        return Ok(());
    }
    // SAFETY: `base` came from MPI_Alloc_mem: the C binding of MPI_Free_mem requires it of the caller; null is allowed.
    unsafe { libc::free(base) };
    Ok(())
}

pub unsafe fn MPI_Pcontrol(_level: c_int) -> Outcome {
    // The library has no profiling to control (section 15.2.4); tools intercept the call.
    Ok(())
}
