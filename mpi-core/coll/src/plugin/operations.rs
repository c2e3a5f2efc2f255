//! The operations of a plugin's module: its functions for each collective, and the limits on the calls that they accept.
#![allow(unsafe_code)]

use super::abi::{self, COMMUTATIVE, Dense, Forget, ModuleTable, Operation, PREDEFINED};
use super::args;
use crate::op::Op;
use crate::{Call, CallId, CallSet};
use std::mem::{MaybeUninit, offset_of};

const KINDS: usize = CallId::ALL.len();

/// Maximum number of entries in a module's table.
const MOST: u32 = 1024;
/// Maximum size of an entry in bytes.
const LARGEST: usize = 4096;
/// Minimum size of an entry in bytes: the size in the first version of `plugin.h`.
const LEAST: usize = offset_of!(Operation, dense) + size_of::<usize>();

/// A module's functions for each collective, indexed by [`CallId`].
pub(super) struct Operations {
    all: [Option<Operation>; KINDS],
}

impl Operations {
    /// Reads the entries of a module's table; skips entries for collectives that this library does not know.
    ///
    /// # Safety
    /// `operations` of the table points to `operation_count` entries of `operation_size` bytes each, or is null.
    pub unsafe fn of(table: &ModuleTable) -> Result<Operations, String> {
        let mut read = Operations { all: [None; KINDS] };
        let (count, size) = (table.operation_count, table.operation_size as usize);
        if table.operations.is_null() || count == 0 {
            return Ok(read);
        }
        if count > MOST || !(LEAST..=LARGEST).contains(&size) || size % align_of::<Operation>() != 0
        {
            return Err(format!(
                "its module names {count} operations of {size} bytes each; operation_size is sizeof(portcullis_operation), at least {LEAST}"
            ));
        }
        for number in 0..count as usize {
            // SAFETY: the caller guarantees `count` entries of `size` bytes.
            let entry = unsafe { entry(table.operations.byte_add(number * size), size) };
            if let Some(slot) = read.all.get_mut(entry.operation as usize) {
                slot.get_or_insert(entry);
            }
        }
        Ok(read)
    }

    /// Returns the collectives for which the module has a function.
    pub fn served(&self) -> CallSet {
        let has_function = |call: &CallId| {
            let operation = self.all[*call as usize].as_ref();
            operation
                .is_some_and(|operation| operation.run.is_some() || starts(operation).is_some())
        };
        let served = CallId::ALL.into_iter().filter(has_function);
        served.fold(CallSet::NONE, CallSet::with)
    }

    /// Returns the function that frees the plugin's data for a persistent operation, if there is one.
    pub fn forget(&self, call: CallId) -> Option<Forget> {
        self.all[call as usize]?.forget
    }

    /// Returns the function `dense` for a collective, and the maximum size in bytes of calls that it accepts.
    pub fn dense(&self, call: CallId) -> Option<(usize, Dense)> {
        let operation = self.all[call as usize].as_ref()?;
        let dense = operation.dense.filter(|_| operation.run.is_some())?;
        let limit = match operation.limit {
            0 => usize::MAX,
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        Some((limit, dense))
    }

    /// Returns the functions for a call, if the entry's limit and flags permit the call; all members get the same result.
    pub fn taking(&self, call: &Call) -> Option<&Operation> {
        let operation = self.all[call.id() as usize].as_ref()?;
        let bytes = call.agreed_bytes().map_or(0, |bytes| bytes as u64);
        if operation.limit != 0 && bytes > operation.limit {
            return None;
        }
        let op = args::op(call);
        let refuses = |flag: u32, is: fn(&Op) -> bool| {
            operation.flags & flag != 0 && op.is_some_and(|op| !is(op))
        };
        let is_predefined = |op: &Op| matches!(op, Op::Predefined(_));
        let refused =
            refuses(PREDEFINED, is_predefined) || refuses(COMMUTATIVE, Op::is_commutative);
        (!refused).then_some(operation)
    }
}

/// Copies an entry of `size` bytes; missing fields become zero, and fields that this library does not know are not read.
///
/// # Safety
/// `at` is readable for `size` bytes.
unsafe fn entry(at: *const Operation, size: usize) -> Operation {
    let mut copy = MaybeUninit::<Operation>::zeroed();
    let known = size.min(size_of::<Operation>());
    // SAFETY: source and destination are at least `known` bytes long, and zero is valid in every field: numbers and optional function pointers.
    unsafe {
        std::ptr::copy_nonoverlapping(at.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known);
        copy.assume_init()
    }
}

/// Returns the functions `start` and `test`, if the operation has both.
pub(super) fn starts(operation: &Operation) -> Option<(abi::Start, abi::Test)> {
    operation.start.zip(operation.test)
}
