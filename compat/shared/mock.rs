//! What the tests that a mock library checks have in common: what arrived below, and memory that is nothing but an address.

use compat::below::SLOTS;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

thread_local! {
    static SEEN: RefCell<[u64; 64]> = const { RefCell::new([0; 64]) };
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

static SCRATCH: [u64; 64] = [0; 64];

/// Puts a mock into the slot of a function.
pub fn begin(slot: usize, mock: *mut c_void) {
    SEEN.with_borrow_mut(|seen| *seen = [0xdead; 64]);
    CALLED.set(false);
    SLOTS[slot].store(mock, Ordering::Relaxed);
}

pub fn arrived() {
    CALLED.set(true);
}

pub fn called() -> bool {
    CALLED.get()
}

/// Notes what arrived as an argument.
pub fn see(argument: usize, value: u64) {
    SEEN.with_borrow_mut(|seen| seen[argument] = value);
}

pub fn seen(argument: usize) -> u64 {
    SEEN.with_borrow(|seen| seen[argument])
}

/// An address for an argument, which nothing reads or writes.
pub fn scratch(argument: usize) -> *mut u64 {
    (&raw const SCRATCH[argument]).cast_mut()
}

/// Constants of one side that are addresses.
pub struct Constants {
    pub in_place: usize,
    pub unweighted: usize,
    pub all_handles: usize,
    pub displacement_current: i64,
}

impl Constants {
    pub fn in_place(&self) -> usize {
        self.in_place
    }
    pub fn unweighted(&self) -> usize {
        self.unweighted
    }
    pub fn all_handles(&self) -> usize {
        self.all_handles
    }
    pub fn displacement_current(&self) -> i64 {
        self.displacement_current
    }
}

/// Those of the standard ABI.
pub const STANDARD: Constants = Constants {
    in_place: 1,
    unweighted: 10,
    all_handles: 1,
    displacement_current: -1,
};
