//! Calls that do not need the engine: versions, time, addresses, memory (chapter 9).
#![allow(unsafe_code)]

use super::args::{Out, TextOut};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info::{self, Hints};
use mpi_base::hardware::{Confinement, Kind};
use std::ffi::{c_int, c_void};

pub fn MPI_Get_version(version: Out<c_int>, subversion: Out<c_int>) -> Outcome {
    version.set(MPI_VERSION, "version")?;
    subversion.set(MPI_SUBVERSION, "subversion")
}

pub fn MPI_Get_library_version(version: TextOut, resultlen: Out<c_int>) -> Outcome {
    let text = concat!(
        "Portcullis ",
        env!("CARGO_PKG_VERSION"),
        ", MPI 5.0 with the standard ABI"
    );
    version.set_with_length(resultlen, text, "version")
}

pub fn MPI_Get_processor_name(name: TextOut, resultlen: Out<c_int>) -> Outcome {
    let host = crate::host::host_name();
    name.set_with_length(resultlen, &host, "name")
}

pub fn MPI_Get_hw_resource_info(hw_info: Out<MPI_Info>) -> Outcome {
    let here = Confinement::of_this_process();
    let mut hints = Hints::new();
    for kind in Kind::ALL {
        let confined = here.instance(kind).is_some();
        hints.set(kind.uri().into(), confined.to_string());
    }
    hw_info.set(info::create(hints)?, "hw_info")
}

/// Reads the time or the resolution of the host's monotonic clock, and converts it to seconds.
fn clock(read: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int) -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: CLOCK_MONOTONIC exists on Linux, and the output is a local variable.
    unsafe { read(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

pub fn MPI_Wtime() -> f64 {
    clock(libc::clock_gettime)
}

pub fn MPI_Wtick() -> f64 {
    clock(libc::clock_getres)
}

pub fn MPI_Get_address(location: *const c_void, address: Out<MPI_Aint>) -> Outcome {
    address.set(location.expose_provenance() as MPI_Aint, "address")
}

pub fn MPI_Aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint {
    base.wrapping_add(disp)
}

pub fn MPI_Aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint {
    addr1.wrapping_sub(addr2)
}

/// Cache line size in bytes, the default alignment of MPI_Alloc_mem.
const CACHE_LINE: usize = 64;

/// Returns the value of the info key `mpi_minimum_memory_alignment` in bytes (section 9.2).
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

pub fn MPI_Alloc_mem(size: MPI_Aint, info: MPI_Info, baseptr: Out<*mut c_void>) -> Outcome {
    let bytes = usize::try_from(size)
        .map_err(|_| Failure::new(MPI_ERR_ARG, format!("size is {size}, which is negative")))?;
    let alignment = alignment(info)?;
    // The node's other ranks can access memory in the node's shared segment by loads and stores,
    // if a window contains it.
    if let Ok(engine) = crate::state::engine()
        && let Some(block) = engine.node().alloc_large(bytes.max(1), alignment)
    {
        let memory = block.as_ptr();
        crate::state::state()
            .program()
            .heap()
            .borrow_mut()
            .insert(memory.addr(), block);
        return baseptr.set(memory.cast(), "baseptr");
    }
    let mut memory = std::ptr::null_mut();
    // SAFETY: the alignment is a power of two and a multiple of a pointer's size.
    // The output is a local variable.
    let failed = unsafe { libc::posix_memalign(&mut memory, alignment, bytes.max(1)) };
    if failed != 0 {
        return Err(Failure::new(
            MPI_ERR_NO_MEM,
            format!("there is no memory for {bytes} bytes"),
        ));
    }
    baseptr.set(memory, "baseptr")
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
    // SAFETY: MPI_Free_mem requires of its caller that `base` is a result of MPI_Alloc_mem.
    // `free` accepts null.
    unsafe { libc::free(base) };
    Ok(())
}

pub fn MPI_Pcontrol(_level: c_int) -> Outcome {
    // MPI_Pcontrol does nothing in this library (section 15.2.4). Profiling tools intercept it.
    Ok(())
}
