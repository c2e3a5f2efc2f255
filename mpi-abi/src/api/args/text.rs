//! String arguments.

use super::{Out, null};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use mpi_base::text;
use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;

/// An input string, which ends with NUL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// # Safety
    /// `from` is null or points to a NUL-terminated string that stays unchanged during the call.
    #[inline(always)]
    pub unsafe fn new(from: *const c_char) -> Self {
        Text(from, PhantomData)
    }

    /// Returns the string, or `None` for a null pointer.
    pub fn get(self) -> Option<&'a CStr> {
        // SAFETY: the pointer is not null, so it refers to a C string by the contract of `new`.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }

    /// Returns the string, which must be shorter than `max` bytes. Failures have the class `class`.
    pub fn string(self, max: c_int, class: c_int, name: &str) -> Result<String, Failure> {
        let Some(text) = self.get() else {
            return Err(Failure::new(class, format!("{name} is a null pointer")));
        };
        let len = text.count_bytes();
        if len >= max.unsigned_abs() as usize {
            return Err(Failure::new(
                class,
                format!(
                    "{name} has {len} characters, but at most {} are allowed",
                    max - 1
                ),
            ));
        }
        Ok(text::from_bytes(text.to_bytes()))
    }

    /// Returns an object name, truncated to `MPI_MAX_OBJECT_NAME - 1` bytes (section 7.8).
    pub fn name(self, argument: &str) -> Result<String, Failure> {
        let all = self.get().ok_or_else(|| null(argument))?.to_bytes();
        let most = MPI_MAX_OBJECT_NAME as usize - 1;
        let mut end = all.len().min(most);
        // UTF-8: do not cut within a character, which begins at most three bytes earlier.
        let continues = |at: usize| all.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
        while end > most.saturating_sub(3) && continues(end) {
            end -= 1;
        }
        Ok(text::from_bytes(&all[..end]))
    }
}

/// A list of strings that ends with a null pointer, such as `argv`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Strings<'a>(*const *mut c_char, PhantomData<&'a CStr>);

impl<'a> Strings<'a> {
    /// # Safety
    /// `first` is null, or points to strings as [`Text::new`] requires, followed by a null pointer.
    #[inline(always)]
    pub unsafe fn new(first: *const *mut c_char) -> Self {
        Strings(first, PhantomData)
    }

    /// Returns the strings of the list. A null list, such as `MPI_ARGV_NULL`, is empty.
    pub fn all(self) -> Vec<&'a CStr> {
        let mut all = Vec::new();
        if self.0.is_null() {
            return all;
        }
        // SAFETY: the list ends with a null pointer by the contract of `new`.
        // All elements before this one were not null, so this index is within the list.
        while let Some(text) = unsafe { Text::new(*self.0.add(all.len())) }.get() {
            all.push(text);
        }
        all
    }
}

/// An output buffer for a string, whose size is a constant or an argument.
#[derive(Clone, Copy)]
pub struct TextOut<'a> {
    to: *mut c_char,
    size: usize,
    of: PhantomData<&'a mut c_char>,
}

impl TextOut<'_> {
    /// # Safety
    /// `to` is null or valid for writing `size` bytes during the call.
    #[inline(always)]
    pub unsafe fn new(to: *mut c_char, size: c_int) -> Self {
        TextOut {
            to,
            size: usize::try_from(size).unwrap_or(0),
            of: PhantomData,
        }
    }

    /// Returns an error if the buffer is a null pointer.
    pub fn present(self, name: &str) -> Outcome {
        match self.to.is_null() {
            true => Err(null(name)),
            false => Ok(()),
        }
    }

    /// Stores a string with its NUL, truncated to the buffer. Returns the length without the NUL.
    /// A buffer of size 0 stays unchanged.
    pub fn set(self, text: &str, name: &str) -> Result<c_int, Failure> {
        self.present(name)?;
        let bytes = text::to_bytes(text);
        let kept = bytes.len().min(self.size.saturating_sub(1));
        if self.size > 0 {
            // SAFETY: `to` is valid for `size` bytes by the contract of `new`, and `kept < size`.
            // The source is a string of this library, so source and buffer do not overlap.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), self.to, kept);
                self.to.add(kept).write(0);
            }
        }
        Ok(kept as c_int)
    }

    /// Stores a string as [`TextOut::set`] does, and stores its length in `resultlen`.
    pub fn set_with_length(self, len: Out<'_, c_int>, text: &str, name: &str) -> Outcome {
        let kept = self.set(text, name)?;
        len.set(kept, "resultlen")
    }
}

/// An output buffer for a string, whose size the caller passes by pointer.
/// The call replaces this size with the length of the whole string with its NUL.
#[derive(Clone, Copy)]
pub struct SizedText<'a> {
    to: *mut c_char,
    size: *mut c_int,
    of: PhantomData<&'a mut c_char>,
}

impl<'a> SizedText<'a> {
    /// # Safety
    /// `size` is null or valid for reading and writing, and `to` is null or has `*size` bytes.
    /// Both pointers stay valid during the call.
    #[inline(always)]
    pub unsafe fn new(to: *mut c_char, size: *mut c_int) -> Self {
        SizedText {
            to,
            size,
            of: PhantomData,
        }
    }

    fn peek(self) -> Option<c_int> {
        // SAFETY: the pointer is not null, so valid for reading by the contract of `new`.
        (!self.size.is_null()).then(|| unsafe { *self.size })
    }

    /// Returns the size of the buffer.
    pub fn size(self, name: &str) -> Result<c_int, Failure> {
        self.peek().ok_or_else(|| null(name))
    }

    /// Returns true if neither the buffer nor the size is a null pointer.
    pub fn is_wanted(self) -> bool {
        !self.to.is_null() && !self.size.is_null()
    }

    /// Returns the buffer with its size.
    pub fn buffer(self) -> TextOut<'a> {
        // SAFETY: `to` is valid for `*size` bytes by the contract of `new`.
        unsafe { TextOut::new(self.to, self.peek().unwrap_or(0)) }
    }

    /// Returns the pointer to the size as an output argument.
    pub fn length(self) -> Out<'a, c_int> {
        // SAFETY: `size` is null or valid for writing by the contract of `new`.
        unsafe { Out::new(self.size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_fills_no_more_than_its_buffer() {
        for (max, expected, expected_len) in [
            (-1, *b"????", 0),
            (0, *b"????", 0),
            (1, *b"\0???", 0),
            (3, *b"ab\0?", 2),
            (4, *b"abc\0", 3),
        ] {
            let mut to = *b"????";
            // SAFETY: the buffer has at least `max` bytes.
            let buffer = unsafe { TextOut::new(to.as_mut_ptr().cast(), max) };
            let len = buffer.set("abc", "to").ok();
            assert_eq!((to, len), (expected, Some(expected_len)), "{max}");
        }
    }
}
