//! Error classes and codes that programs add (section 9.5), and the text of every code.
//!
//! Codes of the standard are their own class.
//! Added classes and codes are numbered from `MPI_ERR_LASTCODE + 1`; removed ones leave holes that are not used again.
//! All functions here may be called at any time from any thread, so the registry has its own mutex.

use super::{Failure, class_text};
use crate::abi::*;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A class or code that the program added.
#[derive(Clone, Debug)]
struct Added {
    /// Its class; a class is its own.
    class: c_int,
    text: Option<String>,
}

static ADDED: Mutex<Vec<Option<Added>>> = Mutex::new(Vec::new());

/// The last failure that was raised, so that the text of its code can say what happened.
static LAST: Mutex<Option<(c_int, String)>> = Mutex::new(None);

fn added() -> MutexGuard<'static, Vec<Option<Added>>> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The index of an added code.
fn index(code: c_int) -> Option<usize> {
    usize::try_from(i64::from(code) - i64::from(MPI_ERR_LASTCODE) - 1).ok()
}

fn unknown(what: &str, code: c_int) -> Failure {
    Failure::new(
        MPI_ERR_ARG,
        format!("{code} is not an {what} that was added by this program"),
    )
}

/// Adds a class (none given) or a code of a class.
pub fn add(class: Option<c_int>) -> Result<c_int, Failure> {
    let mut list = added();
    let code = i64::from(MPI_ERR_LASTCODE) + 1 + list.len() as i64;
    let code = c_int::try_from(code)
        .map_err(|_| Failure::new(MPI_ERR_OTHER, "no error codes are left"))?;
    if let Some(class) = class {
        let known = class_text(class).is_some()
            || index(class)
                .and_then(|i| list.get(i)?.as_ref())
                .is_some_and(|a| a.class == class);
        if !known {
            return Err(Failure::new(
                MPI_ERR_ARG,
                format!("{class} is not an error class"),
            ));
        }
    }
    list.push(Some(Added {
        class: class.unwrap_or(code),
        text: None,
    }));
    Ok(code)
}

/// Removes an added class; codes of it, and its text, must have been removed before.
pub fn remove_class(class: c_int) -> Result<(), Failure> {
    let mut list = added();
    let at = removable(&list, class, "error class", |a| a.class == class)?;
    let used =
        |(i, a): (usize, &Option<Added>)| i != at && a.as_ref().is_some_and(|a| a.class == class);
    if list.iter().enumerate().any(used) {
        return Err(Failure::new(
            MPI_ERR_OTHER,
            format!("error class {class} still has error codes"),
        ));
    }
    list[at] = None;
    Ok(())
}

/// Removes an added code; its text must have been removed before.
pub fn remove_code(code: c_int) -> Result<(), Failure> {
    let mut list = added();
    let at = removable(&list, code, "error code", |a| a.class != code)?;
    list[at] = None;
    Ok(())
}

/// The place of an added class or code that has no text.
fn removable(
    list: &[Option<Added>],
    code: c_int,
    what: &str,
    is_one: impl Fn(&Added) -> bool,
) -> Result<usize, Failure> {
    let at = index(code).ok_or_else(|| unknown(what, code))?;
    let entry = list.get(at).and_then(Option::as_ref).filter(|a| is_one(a));
    match entry.ok_or_else(|| unknown(what, code))?.text {
        Some(_) => Err(Failure::new(
            MPI_ERR_OTHER,
            format!("{what} {code} still has a text"),
        )),
        None => Ok(at),
    }
}

/// Gives an added class or code a text, or takes it away.
pub fn set_text(code: c_int, text: Option<String>) -> Result<(), Failure> {
    let mut list = added();
    let entry = index(code)
        .and_then(|i| list.get_mut(i)?.as_mut())
        .ok_or_else(|| unknown("error class or code", code))?;
    if text.is_none() && entry.text.is_none() {
        return Err(Failure::new(
            MPI_ERR_ARG,
            format!("error code {code} has no text to remove"),
        ));
    }
    entry.text = text;
    Ok(())
}

/// The class of a code.
pub fn class(code: c_int) -> Result<c_int, Failure> {
    if class_text(code).is_some() {
        return Ok(code);
    }
    index(code)
        .and_then(|i| added().get(i)?.as_ref().map(|a| a.class))
        .ok_or_else(|| Failure::new(MPI_ERR_ARG, format!("{code} is not an error code")))
}

/// The text of a code: what the standard says of the class, and for the failure raised last also what happened.
pub fn text(code: c_int) -> Result<String, Failure> {
    if let Some((name, text)) = class_text(code) {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        return Ok(match &*last {
            Some((class, message)) if *class == code => format!("{name}: {text} ({message})"),
            _ => format!("{name}: {text}"),
        });
    }
    index(code)
        .and_then(|i| {
            added()
                .get(i)?
                .as_ref()
                .map(|a| a.text.clone().unwrap_or_default())
        })
        .ok_or_else(|| Failure::new(MPI_ERR_ARG, format!("{code} is not an error code")))
}

/// The largest code in use, the value of the attribute `MPI_LASTUSEDCODE`.
pub fn last_used() -> c_int {
    let list = added();
    let used = list.iter().rposition(Option::is_some).map_or(0, |i| i + 1);
    MPI_ERR_LASTCODE.saturating_add(c_int::try_from(used).unwrap_or(c_int::MAX))
}

/// Remembers what was raised.
pub fn remember(code: c_int, message: String) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, message));
}
