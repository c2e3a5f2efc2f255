//! RMA windows; each method completes its accesses, so the library uses no buffer afterwards.

use super::{Handle, MpiError, World, check, count};
use crate::choices::WindowKind;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

/// A window with the same number of bytes on each rank and a displacement unit of 1.
pub struct Window<'a> {
    world: &'a World<'a>,
    handle: Handle,
    /// The base displacement on each rank; nonzero for attached memory.
    starts: Vec<isize>,
    /// The memory of a window that MPI does not allocate; freed after the window.
    memory: Memory,
    /// The group of all ranks, for post and start.
    group: Handle,
}

/// Memory that other ranks may access until all ranks have freed the window.
/// After an error the memory is leaked, since other ranks may still access it.
struct Memory(ManuallyDrop<Vec<u64>>);

/// An RMA operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Put,
    Get,
    /// `MPI_Accumulate` of 64-bit integers with `MPI_SUM`.
    Accumulate,
    GetAccumulate,
    FetchAndOp,
    CompareAndSwap,
}

impl<'a> World<'a> {
    /// Creates a window; all ranks must call this function.
    pub fn window(&'a self, kind: WindowKind, bytes: usize) -> Result<Window<'a>, MpiError> {
        let (call, h) = (self.call(), self.handles());
        let mut handle = ptr::null();
        let mut base: *mut c_void = ptr::null_mut();
        let mut memory = Memory(ManuallyDrop::default());
        let size = isize::try_from(bytes).unwrap_or(isize::MAX);
        let mut starts = vec![0; usize::try_from(self.size).unwrap_or(0)];
        let info = h.info_null;
        match kind {
            WindowKind::Create | WindowKind::Dynamic => {
                memory.0.resize(bytes.div_ceil(8), std::hint::black_box(1));
                memory.0.fill(0);
                base = memory.0.as_mut_ptr().cast();
            }
            WindowKind::Allocate | WindowKind::Shared => {}
        }
        // SAFETY: results are written to local variables.
        // The memory is freed after the window, and never if freeing the window fails.
        let code = unsafe {
            match kind {
                WindowKind::Create => {
                    (call.win_create)(base, size, 1, info, h.world, &raw mut handle)
                }
                WindowKind::Allocate => (call.win_allocate)(
                    size,
                    1,
                    info,
                    h.world,
                    (&raw mut base).cast(),
                    &raw mut handle,
                ),
                WindowKind::Shared => (call.win_allocate_shared)(
                    size,
                    1,
                    info,
                    h.world,
                    (&raw mut base).cast(),
                    &raw mut handle,
                ),
                WindowKind::Dynamic => (call.win_create_dynamic)(info, h.world, &raw mut handle),
            }
        };
        check("the making of a window", code)?;
        if kind == WindowKind::Dynamic {
            // SAFETY: the memory is freed after the window, and never if freeing the window fails.
            let code = unsafe { (call.win_attach)(handle, base, size) };
            check("MPI_Win_attach", code)?;
            let own = base.expose_provenance().to_ne_bytes();
            for (root, start) in (0..).zip(&mut starts) {
                let mut bytes = own;
                self.collectives().bcast(&mut bytes, root)?;
                *start = isize::from_ne_bytes(bytes);
            }
        }
        let mut group = ptr::null();
        // SAFETY: `group` is a local variable that the call writes.
        check("MPI_Comm_group", unsafe {
            (call.comm_group)(h.world, &raw mut group)
        })?;
        Ok(Window {
            world: self,
            handle,
            starts,
            memory,
            group,
        })
    }
}

impl Window<'_> {
    /// Frees the window; all ranks must call this function.
    pub fn free(mut self) -> Result<(), MpiError> {
        let call = self.world.call();
        // SAFETY: no access is pending, since every method completes the accesses that it starts.
        check("MPI_Win_free", unsafe {
            (call.win_free)(&raw mut self.handle)
        })?;
        // MPI_Win_free returns after all ranks have called it, so no rank uses the memory any more.
        ManuallyDrop::into_inner(self.memory.0);
        // SAFETY: MPI_Comm_group created the group in `window`, and no epoch is open.
        check("MPI_Group_free", unsafe {
            (call.group_free)(&raw mut self.group)
        })
    }

