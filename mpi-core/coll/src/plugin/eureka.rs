//! Adapter of a plugin's four eureka functions (begin, raise, test, end) to the engine's trait [`EurekaLine`].
#![allow(unsafe_code)]

use super::abi::{DONE, NEXT, PENDING, Why};
use super::host::Services as _;
use super::module::Inner;
use crate::{CollError, Error, EurekaLine};
use std::ffi::c_int;

impl Inner {
    /// Returns true if the plugin has all four eureka functions (begin, raise, test, end).
    pub(super) fn has_line(&self) -> bool {
        let table = &self.table;
        table.eureka_begin.is_some()
            && table.eureka_raise.is_some()
            && table.eureka_test.is_some()
            && table.eureka_end.is_some()
    }

    /// Converts a function's return code: true for the code `yes`, false for `no`, otherwise an error.
    fn eureka_outcome(&self, code: c_int, [yes, no]: [c_int; 2], why: &Why) -> Result<bool, Error> {
        if code == yes || code == no {
            return Ok(code == yes);
        }
        // After a member's death, return the error about the death instead of the plugin's error.
        self.module_comm.usable()?;
        Err(CollError::Eureka {
            component: self.plugin.name.into(),
            comm: self.module_comm.name().to_string_lossy().into_owned(),
            reason: why.sentence(),
        }
        .into())
    }
}

impl EurekaLine for Inner {
    fn begin(&self) -> Result<bool, Error> {
        let mut why = Why::new();
        let code = match self.table.eureka_begin {
            Some(begin) => {
                // SAFETY: `this` is valid until `Inner::drop` calls `free`.
                self.guarded("eureka_begin", || unsafe { begin(self.this, &mut why) })
            }
            None => NEXT,
        };
        self.eureka_outcome(code, [DONE, NEXT], &why)
    }

    fn raise(&self) -> Result<bool, Error> {
        let (mut why, mut first) = (Why::new(), 0);
        let code = match self.table.eureka_raise {
            Some(raise) => {
                // SAFETY: `this` is valid until `Inner::drop` calls `free`, and `first` is a writable `c_int`.
                self.guarded("eureka_raise", || unsafe {
                    raise(self.this, &mut first, &mut why)
                })
            }
            None => NEXT,
        };
        self.eureka_outcome(code, [DONE; 2], &why)?;
        Ok(first != 0)
    }

    fn is_found(&self) -> Result<bool, Error> {
        let mut why = Why::new();
        let code = match self.table.eureka_test {
            Some(test) => {
                // SAFETY: `this` is valid until `Inner::drop` calls `free`.
                self.guarded("eureka_test", || unsafe { test(self.this, &mut why) })
            }
            None => NEXT,
        };
        self.eureka_outcome(code, [DONE, PENDING], &why)
    }

    fn end(&self) -> Result<(), Error> {
        let mut why = Why::new();
        let code = match self.table.eureka_end {
            Some(end) => {
                // SAFETY: `this` is valid until `Inner::drop` calls `free`.
                self.guarded("eureka_end", || unsafe { end(self.this, &mut why) })
            }
            None => NEXT,
        };
        self.eureka_outcome(code, [DONE; 2], &why).map(|_| ())
    }
}
