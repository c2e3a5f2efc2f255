//! A plugin's eureka line as the engine's [`EurekaLine`].
#![allow(unsafe_code)]

use super::abi::{DONE, NEXT, PENDING, Why};
use super::adapter::Inner;
use crate::{CollError, Error, EurekaLine};
use std::ffi::c_int;

impl Inner {
    /// Whether the plugin has all four functions.
    pub(super) fn has_line(&self) -> bool {
        let table = &self.table;
        table.eureka_begin.is_some()
            && table.eureka_raise.is_some()
            && table.eureka_test.is_some()
            && table.eureka_end.is_some()
    }

    /// What a function answered, if that is one of these two.
    fn said(&self, code: c_int, [yes, no]: [c_int; 2], why: &Why) -> Result<bool, Error> {
        if code == yes || code == no {
            return Ok(code == yes);
        }
        // A member has died: that is what the program hears, and not what the component makes of it.
        self.seat.usable()?;
        Err(CollError::Eureka {
            component: self.plugin.name.into(),
            comm: self.seat.name().to_string_lossy().into_owned(),
            reason: why.sentence(),
        }
        .into())
    }
}

impl EurekaLine for Inner {
    fn begin(&self) -> Result<bool, Error> {
        let mut why = Why::new();
        let code = match self.table.eureka_begin {
            // SAFETY: the module has not been freed.
            Some(begin) => unsafe { begin(self.this, &mut why) },
            None => NEXT,
        };
        self.said(code, [DONE, NEXT], &why)
    }

    fn raise(&self) -> Result<bool, Error> {
        let (mut why, mut first) = (Why::new(), 0);
        let code = match self.table.eureka_raise {
            // SAFETY: as above, and `first` is a place for the answer.
            Some(raise) => unsafe { raise(self.this, &mut first, &mut why) },
            None => NEXT,
        };
        self.said(code, [DONE; 2], &why)?;
        Ok(first != 0)
    }

    fn is_found(&self) -> Result<bool, Error> {
        let mut why = Why::new();
        let code = match self.table.eureka_test {
            // SAFETY: as above.
            Some(test) => unsafe { test(self.this, &mut why) },
            None => NEXT,
        };
        self.said(code, [DONE, PENDING], &why)
    }

    fn end(&self) -> Result<(), Error> {
        let mut why = Why::new();
        let code = match self.table.eureka_end {
            // SAFETY: as above.
            Some(end) => unsafe { end(self.this, &mut why) },
            None => NEXT,
        };
        self.said(code, [DONE; 2], &why).map(|_| ())
    }
}