    fn start(&self, rank: i32) -> isize {
        let rank = usize::try_from(rank).unwrap_or(0);
        self.starts.get(rank).copied().unwrap_or(0)
    }

    /// Starts the same access `times` times.
    /// The caller must complete the accesses before the borrow of the buffers ends.
    fn begin(
        &self,
        access: Access,
        ours: &mut [u8],
        result: &mut [u8],
        rank: i32,
        times: usize,
    ) -> Result<(), MpiError> {
        let (call, h, win) = (self.world.call(), self.world.handles(), self.handle);
        let at = self.start(rank);
        let len = ours.len().min(result.len());
        let (bytes, longs) = (count(len), count(len / 8));
        let origin: *mut c_void = ours.as_mut_ptr().cast();
        let old: *mut c_void = result.as_mut_ptr().cast();
        let (long, char_, sum) = (h.long, h.char_, h.sum);
        for _ in 0..times {
            // SAFETY: both buffers have at least `len` bytes.
            // Every caller of this private function completes the accesses before it returns.
            let code = unsafe {
                match access {
                    Access::Put => (call.put)(origin, bytes, char_, rank, at, bytes, char_, win),
                    Access::Get => (call.get)(old, bytes, char_, rank, at, bytes, char_, win),
                    Access::Accumulate => {
                        (call.accumulate)(origin, longs, long, rank, at, longs, long, sum, win)
                    }
                    Access::GetAccumulate => (call.get_accumulate)(
                        origin, longs, long, old, longs, long, rank, at, longs, long, sum, win,
                    ),
                    Access::FetchAndOp => {
                        (call.fetch_and_op)(origin, old, long, rank, at, sum, win)
                    }
                    Access::CompareAndSwap => (call.compare_and_swap)(
                        origin,
                        origin.wrapping_byte_add(8),
                        old,
                        long,
                        rank,
                        at,
                        win,
                    ),
                }
            };
            check("an access", code)?;
        }
        Ok(())
    }

    /// Starts `times` accesses and flushes them; the caller must hold a lock of the target.
    pub fn access(
        &self,
        access: Access,
        ours: &mut [u8],
        result: &mut [u8],
        rank: i32,
        times: usize,
    ) -> Result<(), MpiError> {
        let outcome = self.begin(access, ours, result, rank, times);
        let flushed = self.flush(rank);
        outcome.and(flushed)
    }

    /// Executes one access between a lock and an unlock of the target.
    pub fn locked_access(
        &self,
        access: Access,
        ours: &mut [u8],
        result: &mut [u8],
        rank: i32,
    ) -> Result<(), MpiError> {
        self.lock(rank)?;
        let outcome = self.begin(access, ours, result, rank, 1);
        let unlocked = self.unlock(rank);
        outcome.and(unlocked)
    }

    /// Executes one access between two fences of all ranks; without an access if `rank` is `None`.
    pub fn fenced_access(
        &self,
        access: Access,
        ours: &mut [u8],
        result: &mut [u8],
        rank: Option<i32>,
    ) -> Result<(), MpiError> {
        let outcome = match rank {
            Some(rank) => self.begin(access, ours, result, rank, 1),
            None => Ok(()),
        };
        let fenced = self.fence();
        outcome.and(fenced)
    }

