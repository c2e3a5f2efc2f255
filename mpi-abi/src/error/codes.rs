//! Registry of error classes and codes added by the program (section 9.5), and error texts.
//!
//! A predefined code is its own class.
//! Added classes and codes are numbered from `MPI_ERR_LASTCODE + 1`.
//! The numbers of removed codes are never reused, and removed codes use no memory.
//! So a library can add and remove its codes any number of times.
//! Any thread may call the functions of this module at any time, so the registry has its own mutex.

use super::{Failure, class_text};
use crate::abi::*;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A class or code added by the program.
#[derive(Clone, Debug)]
struct Added {
    /// The class of this code. For a class, its own number.
    class: c_int,
    /// For a class, the number of its codes.
    codes: usize,
    text: Option<String>,
}

/// All classes and codes that the program has added, by number.
#[derive(Debug)]
struct Registry {
    last: c_int,
    added: BTreeMap<c_int, Added>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());

/// The last failure of each class, for the text of the class.
static FAILURES: Mutex<Failures> = Mutex::new(Failures(BTreeMap::new()));

/// The last failure of each class.
///
/// A code is its own class, so several failures have the same code.
/// The text of a code names a call alone only if one failure had this code since the program last asked for the text; otherwise it says that the call is the last one.
/// Repeated calls return the same text.
struct Failures(BTreeMap<c_int, Recent>);

/// The failures of one class since the program last asked for the text of the class.
struct Recent {
    /// The message of the last one.
    message: String,
    count: u32,
    /// True if the program has asked for the text since the last failure.
    is_read: bool,
}

impl Failures {
    fn add(&mut self, class: c_int, message: String) {
        let before = self.0.remove(&class).filter(|recent| !recent.is_read);
        let count = before.map_or(0, |recent| recent.count);
        let recent = Recent {
            message,
            count: count.saturating_add(1),
            is_read: false,
        };
        self.0.insert(class, recent);
    }

    /// Returns the message of the class's last failure, with a remark if other failures had the same code.
    fn read(&mut self, class: c_int) -> Option<String> {
        let recent = self.0.get_mut(&class)?;
        let message = &recent.message;
        let text = match recent.count {
            2.. => format!("the last of {} such errors: {message}", recent.count),
            _ => message.clone(),
        };
        recent.is_read = true;
        Some(text)
    }
}

fn failures() -> MutexGuard<'static, Failures> {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown(what: &str, code: c_int) -> Failure {
    Failure::new(
        MPI_ERR_ARG,
        format!("{code} is not an {what} that was added by this program"),
    )
}

impl Registry {
    const fn new() -> Self {
        Registry {
            last: MPI_ERR_LASTCODE,
            added: BTreeMap::new(),
        }
    }

    /// Returns the added class with this number.
    fn class_mut(&mut self, class: c_int) -> Option<&mut Added> {
        self.added.get_mut(&class).filter(|a| a.class == class)
    }

    fn add(&mut self, class: Option<c_int>) -> Result<c_int, Failure> {
        let code = self
            .last
            .checked_add(1)
            .ok_or_else(|| Failure::new(MPI_ERR_OTHER, "no error codes are left"))?;
        if let Some(class) = class {
            match self.class_mut(class) {
                Some(added) => added.codes += 1,
                None if class_text(class).is_some() => {}
                None => {
                    return Err(Failure::new(
                        MPI_ERR_ARG,
                        format!("{class} is not an error class"),
                    ));
                }
            }
        }
        self.last = code;
        let added = Added {
            class: class.unwrap_or(code),
            codes: 0,
            text: None,
        };
        self.added.insert(code, added);
        Ok(code)
    }

    fn remove_class(&mut self, class: c_int) -> Result<(), Failure> {
        let added = self.removable(class, "error class", |a| a.class == class)?;
        if added.codes > 0 {
            return Err(Failure::new(
                MPI_ERR_OTHER,
                format!("error class {class} still has error codes"),
            ));
        }
        self.added.remove(&class);
        Ok(())
    }

    fn remove_code(&mut self, code: c_int) -> Result<(), Failure> {
        let class = self
            .removable(code, "error code", |a| a.class != code)?
            .class;
        self.added.remove(&code);
        if let Some(added) = self.class_mut(class) {
            added.codes -= 1;
        }
        Ok(())
    }

    /// Returns an added class or code that has no text and so can be removed.
    fn removable(
        &self,
        code: c_int,
        what: &str,
        is_one: impl Fn(&Added) -> bool,
    ) -> Result<&Added, Failure> {
        let added = self.added.get(&code).filter(|a| is_one(a));
        let added = added.ok_or_else(|| unknown(what, code))?;
        match added.text {
            Some(_) => Err(Failure::new(
                MPI_ERR_OTHER,
                format!("{what} {code} still has a text"),
            )),
            None => Ok(added),
        }
    }

    fn set_text(&mut self, code: c_int, text: Option<String>) -> Result<(), Failure> {
        let added = self
            .added
            .get_mut(&code)
            .ok_or_else(|| unknown("error class or code", code))?;
        if text.is_none() && added.text.is_none() {
            return Err(Failure::new(
                MPI_ERR_ARG,
                format!("error code {code} has no text to remove"),
            ));
        }
        added.text = text;
        Ok(())
    }

