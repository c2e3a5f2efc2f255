//! Window synchronization: epochs (section 12.5).

use crate::abi::*;
use crate::api::args::Out;
use crate::error::{Failure, Outcome};
use crate::object::window::WinObject;
use crate::state;
use mpi_core::osc::{Assert, LockMode, Win};
use std::ffi::c_int;

const FENCE: c_int = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
const POST: c_int = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

/// Checks the `assert` argument, and returns the assertions that are in `known`.
fn assertions(assert: c_int, known: c_int) -> Result<Assert, Failure> {
    let all = FENCE | POST;
    // An assertion defined for another call has no effect; an undefined bit is an error.
    if assert & !all != 0 {
        return Err(Failure::new(
            MPI_ERR_ASSERT,
            format!("assert is {assert}, which is no combination of MPI_MODE_ constants"),
        ));
    }
    let has = |bit: c_int| assert & known & bit != 0;
    Ok(Assert {
        nocheck: has(MPI_MODE_NOCHECK),
        noprecede: has(MPI_MODE_NOPRECEDE),
        nosucceed: has(MPI_MODE_NOSUCCEED),
    })
}

pub fn MPI_Win_fence(assert: c_int, win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    object.win.active().fence(assertions(assert, FENCE)?)?;
    object.land(None)
}

pub fn MPI_Win_post(group: MPI_Group, assert: c_int, win: MPI_Win) -> Outcome {
    let (object, group) = (state::win(win)?, state::group(group)?);
    Ok(object
        .win
        .active()
        .post(&group, assertions(assert, POST)?)?)
}

pub fn MPI_Win_start(group: MPI_Group, assert: c_int, win: MPI_Win) -> Outcome {
    let (object, group) = (state::win(win)?, state::group(group)?);
    let assert = assertions(assert, MPI_MODE_NOCHECK)?;
    Ok(object.win.active().start(&group, assert)?)
}

pub fn MPI_Win_complete(win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    object.win.active().complete()?;
    object.land(None)
}

pub fn MPI_Win_wait(win: MPI_Win) -> Outcome {
    Ok(state::win(win)?.win.active().wait()?)
}

pub fn MPI_Win_test(win: MPI_Win, flag: Out<c_int>) -> Outcome {
    let over = state::win(win)?.win.active().test()?;
    flag.set(over.into(), "flag")
}

pub fn MPI_Win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    let mode = match lock_type {
        MPI_LOCK_EXCLUSIVE => LockMode::Exclusive,
        MPI_LOCK_SHARED => LockMode::Shared,
        other => {
            return Err(Failure::new(
                MPI_ERR_LOCKTYPE,
                format!(
                    "lock_type is {other}, which is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED"
                ),
            ));
        }
    };
    let assert = assertions(assert, MPI_MODE_NOCHECK)?;
    Ok(object.win.passive().lock(mode, rank, assert)?)
}

pub fn MPI_Win_lock_all(assert: c_int, win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    let assert = assertions(assert, MPI_MODE_NOCHECK)?;
    Ok(object.win.passive().lock_all(assert)?)
}

pub fn MPI_Win_unlock(rank: c_int, win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    object.win.passive().unlock(rank)?;
    object.land(Some(rank))
}

pub fn MPI_Win_unlock_all(win: MPI_Win) -> Outcome {
    let object = state::win(win)?;
    object.win.passive().unlock_all()?;
    object.land(None)
}

/// Completes a flush on the fast path, unless results are staged for device memory.
fn flushed(object: &WinObject, flush: impl FnOnce(&Win) -> bool) -> bool {
    object.has_nothing_staged() && flush(&object.win)
}

pub fn MPI_Win_flush(rank: c_int, win: MPI_Win) -> Outcome {
    if state::with_win(win, |object| {
        flushed(object, |win| win.passive().flush_plain(rank))
    }) {
        return Ok(());
    }
    let object = state::win(win)?;
    object.win.passive().flush(rank)?;
    object.land(Some(rank))
}

pub fn MPI_Win_flush_all(win: MPI_Win) -> Outcome {
    if state::with_win(win, |object| {
        flushed(object, |win| win.passive().flush_all_plain())
    }) {
        return Ok(());
    }
    let object = state::win(win)?;
    object.win.passive().flush_all()?;
    object.land(None)
}

pub fn MPI_Win_flush_local(rank: c_int, win: MPI_Win) -> Outcome {
    if state::with_win(win, |object| {
        flushed(object, |win| win.passive().flush_plain(rank))
    }) {
        return Ok(());
    }
    let object = state::win(win)?;
    object.win.passive().flush_local(rank)?;
    object.land(Some(rank))
}

pub fn MPI_Win_flush_local_all(win: MPI_Win) -> Outcome {
    if state::with_win(win, |object| {
        flushed(object, |win| win.passive().flush_all_plain())
    }) {
        return Ok(());
    }
    let object = state::win(win)?;
    object.win.passive().flush_local_all()?;
    object.land(None)
}

pub fn MPI_Win_sync(win: MPI_Win) -> Outcome {
    state::win(win)?.win.passive().sync();
    Ok(())
}
