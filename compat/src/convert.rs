//! Conversion of strings, handles, arrays and return codes between the program and the backend.
#![allow(unsafe_code)]

pub use crate::status::{
    BLANK, StatusGiven, StatusOut, load, status_given, status_to_program, store,
};

pub use crate::family::of;

use crate::family::of::HandleType;
use crate::family::{Family, Kind, LAST_CODE, Word};
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Converts the backend's return code for the program.
#[inline(always)]
pub fn code_out<F: Family>(code: c_int) -> c_int {
    if code == 0 { 0 } else { failed::<F>(code) }
}

#[cold]
#[inline(never)]
fn failed<F: Family>(code: c_int) -> c_int {
    F::word_out(Word::Error, code)
}

/// Converts the displacement of a file view to the backend's ABI.
/// A value that is `MPI_DISPLACEMENT_CURRENT` only in the backend becomes an invalid displacement.
pub fn displacement_in<F: Family>(displacement: i64) -> i64 {
    match displacement {
        here if here == F::DISPLACEMENT_CURRENT => F::BELOW_DISPLACEMENT_CURRENT,
        there if there == F::BELOW_DISPLACEMENT_CURRENT => i64::MIN + 1,
        other => other,
    }
}

/// Converts an error code that a program has added from another ABI to the standard ABI.
/// `theirs` is the last predefined error code of the other ABI.
pub fn added_in(code: c_int, theirs: c_int) -> c_int {
    match code.checked_sub(theirs) {
        Some(above) if above > 0 => LAST_CODE.saturating_add(above),
        // A code that the other ABI does not define is negated. [`added_out`] restores it.
        _ if code > 0 => -code,
        _ => crate::family::INVALID,
    }
}

pub fn added_out(code: c_int, theirs: c_int) -> c_int {
    match code.checked_sub(LAST_CODE) {
        Some(above) if above > 0 => theirs.saturating_add(above),
        _ if code < 0 && code != crate::family::INVALID => -code,
        _ => code,
    }
}

/// An error class n of the standard that the backend lacks is passed as the code `OWN_CODES - n`.
/// All error codes of MPI libraries are larger than these codes.
const OWN_CODES: c_int = -0x0100_0000;

/// Converts an error class of the standard to a code outside the range of every library.
pub fn own_class_in(class: c_int) -> c_int {
    OWN_CODES - class
}

pub fn own_class_out(code: c_int) -> Option<c_int> {
    (OWN_CODES - LAST_CODE..=OWN_CODES)
        .contains(&code)
        .then(|| OWN_CODES - code)
}

/// Maximum length of strings in the standard, in bytes (`MPI_MAX_LIBRARY_VERSION_STRING`).
const LONGEST: usize = 8192;

/// A string output argument, truncated to the program's buffer.
pub struct TextOut {
    text: MaybeUninit<[u8; LONGEST]>,
    length: c_int,
    limit: usize,
    place: *mut c_char,
}

impl TextOut {
    pub fn new(limit: usize, place: *mut c_char) -> Self {
        let mut text = MaybeUninit::<[u8; LONGEST]>::uninit();
        // SAFETY: the first byte is within the array.
        // The write makes the string empty if the backend's function writes none.
        unsafe { text.as_mut_ptr().cast::<u8>().write(0) };
        TextOut {
            text,
            length: 0,
            limit,
            place,
        }
    }

    pub fn argument(&mut self) -> *mut c_char {
        match self.place.is_null() {
            true => std::ptr::null_mut(),
            false => self.text.as_mut_ptr().cast(),
        }
    }

    pub fn length_argument(&mut self) -> *mut c_int {
        &raw mut self.length
    }

    /// # Safety
    /// The backend's function has written a zero-terminated string.
    /// `length` is null or an output argument of the program.
    pub unsafe fn finish(&self, length: *mut c_int) {
        if self.place.is_null() {
            return;
        }
        let from = self.text.as_ptr().cast::<u8>();
        // SAFETY: the call has written a zero-terminated string, by contract.
        // The limit of the string does not exceed the array.
        let full = unsafe { libc::strlen(from.cast()) };
        let kept = full.min(self.limit.saturating_sub(1));
        // SAFETY: the program's buffer has `limit` bytes, as its ABI's constant requires.
        unsafe {
            std::ptr::copy_nonoverlapping(from, self.place.cast(), kept);
            self.place.add(kept).write(0);
        }
        if !length.is_null() {
            // SAFETY: this is an output argument of the program, by contract.
            unsafe { length.write(c_int::try_from(kept).unwrap_or(c_int::MAX)) };
        }
    }
}

/// A handle output argument. On drop, the backend's handle is converted for the program.
/// The drop also runs when an exception unwinds through the call.
pub struct HandleOut<F: Family, T: HandleType> {
    made: F::Below,
    place: *mut F::Handle,
    of: PhantomData<T>,
}

impl<F: Family, T: HandleType> HandleOut<F, T> {
    /// True if handles have the same size in both ABIs.
    /// Then the backend writes to the program's variable, where the handle is converted.
    const IN_PLACE: bool = size_of::<F::Below>() == size_of::<F::Handle>();