    /// Executes one access in a post-start-complete-wait epoch of all ranks.
    pub fn posted_access(
        &self,
        access: Access,
        ours: &mut [u8],
        result: &mut [u8],
        rank: Option<i32>,
    ) -> Result<(), MpiError> {
        let (call, win, group) = (self.world.call(), self.handle, self.group);
        // SAFETY: `self` owns the window and the group, which live until `free` consumes `self`.
        check("MPI_Win_post", unsafe { (call.win_post)(group, 0, win) })?;
        // SAFETY: `self` owns the window and the group, which live until `free` consumes `self`.
        check("MPI_Win_start", unsafe { (call.win_start)(group, 0, win) })?;
        let outcome = match rank {
            Some(rank) => self.begin(access, ours, result, rank, 1),
            None => Ok(()),
        };
        // SAFETY: the window lives as long as `self`; MPI_Win_start has begun the access epoch.
        let completed = check("MPI_Win_complete", unsafe { (call.win_complete)(win) });
        // SAFETY: the window lives until `free`; MPI_Win_post above has begun the epoch.
        let waited = check("MPI_Win_wait", unsafe { (call.win_wait)(win) });
        outcome.and(completed).and(waited)
    }

    pub fn flush(&self, rank: i32) -> Result<(), MpiError> {
        // SAFETY: the window lives until `free` consumes `self`.
        check("MPI_Win_flush", unsafe {
            (self.world.call().win_flush)(rank, self.handle)
        })
    }

    /// Acquires an exclusive lock of a rank.
    pub fn lock(&self, rank: i32) -> Result<(), MpiError> {
        let exclusive: c_int = self.world.handles().lock_exclusive;
        // SAFETY: the window lives until `free` consumes `self`.
        check("MPI_Win_lock", unsafe {
            (self.world.call().win_lock)(exclusive, rank, 0, self.handle)
        })
    }

    pub fn unlock(&self, rank: i32) -> Result<(), MpiError> {
        // SAFETY: the window lives until `free` consumes `self`.
        check("MPI_Win_unlock", unsafe {
            (self.world.call().win_unlock)(rank, self.handle)
        })
    }

    pub fn lock_all(&self) -> Result<(), MpiError> {
        // SAFETY: the window lives until `free` consumes `self`.
        check("MPI_Win_lock_all", unsafe {
            (self.world.call().win_lock_all)(0, self.handle)
        })
    }

    pub fn unlock_all(&self) -> Result<(), MpiError> {
        // SAFETY: the window lives until `free` consumes `self`.
        check("MPI_Win_unlock_all", unsafe {
            (self.world.call().win_unlock_all)(self.handle)
        })
    }

    pub fn fence(&self) -> Result<(), MpiError> {
        // SAFETY: the window lives until `free` consumes `self`.
        check("MPI_Win_fence", unsafe {
            (self.world.call().win_fence)(0, self.handle)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::library::{Functions, Library};
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static BASE: Cell<*mut u64> = const { Cell::new(ptr::null_mut()) };
    }

    unsafe extern "C" fn win_create(
        base: *mut c_void,
        _: isize,
        _: c_int,
        _: Handle,
        _: Handle,
        _: *mut Handle,
    ) -> c_int {
        BASE.set(base.cast());
        0
    }

    unsafe extern "C" fn no_group(_: Handle, _: *mut Handle) -> c_int {
        1
    }

    unsafe extern "C" fn not_freed(_: *mut Handle) -> c_int {
        1
    }

    /// Returns true if the window's memory is still in use.
    /// Memory in use is not returned by the allocator for new buffers of the same length.
    fn is_kept() -> bool {
        let buffers: Vec<Vec<u64>> = (0..16).map(|_| vec![1; 8]).collect();
        buffers
            .iter()
            .all(|buffer| !ptr::eq(buffer.as_ptr(), BASE.get()))
    }

    #[test]
    fn the_memory_of_a_window_that_was_not_freed_stays() {
        let mut call = Functions::stubs();
        call.win_create = win_create;
        call.win_free = not_freed;
        let library = Library::of(call);
        let world = library.world();
        let window = world.window(WindowKind::Create, 64).expect("a window");
        window.free().expect_err("refused");
        assert!(is_kept());
        drop(world.window(WindowKind::Create, 64).expect("a window"));
        assert!(is_kept());
        let mut call = Functions::stubs();
        (call.win_create, call.comm_group) = (win_create, no_group);
        let library = Library::of(call);
        let refused = library.world().window(WindowKind::Create, 64).err();
        assert!(refused.is_some() && is_kept());
    }
}
