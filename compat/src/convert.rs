//! Arguments that are more than one word: texts, arrays, and the code that a call returns.
#![allow(unsafe_code)]

pub use crate::status::{
    BLANK, StatusGiven, StatusOut, load, status_given, status_to_program, store,
};

use crate::family::{Family, Kind, LAST_CODE, Word};
use std::ffi::{c_char, c_int};
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

/// How many elements an array has on the stack; longer ones are allocated. More than eight: loops of at most eight steps the compiler
/// unrolls, with each element in a register of its own, and a call of two requests then moves eight.
const SHORT: usize = 16;

/// Elements for the length of a call.
pub struct Array<T: Copy> {
    short: [MaybeUninit<T>; SHORT],
    long: Vec<T>,
    length: usize,
    is_null: bool,
}

impl<T: Copy> Array<T> {
    /// What the program gives no array for.
    #[inline(always)]
    pub fn empty() -> Self {
        Array {
            short: [const { MaybeUninit::uninit() }; SHORT],
            long: Vec::new(),
            length: 0,
            is_null: true,
        }
    }

    /// `length` elements, each made by its index; none where the program gave no array.
    #[inline(always)]
    pub fn new(is_null: bool, length: c_int, make: impl Fn(usize) -> T) -> Self {
        let mut array = Self::empty();
        if !is_null {
            array.fill(length, make);
        }
        array
    }

    /// The same where the array lies, since moving one costs more than a short one's elements.
    #[inline(always)]
    pub fn fill(&mut self, length: c_int, make: impl Fn(usize) -> T) {
        self.is_null = false;
        self.length = usize::try_from(length).unwrap_or(0);
        match self.short.get_mut(..self.length) {
            Some(short) => {
                for (i, element) in short.iter_mut().enumerate() {
                    element.write(make(i));
                }
            }
            None => self.long = (0..self.length).map(make).collect(),
        }
    }

    #[inline]
    pub fn elements(&self) -> &[T] {
        if self.length <= SHORT {
            // SAFETY: that many were written.
            unsafe { std::slice::from_raw_parts(self.short.as_ptr().cast(), self.length) }
        } else {
            &self.long
        }
    }

    #[inline]
    pub fn argument(&self) -> *const T {
        match self.is_null {
            true => std::ptr::null(),
            false => self.elements().as_ptr(),
        }
    }

    #[inline]
    pub fn argument_mut(&mut self) -> *mut T {
        match (self.is_null, self.length <= SHORT) {
            (true, _) => std::ptr::null_mut(),
            (_, true) => self.short.as_mut_ptr().cast(),
            (_, false) => self.long.as_mut_ptr(),
        }
    }
}

/// Words of the program that a call reads.
///
/// # Safety
/// `words` is null or has `length` elements.
pub unsafe fn words_in<F: Family>(word: Word, words: *const c_int, length: c_int) -> Array<c_int> {
    Array::new(words.is_null(), length, |i| {
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
    kind: Kind,
    handles: *const F::Handle,
    length: c_int,
) -> Array<F::Below> {
    Array::new(handles.is_null(), length, |i| {
        // SAFETY: the caller's array has that many.
        F::handle_in(kind, unsafe { handles.add(i).read_unaligned() })
    })
}
