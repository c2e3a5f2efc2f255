//! Info objects (chapter 10): ordered lists of keys and values.
//!
//! Any thread may use info objects at any time, even before initialization.
//! So info objects have their own mutex.

use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, Table, exhausted, wrong};
use mpi_base::text;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Keys and values in the order in which they were set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints(Vec<(String, String)>);

impl Hints {
    pub const fn new() -> Self {
        Hints(Vec::new())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    /// Sets a value. A key that exists keeps its position.
    pub fn set(&mut self, key: String, value: String) {
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some((_, v)) => *v = value,
            None => self.0.push((key, value)),
        }
    }

    /// Removes a key. Returns false if the key was not set.
    pub fn delete(&mut self, key: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(k, _)| k != key);
        self.0.len() < before
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn nth_key(&self, n: usize) -> Option<&str> {
        self.0.get(n).map(|(k, _)| k.as_str())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

static INFOS: Mutex<Table<Hints>> = Mutex::new(Table::new(Kind::Info));

/// The content of `MPI_INFO_ENV`, fixed at initialization, or earlier at the first query.
static ENVIRONMENT: OnceLock<Hints> = OnceLock::new();

fn infos() -> MutexGuard<'static, Table<Hints>> {
    INFOS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates an info object.
pub fn create(hints: Hints) -> Result<MPI_Info, Failure> {
    infos()
        .insert(hints)
        .map(MPI_Info)
        .ok_or_else(|| exhausted("info objects"))
}

/// Frees an info object.
pub fn free(info: MPI_Info) -> Result<(), Failure> {
    infos()
        .remove(info.0)
        .map(|_| ())
        .ok_or_else(|| wrong(Kind::Info, info.0))
}

/// Calls `look` with the content of an info object.
pub fn read<R>(info: MPI_Info, look: impl FnOnce(&Hints) -> R) -> Result<R, Failure> {
    if info == MPI_INFO_ENV {
        return Ok(look(environment()));
    }
    infos()
        .get(info.0)
        .map(look)
        .ok_or_else(|| wrong(Kind::Info, info.0))
}

/// Calls `edit` with the content of an info object. `MPI_INFO_ENV` is read-only.
pub fn change<R>(info: MPI_Info, edit: impl FnOnce(&mut Hints) -> R) -> Result<R, Failure> {
    if info == MPI_INFO_ENV {
        return Err(Failure::new(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed"));
    }
    infos()
        .get_mut(info.0)
        .map(edit)
        .ok_or_else(|| wrong(Kind::Info, info.0))
}

/// Returns the content of an info argument, which may be `MPI_INFO_NULL`.
pub fn hints(info: MPI_Info) -> Result<Hints, Failure> {
    match info {
        MPI_INFO_NULL => Ok(Hints::default()),
        info => read(info, Hints::clone),
    }
}

/// Returns the content of `MPI_INFO_ENV`: how this process was started (section 11.2.2).
fn environment() -> &'static Hints {
    ENVIRONMENT.get_or_init(|| describe_process(None))
}

/// Sets the content of `MPI_INFO_ENV` with the values that initialization knows.
/// A content that was queried before is kept.
pub fn describe(maxprocs: u32, thread_level: &str) {
    let _ = ENVIRONMENT.set(describe_process(Some((maxprocs, thread_level))));
}

fn describe_process(job: Option<(u32, &str)>) -> Hints {
    let mut hints = Hints::default();
    let mut arguments = std::env::args_os().map(text::from_os);
    if let Some(command) = arguments.next() {
        hints.set("command".into(), command);
        hints.set("argv".into(), arguments.collect::<Vec<_>>().join(" "));
    }
    if let Some((maxprocs, thread_level)) = job {
        hints.set("maxprocs".into(), maxprocs.to_string());
        hints.set("thread_level".into(), thread_level.into());
    }
    hints.set("host".into(), crate::host::host_name());
    hints.set("arch".into(), std::env::consts::ARCH.into());
    if let Ok(dir) = std::env::current_dir() {
        hints.set("wdir".into(), text::from_os(dir));
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_place_when_its_value_changes() {
        let mut hints = Hints::default();
        for (k, v) in [("a", "1"), ("b", "2"), ("a", "3")] {
            hints.set(k.into(), v.into());
        }
        assert_eq!(
            (hints.nth_key(0), hints.get("a"), hints.len()),
            (Some("a"), Some("3"), 2)
        );
        assert!(hints.delete("a"));
        assert!(!hints.delete("a"));
        assert_eq!(hints.nth_key(0), Some("b"));
    }

    #[test]
    fn the_environment_cannot_be_changed() {
        assert!(read(MPI_INFO_ENV, |h| h.get("command").is_some()).unwrap_or(false));
        let failure = change(MPI_INFO_ENV, |h| h.delete("command")).unwrap_err();
        assert_eq!(failure.code(), MPI_ERR_INFO);
    }
}