    /// # Safety
    /// `place` is null or points to a handle variable of the program.
    #[inline(always)]
    pub unsafe fn new(place: *mut F::Handle) -> Self {
        HandleOut {
            made: F::null(T::KIND),
            place,
            of: PhantomData,
        }
    }

    #[inline(always)]
    pub fn argument(&mut self) -> *mut F::Below {
        match (Self::IN_PLACE, self.place.is_null()) {
            (true, _) => self.place.cast(),
            (false, true) => std::ptr::null_mut(),
            (false, false) => &raw mut self.made,
        }
    }
}

impl<F: Family, T: HandleType> Drop for HandleOut<F, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.place.is_null() {
            return;
        }
        let made = match Self::IN_PLACE {
            // SAFETY: `place` points to a handle variable of the program, by contract of `new`.
            // After a failed call it holds the program's old value.
            true => unsafe { self.place.cast::<F::Below>().read() },
            false => self.made,
        };
        // SAFETY: `place` points to a handle variable of the program, by contract of `new`.
        unsafe { self.place.write(F::handle_out(T::KIND, made)) };
    }
}

/// An in-out handle argument, such as a request. On drop, the new handle is stored for the program.
pub struct HandleInOut<F: Family, T: HandleType> {
    now: F::Below,
    before: F::Below,
    place: *mut F::Handle,
    of: PhantomData<T>,
}

impl<F: Family, T: HandleType> HandleInOut<F, T> {
    /// # Safety
    /// `place` is null or points to a handle variable of the program.
    #[inline(always)]
    pub unsafe fn new(place: *mut F::Handle) -> Self {
        let now = match place.is_null() {
            true => F::null(T::KIND),
            // SAFETY: `place` points to a handle variable of the program, by the contract.
            false => F::handle_in(T::KIND, unsafe { place.read() }),
        };
        HandleInOut {
            now,
            before: now,
            place,
            of: PhantomData,
        }
    }

    #[inline(always)]
    pub fn argument(&mut self) -> *mut F::Below {
        match self.place.is_null() {
            true => std::ptr::null_mut(),
            false => &raw mut self.now,
        }
    }
}

impl<F: Family, T: HandleType> Drop for HandleInOut<F, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.place.is_null() {
            return;
        }
        // SAFETY: `place` points to a handle variable of the program, by contract of `new`.
        unsafe { self.place.write(F::handle_out(T::KIND, self.now)) };
        if matches!(T::KIND, Kind::Request) && self.now != self.before {
            F::request_left(self.before);
        }
    }
}

/// A file handle that a function writes, and may read. On drop, it is stored for the program.
pub struct FileOut<F: Family> {
    file: usize,
    place: *mut usize,
    family: PhantomData<F>,
}

impl<F: Family> FileOut<F> {
    /// # Safety
    /// `place` is null or points to a file variable of the program, which is read if `is_read`.
    #[inline(always)]
    pub unsafe fn new(place: *mut usize, is_read: bool) -> Self {
        let file = match is_read && !place.is_null() {
            // SAFETY: `place` points to a file variable of the program, by the contract.
            true => F::file_in(unsafe { place.read() }),
            false => F::no_file(),
        };
        FileOut {
            file,
            place,
            family: PhantomData,
        }
    }

    #[inline(always)]
    pub fn argument(&mut self) -> *mut usize {
        match self.place.is_null() {
            true => std::ptr::null_mut(),
            false => &raw mut self.file,
        }
    }
}

impl<F: Family> Drop for FileOut<F> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.place.is_null() {
            // SAFETY: `place` points to a file variable of the program, by contract of `new`.
            unsafe { self.place.write(F::file_out(self.file)) };
        }
    }
}

/// Converts an output constant of kind `word`, which the backend has stored, for the program.
///
/// # Safety
/// `place` is null or points to an `int` of the program.
#[inline(always)]
pub unsafe fn word_to_program<F: Family>(word: Word, place: *mut c_int) {
    if place.is_null() {
        return;
    }
    // SAFETY: `place` points to an `int` of the program, by contract.
    unsafe { place.write(F::word_out(word, place.read())) }
}

/// Maximum number of elements of an array on the stack. Longer arrays are allocated.
/// The value exceeds 8, because the compiler unrolls loops of at most 8 iterations.
/// An unrolled loop would move 8 elements through registers, even for a call with 2 requests.
const SHORT: usize = 16;

/// Stack memory for the elements of an [`Array`].
/// The memory is a local variable of its own, so that the optimizer keeps the array's other fields
/// in registers: a function that gets the address of a field may change the whole variable.
pub struct ShortArray<T>([MaybeUninit<T>; SHORT]);

impl<T: Copy> ShortArray<T> {
    #[inline(always)]
    pub fn new() -> Self {
        ShortArray([const { MaybeUninit::uninit() }; SHORT])
    }
}

