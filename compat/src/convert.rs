//! Arguments that are more than one word: texts, arrays, and the code that a call returns.
#![allow(unsafe_code)]

pub use crate::status::{
    BLANK, StatusGiven, StatusOut, load, status_given, status_to_program, store,
};

use crate::family::{Family, Kind, LAST_CODE, Word};
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The code that the program sees.
#[inline(always)]
pub fn code_out<F: Family>(code: c_int) -> c_int {
    if code == 0 { 0 } else { failed::<F>(code) }
}

#[cold]
#[inline(never)]
fn failed<F: Family>(code: c_int) -> c_int {
    F::word_out(Word::Error, code)
}

/// A displacement of a file view; the constant of the other side is none here.
pub fn displacement_in<F: Family>(displacement: i64) -> i64 {
    match displacement {
        here if here == F::DISPLACEMENT_CURRENT => F::BELOW_DISPLACEMENT_CURRENT,
        there if there == F::BELOW_DISPLACEMENT_CURRENT => i64::MIN + 1,
        other => other,
    }
}

/// The codes that programs add, between the standard's and those of a family whose last code is `theirs`.
pub fn added_in(code: c_int, theirs: c_int) -> c_int {
    match code.checked_sub(theirs) {
        Some(above) if above > 0 => LAST_CODE.saturating_add(above),
        // No code of either library; it comes back as it went in, as from the error field of a status.
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

/// Where the codes of classes begin that the library below does not have; every library's codes are above.
const OWN_CODES: c_int = -0x0100_0000;

/// A class of the standard as a code that no library gives out, and back.
pub fn own_class_in(class: c_int) -> c_int {
    OWN_CODES - class
}

pub fn own_class_out(code: c_int) -> Option<c_int> {
    (OWN_CODES - LAST_CODE..=OWN_CODES)
        .contains(&code)
        .then(|| OWN_CODES - code)
}

/// The longest string of the standard whose length is a constant.
const LONGEST: usize = 8192;

/// A string that a call writes, cut to what the program's buffer holds.
pub struct TextOut {
    text: MaybeUninit<[u8; LONGEST]>,
    length: c_int,
    limit: usize,
    place: *mut c_char,
}

impl TextOut {
    pub fn new(limit: usize, place: *mut c_char) -> Self {
        let mut text = MaybeUninit::<[u8; LONGEST]>::uninit();
        // SAFETY: within the array; an empty string, should the call write none.
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
    /// The call wrote a string that ends, and `length` is null or an output argument of the program.
    pub unsafe fn finish(&self, length: *mut c_int) {
        if self.place.is_null() {
            return;
        }
        let from = self.text.as_ptr().cast::<u8>();
        // SAFETY: the call wrote a string that ends within the array.
        let full = unsafe { libc::strlen(from.cast()) };
        let kept = full.min(self.limit.saturating_sub(1));
        // SAFETY: the program's buffer has as many bytes as its constant says.
        unsafe {
            std::ptr::copy_nonoverlapping(from, self.place.cast(), kept);
            self.place.add(kept).write(0);
        }
        if !length.is_null() {
            // SAFETY: an output argument of the program.
            unsafe { length.write(c_int::try_from(kept).unwrap_or(c_int::MAX)) };
        }
    }
}

/// One handle that a call makes, where the program wants it.
pub struct HandleOut<F: Family> {
    made: F::Below,
    place: *mut F::Handle,
}

impl<F: Family> HandleOut<F> {
    /// Whether the library below can write where the program reads.
    const IN_PLACE: bool = size_of::<F::Below>() == size_of::<F::Handle>();

    #[inline(always)]
    pub fn new(kind: Kind, place: *mut F::Handle) -> Self {
        HandleOut {
            made: F::null(kind),
            place,
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

    /// # Safety
    /// The place is null or a handle of the program.
    #[inline(always)]
    pub unsafe fn finish(self, kind: Kind) {
        if self.place.is_null() {
            return;
        }
        let made = match Self::IN_PLACE {
            // SAFETY: as the caller says; a call that failed has left what the program had there, which is no handle below.
            true => unsafe { self.place.cast::<F::Below>().read() },
            false => self.made,
        };
        // SAFETY: as above.
        unsafe { self.place.write(F::handle_out(kind, made)) };
    }
}

/// A word that a call wrote where the program wants it.
///
/// # Safety
/// The place is null or a word of the program.
#[inline(always)]
pub unsafe fn word_to_program<F: Family>(word: Word, place: *mut c_int) {
    if place.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    unsafe { place.write(F::word_out(word, place.read())) }
}

/// How many elements an array has on the stack; longer ones are allocated. More than eight: loops of at most eight steps the compiler
/// unrolls, with each element in a register of its own, and a call of two requests then moves eight.
const SHORT: usize = 16;

/// Room on the stack for the elements of an [`Array`]. It is apart from all else, since a call that is given the address of a part
/// may change the whole, as far as the compiler can tell.
pub struct Room<T>([MaybeUninit<T>; SHORT]);

impl<T: Copy> Room<T> {
    #[inline(always)]
    pub fn new() -> Self {
        Room([const { MaybeUninit::uninit() }; SHORT])
    }
}

impl<T: Copy> Default for Room<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Elements for the length of a call.
pub struct Array<'a, T: Copy> {
    /// Null where the program gave no array.
    elements: *mut T,
    length: usize,
    room: PhantomData<&'a mut Room<T>>,
}

impl<'a, T: Copy> Array<'a, T> {
    /// What the program gives no array for.
    #[inline(always)]
    pub fn empty() -> Self {
        Array {
            elements: std::ptr::null_mut(),
            length: 0,
            room: PhantomData,
        }
    }

    /// `length` elements, each made by its index; none where the program gave no array.
    #[inline(always)]
    pub fn new(
        room: &'a mut Room<T>,
        is_null: bool,
        length: c_int,
        make: impl Fn(usize) -> T,
    ) -> Self {
        if is_null {
            return Self::empty();
        }
        let length = usize::try_from(length).unwrap_or(0);
        let elements: *mut T = match length <= SHORT {
            true => room.0.as_mut_ptr().cast(),
            false => allocated(length),
        };
        for i in 0..length {
            // SAFETY: there is room for that many.
            unsafe { elements.add(i).write(make(i)) };
        }
        Array {
            elements,
            length,
            room: PhantomData,
        }
    }

    #[inline(always)]
    pub fn elements(&self) -> &[T] {
        match self.elements.is_null() {
            true => &[],
            // SAFETY: that many were written.
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
    // SAFETY: the box of `allocated`.
    drop(unsafe { Box::from_raw(slice) });
}

/// Words of the program that a call reads.
///
/// # Safety
/// `words` is null or has `length` elements.
pub unsafe fn words_in<F: Family>(
    room: &mut Room<c_int>,
    word: Word,
    words: *const c_int,
    length: c_int,
) -> Array<'_, c_int> {
    Array::new(room, words.is_null(), length, |i| {
        // SAFETY: the caller's array has that many.
        F::word_in(word, unsafe { words.add(i).read() })
    })
}

/// Words that a call wrote, where they lie.
///
/// # Safety
/// `words` is null or has `length` elements.
pub unsafe fn words_out<F: Family>(word: Word, words: *mut c_int, length: c_int) {
    if words.is_null() {
        return;
    }
    for i in 0..usize::try_from(length).unwrap_or(0) {
        // SAFETY: the caller's array has that many.
        unsafe { words.add(i).write(F::word_out(word, words.add(i).read())) };
    }
}

/// Handles of the program that a call reads.
///
/// # Safety
/// `handles` is null or has `length` elements.
#[inline(always)]
pub unsafe fn handles_in<F: Family>(
    room: &mut Room<F::Below>,
    kind: Kind,
    handles: *const F::Handle,
    length: c_int,
) -> Array<'_, F::Below> {
    Array::new(room, handles.is_null(), length, |i| {
        // SAFETY: the caller's array has that many.
        F::handle_in(kind, unsafe { handles.add(i).read_unaligned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_arrays_are_on_the_stack_and_longer_ones_are_allocated() {
        for length in [0, 1, 16, 17, 1000] {
            let mut room = Room::new();
            let place = (&raw const room).cast::<u64>();
            let array = Array::new(&mut room, false, length, |i| i as u64 * 3);
            let wanted: Vec<u64> = (0..length as u64).map(|i| i * 3).collect();
            assert_eq!(array.elements(), wanted);
            assert_eq!(array.argument() == place, length <= 16, "{length}");
        }
    }

    #[test]
    fn where_the_program_gave_no_array_there_is_none() {
        for (is_null, length) in [(true, 5), (true, -1), (false, -1)] {
            let mut room = Room::<u64>::new();
            let mut array = Array::new(&mut room, is_null, length, |_| 7);
            assert_eq!(array.argument_mut().is_null(), is_null);
            assert!(array.elements().is_empty());
        }
    }
}
