//! The shared file pointer (MPI 5.0, section 14.4.4): a 64-bit integer in a window at rank 0.
//! All members update it by atomic operations.
//!
//! The pointer is in units of etypes and uses no object in the file system.
//!
//! One passive epoch without locks (`MPI_MODE_NOCHECK`) lasts from opening the file to closing it.
//! Each access is one atomic operation and needs no lock.
//! A rank that is descheduled while it holds a lock would also delay all other ranks.
#![allow(unsafe_code)]

use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};
use crate::op::{Op, Predefined};
use crate::osc::{Assert, Flavor, Hints, Spec, TargetArgs, Win};

#[derive(Clone)]
pub struct SharedPointer(Win);

impl SharedPointer {
    /// Creates the pointer with value 0, in a window on the file's communicator; collective.
    /// Other members may use the pointer only after they know that rank 0's call has returned.
    pub fn new(comm: &Comm) -> Result<SharedPointer, Error> {
        let mine = comm.rank() == 0;
        let spec = Spec {
            flavor: Flavor::Allocate,
            base: std::ptr::null_mut(),
            size: if mine { 8 } else { 0 },
            unit: 8,
            hints: Hints::default(),
        };
        let win = Win::on(comm, &spec)?;
        if mine {
            // SAFETY: the window has 8 bytes, aligned to 64, and no member accesses it yet.
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
        // SAFETY: both are locals that live until the flush below has completed the access.
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
        // Flush also after an error: a reply must not arrive after the locals are out of scope.
        self.0.passive().flush(0)?;
        done?;
        Ok(before)
    }

    /// Adds `etypes` to the pointer. Returns its old value.
    pub fn add(&self, etypes: i64) -> Result<i64, Error> {
        self.apply(etypes, Predefined::Sum)
    }

    pub fn get(&self) -> Result<i64, Error> {
        self.apply(0, Predefined::NoOp)
    }

    pub fn set(&self, etypes: i64) -> Result<(), Error> {
        self.apply(etypes, Predefined::Replace).map(drop)
    }

    /// Frees the window of the pointer; collective. The members have agreed after their last accesses.
    pub fn free(&self) -> Result<(), Error> {
        let ended = self.0.passive().unlock_all();
        // If a member is dead, the unlock may fail because accesses to it are lost; this is ignored.
        let ended = if self.0.is_broken() { Ok(()) } else { ended };
        self.0.free_after_agreement().and(ended)
    }

    /// Abandons the pointer's window; in a fault-tolerant job, this process participates in its free.
    pub fn abandon(self) {
        self.0.abandon();
    }
}