    fn last_used(&self) -> c_int {
        let last = self.added.last_key_value();
        last.map_or(MPI_ERR_LASTCODE, |(code, _)| *code)
    }
}

/// Adds a class if `class` is `None`, otherwise a code of this class.
pub fn add(class: Option<c_int>) -> Result<c_int, Failure> {
    registry().add(class)
}

/// Removes an added class, whose codes and text have been removed before.
pub fn remove_class(class: c_int) -> Result<(), Failure> {
    registry().remove_class(class)
}

/// Removes an added code, whose text has been removed before.
pub fn remove_code(code: c_int) -> Result<(), Failure> {
    registry().remove_code(code)
}

/// Sets the text of an added class or code. `None` removes the text.
pub fn set_text(code: c_int, text: Option<String>) -> Result<(), Failure> {
    registry().set_text(code, text)
}

/// Returns the class of a code.
pub fn class(code: c_int) -> Result<c_int, Failure> {
    if class_text(code).is_some() {
        return Ok(code);
    }
    let class = registry().added.get(&code).map(|a| a.class);
    class.ok_or_else(|| Failure::new(MPI_ERR_ARG, format!("{code} is not an error code")))
}

/// Returns the text of a code: the standard's text of its class, with the message of the class's last failure.
pub fn text(code: c_int) -> Result<String, Failure> {
    if let Some((name, text)) = class_text(code) {
        return Ok(match failures().read(code) {
            Some(message) => format!("{name}: {text} ({message})"),
            None => format!("{name}: {text}"),
        });
    }
    let text = registry().added.get(&code).map(|a| a.text.clone());
    text.map(Option::unwrap_or_default)
        .ok_or_else(|| Failure::new(MPI_ERR_ARG, format!("{code} is not an error code")))
}

/// Returns the largest code in use, the value of the attribute `MPI_LASTUSEDCODE`.
pub fn last_used() -> c_int {
    registry().last_used()
}

/// Records a failure, for the text of its code.
pub fn remember(code: c_int, message: String) {
    failures().add(code, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_goes_when_its_codes_have_gone_and_its_number_never_comes_back() {
        let mut registry = Registry::new();
        let class = registry.add(None).unwrap();
        let codes = [(); 2].map(|()| registry.add(Some(class)).unwrap());
        let of_the_standard = registry.add(Some(MPI_ERR_TAG)).unwrap();
        assert_eq!(registry.last_used(), of_the_standard);
        registry.remove_code(of_the_standard).unwrap();
        assert_eq!(registry.last_used(), codes[1]);
        for code in codes {
            assert_eq!(
                registry.remove_class(class).unwrap_err().code(),
                MPI_ERR_OTHER
            );
            registry.remove_code(code).unwrap();
            assert_eq!(registry.remove_code(code).unwrap_err().code(), MPI_ERR_ARG);
        }
        registry.remove_class(class).unwrap();
        assert_eq!(
            registry.add(Some(class)).unwrap_err().code(),
            MPI_ERR_ARG,
            "a code of a removed class"
        );
        assert!(registry.add(None).unwrap() > of_the_standard);
    }

    /// Sections 9.4 and 9.5: the text belongs to the code, and several failures may have returned the same code.
    #[test]
    fn a_text_does_not_attribute_a_code_to_another_call() {
        let mut failures = Failures(BTreeMap::new());
        assert_eq!(failures.read(MPI_ERR_RANK), None);
        failures.add(MPI_ERR_RANK, "MPI_Send".into());
        failures.add(MPI_ERR_TAG, "MPI_Probe".into());
        let mut text = |class| failures.read(class).unwrap();
        assert_eq!(text(MPI_ERR_RANK), "MPI_Send");
        assert_eq!(
            text(MPI_ERR_RANK),
            "MPI_Send",
            "a second call returns the same"
        );
        assert_eq!(text(MPI_ERR_TAG), "MPI_Probe");
        failures.add(MPI_ERR_RANK, "MPI_Recv".into());
        failures.add(MPI_ERR_RANK, "MPI_Bcast".into());
        for _ in 0..2 {
            let text = failures.read(MPI_ERR_RANK).unwrap();
            assert_eq!(text, "the last of 2 such errors: MPI_Bcast");
        }
        failures.add(MPI_ERR_RANK, "MPI_Gather".into());
        assert_eq!(failures.read(MPI_ERR_RANK).unwrap(), "MPI_Gather");
    }

    #[test]
    fn nothing_is_kept_of_what_was_removed() {
        let mut registry = Registry::new();
        for _ in 0..1000 {
            let class = registry.add(None).unwrap();
            let code = registry.add(Some(class)).unwrap();
            registry.set_text(code, Some("gone".into())).unwrap();
            registry.set_text(code, None).unwrap();
            registry.remove_code(code).unwrap();
            registry.remove_class(class).unwrap();
        }
        assert!(registry.added.is_empty());
        assert_eq!(registry.last_used(), MPI_ERR_LASTCODE);
    }
}
