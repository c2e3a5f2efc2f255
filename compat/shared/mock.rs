//! Helpers of the mock tests: recording of the backend's arguments, and addresses to pass.

use compat::backend::{NAMES, SLOTS};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

thread_local! {
    static SEEN: RefCell<[u64; 64]> = const { RefCell::new([0; 64]) };
    static NOTED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static KEPT: RefCell<[usize; 8]> = const { RefCell::new([0; 8]) };
    static CALLED: Cell<bool> = const { Cell::new(false) };
    static ANSWER: Cell<c_int> = const { Cell::new(0) };
    static CHECKED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Calls a function of the library under test, and records that it was checked.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        checked(stringify!($name));
        // SAFETY: each check passes constants, or addresses of local variables or of `SCRATCH`.
        // The arguments have the types of this function.
        unsafe { crate::entries::$name($($argument),*) }
    }};
}

/// Stores functions of the right types in slots of the mock backend.
macro_rules! below {
    ($($name:ident = $mock:expr),* $(,)?) => { $(
        put(compat::backend::slot::$name, [compat::backend::$name::<F>(), $mock][1] as *mut c_void);
    )* };
}

/// Stores a mock in the slot of the function under test, and clears the records.
macro_rules! mock {
    ($name:ident = $mock:expr) => {
        begin(
            compat::backend::slot::$name,
            [compat::backend::$name::<F>(), $mock][1] as *mut c_void,
        )
    };
}

/// Makes a vector of records (`u64`) from integers of any type.
macro_rules! list {
    ($($value:expr),* $(,)?) => { vec![$($value as i64 as u64),*] };
}

/// Appends integers of any type to the list of recorded arguments.
macro_rules! note {
    ($($value:expr),* $(,)?) => {{ $( note($value as i64 as u64); )* }};
}

/// Compares the arguments recorded since the last comparison with the expected ones.
macro_rules! arrives {
    ($name:expr; $($value:expr),* $(,)?) => {
        assert_eq!(noted(), list![$($value),*], "{}: what arrives", $name)
    };
}

/// Records that a function was checked.
pub fn checked(name: &'static str) {
    CHECKED.with_borrow_mut(|checked| checked.insert(name));
}

/// Asserts that this thread has checked all functions in `lists`, and no others.
/// The functions are `total` in number.
/// Together with `left_out`, they are all functions that have a slot.
pub fn assert_checked(lists: [&[&'static str]; 2], left_out: &[&str], total: usize) {
    let there: BTreeSet<&str> = lists.into_iter().flatten().copied().collect();
    let checked = CHECKED.with_borrow(Clone::clone);
    let unchecked: Vec<&&str> = there.difference(&checked).collect();
    assert!(
        unchecked.is_empty(),
        "functions without a check: {unchecked:?}"
    );
    assert_eq!(checked, there, "checks of what is no function");
    assert_eq!(checked.len(), total, "functions with a check");
    let all: BTreeSet<&str> = there.into_iter().chain(left_out.iter().copied()).collect();
    let known = NAMES
        .iter()
        .filter_map(|name| name.to_str().ok()?.strip_prefix('P'));
    assert_eq!(all, known.collect(), "functions with a slot");
}

/// Stores a mock in the slot of a function, and clears earlier records.
pub fn begin(slot: usize, mock: *mut c_void) {
    forget();
    put(slot, mock);
}

/// Clears the records of arguments.
pub fn forget() {
    SEEN.with_borrow_mut(|seen| *seen = [0xdead; 64]);
    NOTED.with_borrow_mut(Vec::clear);
    CALLED.set(false);
}

/// Stores a function in a slot of the backend's table.
pub fn put(slot: usize, function: *mut c_void) {
    SLOTS[slot].store(function, Ordering::Relaxed);
}

pub fn arrived() {
    CALLED.set(true);
}

pub fn called() -> bool {
    CALLED.get()
}

/// Records an argument's value at the index `argument`.
pub fn see(argument: usize, value: u64) {
    SEEN.with_borrow_mut(|seen| seen[argument] = value);
}

pub fn seen(argument: usize) -> u64 {
    SEEN.with_borrow(|seen| seen[argument])
}

/// Appends a value to the list of recorded arguments.
pub fn note(value: u64) {
    NOTED.with_borrow_mut(|noted| noted.push(value));
}

/// Returns the recorded arguments and empties the list.
pub fn noted() -> Vec<u64> {
    NOTED.take()
}

/// Stores an address that the backend has received, such as a callback, at the index `place`.
pub fn keep(place: usize, address: usize) {
    KEPT.with_borrow_mut(|kept| kept[place] = address);
}

pub fn kept(place: usize) -> usize {
    KEPT.with_borrow(|kept| kept[place])
}

/// Sets the return code of the mocks.
pub fn answer_with(code: c_int) {
    ANSWER.set(code);
}

pub fn answer() -> c_int {
    ANSWER.get()
}

static SCRATCH: [u64; 64] = [0; 64];

/// Returns an address to pass as an argument. The address is never accessed.
pub fn scratch(argument: usize) -> *mut u64 {
    (&raw const SCRATCH[argument]).cast_mut()
}

/// Constants of one ABI, most of them addresses.
pub struct Constants {
    pub in_place: usize,
    pub unweighted: usize,
    pub all_handles: usize,
    pub displacement_current: i64,
    pub status_ignore: usize,
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
    pub fn status_ignore(&self) -> usize {
        self.status_ignore
    }
}

/// The constants of the standard ABI.
pub const STANDARD: Constants = Constants {
    in_place: 1,
    unweighted: 10,
    all_handles: 1,
    displacement_current: -1,
    status_ignore: 0,
};
