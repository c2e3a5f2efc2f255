//! Sessions and handles, with which tools read performance variables.

use super::{Object, PVARS, Pvar, begin_to_count};
use crate::abi::*;
use crate::error::Failure;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle of a performance variable.
#[derive(Clone, Default)]
struct Handle {
    /// The index of the variable.
    index: usize,
    object: Object,
    is_started: bool,
    /// For a counted variable: the counts at the last start (`base`).
    /// `kept` is the sum over earlier periods between start and stop.
    base: Vec<u64>,
    kept: Vec<u64>,
}

/// The handles of each session, by session id and handle id. Ids are not reused.
#[derive(Default)]
struct Sessions {
    last: usize,
    handles: BTreeMap<usize, BTreeMap<usize, Handle>>,
}

static SESSIONS: Mutex<Sessions> = Mutex::new(Sessions {
    last: 0,
    handles: BTreeMap::new(),
});

fn sessions() -> MutexGuard<'static, Sessions> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    /// Returns an unused id that differs from all predefined handles.
    fn next(&mut self) -> usize {
        self.last = self.last.max(MPI_T_PVAR_ALL_HANDLES.0) + 1;
        self.last
    }

    fn of(&mut self, session: MPI_T_pvar_session) -> Result<&mut BTreeMap<usize, Handle>, Failure> {
        self.handles.get_mut(&session.0).ok_or_else(|| {
            let sentence = format!("{:#x} is no session of performance variables", session.0);
            Failure::new(MPI_T_ERR_INVALID_SESSION, sentence)
        })
    }

    fn handle(
        &mut self,
        session: MPI_T_pvar_session,
        handle: MPI_T_pvar_handle,
    ) -> Result<&mut Handle, Failure> {
        let found = self.of(session)?.get_mut(&handle.0);
        found.ok_or_else(|| no_handle(session, handle))
    }
}

fn no_handle(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Failure {
    let sentence = format!(
        "{:#x} is not the handle of a performance variable in the session {:#x}",
        handle.0, session.0
    );
    Failure::new(MPI_T_ERR_INVALID_HANDLE, sentence)
}

pub fn begin_session() -> MPI_T_pvar_session {
    let mut sessions = sessions();
    let number = sessions.next();
    sessions.handles.insert(number, BTreeMap::new());
    MPI_T_pvar_session(number)
}

/// Ends a session with all of its handles.
pub fn end_session(session: MPI_T_pvar_session) -> Result<(), Failure> {
    let mut sessions = sessions();
    sessions.of(session)?;
    sessions.handles.remove(&session.0);
    Ok(())
}

/// Creates a handle of the variable at an index, bound to an object if the variable requires it.
/// Also returns the number of values.
pub fn allocate(
    session: MPI_T_pvar_session,
    index: usize,
    object: Object,
) -> Result<(MPI_T_pvar_handle, usize), Failure> {
    let count = match PVARS.get(index) {
        Some(pvar) => pvar.count(object)?,
        None => 1,
    };
    let mut sessions = sessions();
    sessions.of(session)?;
    let number = sessions.next();
    let handle = Handle {
        index,
        object,
        kept: vec![0; count],
        base: vec![0; count],
        is_started: false,
    };
    sessions.of(session)?.insert(number, handle);
    Ok((MPI_T_pvar_handle(number), count))
}

pub fn release(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Result<(), Failure> {
    let mut sessions = sessions();
    let removed = sessions.of(session)?.remove(&handle.0);
    removed.map(drop).ok_or_else(|| no_handle(session, handle))
}

/// Returns the variable of a handle.
pub fn find(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
) -> Result<&'static Pvar, Failure> {
    let index = sessions().handle(session, handle)?.index;
    PVARS.get(index).ok_or_else(|| no_handle(session, handle))
}

/// Returns the handles to which a call applies.
/// `MPI_T_PVAR_ALL_HANDLES` selects the session's handles of counted variables.
pub fn meant(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
) -> Result<Vec<MPI_T_pvar_handle>, Failure> {
    let mut sessions = sessions();
    let all = sessions.of(session)?;
    if handle != MPI_T_PVAR_ALL_HANDLES {
        return Ok(vec![handle]);
    }
    let counted = all.iter().filter(|(_, handle)| {
        PVARS
            .get(handle.index)
            .is_some_and(|pvar| !pvar.is_continuous())
    });
    Ok(counted
        .map(|(number, _)| MPI_T_pvar_handle(*number))
        .collect())
}

/// An operation on a counted variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Start,
    Stop,
    Reset,
}

/// Starts, stops or resets the counted variable of a handle.
pub fn change(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    change: Change,
) -> Result<(), Failure> {
    let pvar = find(session, handle)?;
    if change == Change::Start {
        begin_to_count()?;
    }
    let object = sessions().handle(session, handle)?.object;
    let now = pvar.now(object)?;
    let mut sessions = sessions();
    let handle = sessions.handle(session, handle)?;
    match change {
        Change::Start if !handle.is_started => (handle.base, handle.is_started) = (now, true),
        Change::Stop if handle.is_started => {
            handle.kept = handle.counted(&now);
            handle.is_started = false;
        }
        Change::Reset => {
            handle.kept.fill(0);
            handle.base = now;
        }
        Change::Start | Change::Stop => {}
    }
    Ok(())
}

/// Returns the values of a handle.
pub fn read(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Result<Vec<u64>, Failure> {
    let pvar = find(session, handle)?;
    let copy = sessions().handle(session, handle)?.clone();
    let now = pvar.now(copy.object)?;
    Ok(match pvar.is_continuous() {
        true => now,
        false => copy.counted(&now),
    })
}

impl Handle {
    /// Returns the counts while the handle was started.
    fn counted(&self, now: &[u64]) -> Vec<u64> {
        let since = |(kept, (now, base)): (&u64, (&u64, &u64))| match self.is_started {
            true => kept.saturating_add(now.saturating_sub(*base)),
            false => *kept,
        };
        self.kept
            .iter()
            .zip(now.iter().zip(&self.base))
            .map(since)
            .collect()
    }
}
