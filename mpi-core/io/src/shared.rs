//! The shared file pointer (MPI 5.0, section 14.4.4): a word of rank 0 in a window, which all members reach by atomic operations.
//!
//! It counts etypes. Nothing is made in the file system for it.
//!
//! One epoch lasts from opening to closing the file, of all members and without any lock: each access is one atomic operation of its own,
//! so there is nothing that a lock would keep apart, and a rank that loses its core while it holds one would have all others wait.
#![allow(unsafe_code)]

use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};
use crate::op::{Op, Predefined};
use crate::osc::{Assert, Flavor, Hints, Spec, There, Win};

#[derive(Clone)]
pub struct SharedPointer(Win);

impl SharedPointer {
    /// Makes it, at zero; every member calls. A member that is not rank 0 may use it once it knows that rank 0 has returned.
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
            // SAFETY: the window's memory is eight bytes long and aligned, and no member has access to it yet.
            unsafe { win.base().cast::<i64>().write(0) };
        }
        let nocheck = Assert {
            nocheck: true,
            ..Assert::default()
        };
        if let Err(error) = win.lock_all(nocheck) {
            win.abandon();
            return Err(error);
        }
        Ok(SharedPointer(win))
    }

    fn apply(&self, operand: i64, op: Predefined) -> Result<i64, Error> {
        let (mut before, int) = (0i64, Datatype::from(Named::INT64));
        // SAFETY: both are locals that outlive the access, which ends with the flush.
        let (from, mut to) = unsafe {
            (
                SendBuf::new(std::ptr::from_ref(&operand).cast(), 1, int.clone()),
                RecvBuf::new(std::ptr::from_mut(&mut before).cast(), 1, int.clone()),
            )
        };
        let there = There {
            rank: 0,
            disp: 0,
            count: 1,
            datatype: &int,
        };
        let done = self.0.fetch_and_op(&from, &mut to, there, &Op::from(op));
        // Also where it failed: nothing of it may come when the locals are gone.
        self.0.flush(0)?;
        done?;
        Ok(before)
    }

    /// Adds, and says what it was.
    pub fn add(&self, etypes: i64) -> Result<i64, Error> {
        self.apply(etypes, Predefined::Sum)
    }

    pub fn get(&self) -> Result<i64, Error> {
        self.apply(0, Predefined::NoOp)
    }

    pub fn set(&self, etypes: i64) -> Result<(), Error> {
        self.apply(etypes, Predefined::Replace).map(drop)
    }

    /// Ends it; every member calls.
    pub fn free(&self) -> Result<(), Error> {
        let ended = self.0.unlock_all();
        // What was under way to the dead is lost.
        let ended = if self.0.is_broken() { Ok(()) } else { ended };
        self.0.free().and(ended)
    }

    /// Leaves its end to the members that have it.
    pub fn abandon(self) {
        self.0.abandon();
    }
}
