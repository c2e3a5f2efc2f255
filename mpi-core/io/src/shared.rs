//! The shared file pointer (MPI 5.0, section 14.4.4): a word at rank 0 in a window, which all members update by atomic operations.
//!
//! It counts etypes. It needs nothing in the file system.
//!
//! One passive epoch without locks (`MPI_MODE_NOCHECK`) lasts from opening to closing the file: each access is a single atomic operation,
//! so a lock would protect nothing, and a rank that is descheduled while it holds one would delay all others.
#![allow(unsafe_code)]

use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};
use crate::op::{Op, Predefined};
use crate::osc::{Assert, Flavor, Hints, Spec, TargetArgs, Win};

#[derive(Clone)]
pub struct SharedPointer(Win);

impl SharedPointer {
    /// Creates the pointer with value zero; collective. A member other than rank 0 may use it only after it knows that rank 0 has returned.
    pub fn new(comm: &Comm) -> Result<SharedPointer, Error> {
        let mine = comm.rank() == 0;
        let spec = Spec {
            flavor: Flavor::Allocate,
            base: std::ptr::null_mut(),
            size: if mine { 8 } else { 0 },
            unit: 8,
            hints: Hints::default(),
        };
        let win = Win::new(comm, &spec)?;
        if mine {
            // SAFETY: the window's memory has eight bytes, aligned to 64, and no member accesses it yet.
            unsafe { win.memory().base().cast::<i64>().write(0) };
        }
        let nocheck = Assert {
            nocheck: true,
            ..Assert::default()
        };
        if let Err(error) = win.passive().lock_all(nocheck) {
            win.abandon();
            return Err(error);
        }
        Ok(SharedPointer(win))
    }

    fn apply(&self, operand: i64, op: Predefined) -> Result<i64, Error> {
        let (mut before, int) = (0i64, Datatype::from(Named::INT64));
        // SAFETY: both are locals that outlive the access, which ends with the flush below.
        let (from, mut to) = unsafe {
            (
                SendBuf::new(std::ptr::from_ref(&operand).cast(), 1, int.clone()),
                RecvBuf::new(std::ptr::from_mut(&mut before).cast(), 1, int.clone()),
            )
        };
        let there = TargetArgs {
            rank: 0,
            disp: 0,
            count: 1,
            datatype: &int,
        };
        let done = self
            .0
            .accumulates()
            .fetch_and_op(&from, &mut to, there, &Op::from(op));
        // Also after an error: no reply may arrive after the locals have gone out of scope.
        self.0.passive().flush(0)?;
        done?;
        Ok(before)
    }

    /// Adds to the pointer. Returns its old value.
    pub fn add(&self, etypes: i64) -> Result<i64, Error> {
        self.apply(etypes, Predefined::Sum)
    }

    pub fn get(&self) -> Result<i64, Error> {
        self.apply(0, Predefined::NoOp)
    }

    pub fn set(&self, etypes: i64) -> Result<(), Error> {
        self.apply(etypes, Predefined::Replace).map(drop)
    }

    /// Frees the pointer; collective.
    pub fn free(&self) -> Result<(), Error> {
        let ended = self.0.passive().unlock_all();
        // Accesses to dead members are lost.
        let ended = if self.0.is_broken() { Ok(()) } else { ended };
        self.0.free().and(ended)
    }

    /// Discards the pointer; in a fault-tolerant run this process joins in its collective end.
    pub fn abandon(self) {
        self.0.abandon();
    }
}