impl<T: Copy> Default for ShortArray<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// An array argument with elements of the backend's ABI, valid during a call.
pub struct Array<'a, T: Copy> {
    /// The elements, or null if the program passed no array.
    elements: *mut T,
    length: usize,
    short: PhantomData<&'a mut ShortArray<T>>,
}

impl<'a, T: Copy> Array<'a, T> {
    /// Returns the argument for an array that the program did not pass: null.
    #[inline(always)]
    pub fn empty() -> Self {
        Array {
            elements: std::ptr::null_mut(),
            length: 0,
            short: PhantomData,
        }
    }

    /// Stores `make(i)` for i from 0 to `length - 1`. Returns the empty array if `is_null`.
    #[inline(always)]
    pub fn new(
        short: &'a mut ShortArray<T>,
        is_null: bool,
        length: c_int,
        make: impl Fn(usize) -> T,
    ) -> Self {
        if is_null {
            return Self::empty();
        }
        let length = usize::try_from(length).unwrap_or(0);
        let elements: *mut T = match length <= SHORT {
            true => short.0.as_mut_ptr().cast(),
            false => allocated(length),
        };
        for i in 0..length {
            // SAFETY: `i < length`, and the memory has `length` elements.
            // The memory is the stack array for up to [`SHORT`] elements, otherwise the allocation.
            unsafe { elements.add(i).write(make(i)) };
        }
        Array {
            elements,
            length,
            short: PhantomData,
        }
    }

    #[inline(always)]
    pub fn elements(&self) -> &[T] {
        match self.elements.is_null() {
            true => &[],
            // SAFETY: `new` has written `length` elements, and the memory is borrowed for `'a`.
            false => unsafe { std::slice::from_raw_parts(self.elements, self.length) },
        }
    }

    #[inline(always)]
    pub fn argument(&self) -> *const T {
        self.elements
    }

    #[inline(always)]
    pub fn argument_mut(&mut self) -> *mut T {
        self.elements
    }
}

impl<T: Copy> Drop for Array<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.length > SHORT {
            free(self.elements, self.length);
        }
    }
}

#[cold]
#[inline(never)]
fn allocated<T: Copy>(length: usize) -> *mut T {
    Box::into_raw(Box::<[T]>::new_uninit_slice(length)).cast()
}

#[cold]
#[inline(never)]
fn free<T: Copy>(elements: *mut T, length: usize) {
    let slice = std::ptr::slice_from_raw_parts_mut(elements.cast::<MaybeUninit<T>>(), length);
    // SAFETY: `allocated` returned the pointer for this length, and `drop` runs once.
    drop(unsafe { Box::from_raw(slice) });
}

/// Converts an input array of integer constants of kind `word` to the backend's ABI.
///
/// # Safety
/// `words` is null or has `length` elements.
pub unsafe fn words_in<F: Family>(
    short: &mut ShortArray<c_int>,
    word: Word,
    words: *const c_int,
    length: c_int,
) -> Array<'_, c_int> {
    Array::new(short, words.is_null(), length, |i| {
        // SAFETY: `i < length`, and the contract says that the array has `length` elements.
        F::word_in(word, unsafe { words.add(i).read() })
    })
}

/// Converts an output array of integer constants of kind `word` to the program's ABI, in place.
///
/// # Safety
/// `words` is null or has `length` elements.
pub unsafe fn words_out<F: Family>(word: Word, words: *mut c_int, length: c_int) {
    if words.is_null() {
        return;
    }
    for i in 0..usize::try_from(length).unwrap_or(0) {
        // SAFETY: `i < length`, and the contract says that the array has `length` elements.
        unsafe { words.add(i).write(F::word_out(word, words.add(i).read())) };
    }
}

/// Converts an input array of handles to the backend's ABI.
///
/// # Safety
/// `handles` is null or has `length` elements.
#[inline(always)]
pub unsafe fn handles_in<F: Family>(
    short: &mut ShortArray<F::Below>,
    kind: Kind,
    handles: *const F::Handle,
    length: c_int,
) -> Array<'_, F::Below> {
    Array::new(short, handles.is_null(), length, |i| {
        // SAFETY: `i < length`, and the contract says that the array has `length` elements.
        F::handle_in(kind, unsafe { handles.add(i).read_unaligned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_arrays_are_on_the_stack_and_longer_ones_are_allocated() {
        for length in [0, 1, 16, 17, 1000] {
            let mut short = ShortArray::new();
            let place = (&raw const short).cast::<u64>();
            let array = Array::new(&mut short, false, length, |i| i as u64 * 3);
            let wanted: Vec<u64> = (0..length as u64).map(|i| i * 3).collect();
            assert_eq!(array.elements(), wanted);
            assert_eq!(array.argument() == place, length <= 16, "{length}");
        }
    }

    #[test]
    fn where_the_program_gave_no_array_there_is_none() {
        for (is_null, length) in [(true, 5), (true, -1), (false, -1)] {
            let mut short = ShortArray::<u64>::new();
            let mut array = Array::new(&mut short, is_null, length, |_| 7);
            assert_eq!(array.argument_mut().is_null(), is_null);
            assert!(array.elements().is_empty());
        }
    }
}
