//! Lossless conversion between bytes and text.
//! MPI treats a program's strings as bytes in any encoding, and must return the same bytes (sections
//! 7.8 and 10.1 of MPI 5.0).
//!
//! Internally such a string is a `String`, so that it can be part of a message.
//! A byte that is not part of valid UTF-8 becomes a private-use character, `ESCAPES` + the byte,
//! and is converted back to the same byte on output.
//! The bytes of these private-use characters in a program's string are also escaped,
//! because otherwise two different strings could become equal.
//!
//! Such a `String` must not be passed to the operating system directly:
//! [`to_os`] or [`to_path`] converts the name of a file or program first.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// The first of 256 private-use characters, which do not occur in ordinary text.
const ESCAPES: u32 = 0xF700;

fn escape(byte: u8) -> char {
    char::from_u32(ESCAPES + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn escaped(c: char) -> Option<u8> {
    let offset = u32::from(c).checked_sub(ESCAPES)?;
    u8::try_from(offset).ok()
}

/// Converts the contents of a text file to text, without the byte order mark that editors of other systems write.
pub fn from_file(bytes: &[u8]) -> String {
    from_bytes(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

/// Converts a program's bytes to text; the bytes need not be UTF-8.
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match escaped(c) {
                None => text.push(c),
                Some(_) => {
                    let mut own = [0; 4];
                    text.extend(c.encode_utf8(&mut own).bytes().map(escape));
                }
            }
        }
        text.extend(chunk.invalid().iter().copied().map(escape));
    }
    text
}

/// Converts text from [`from_bytes`] back to the original bytes.
pub fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.chars().any(|c| escaped(c).is_some()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match escaped(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Converts a name from the operating system to text.
pub fn from_os(name: impl AsRef<OsStr>) -> String {
    from_bytes(name.as_ref().as_bytes())
}

/// Converts text from [`from_os`] back to the operating system's name.
pub fn to_os(text: &str) -> OsString {
    OsString::from_vec(to_bytes(text).into_owned())
}

/// As [`to_os`], for the path of a file or directory.
pub fn to_path(text: &str) -> PathBuf {
    to_os(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_may_begin_with_a_byte_order_mark() {
        assert_eq!(from_file(b"\xef\xbb\xbfnode1\n"), "node1\n");
        assert_eq!(from_file(b"node1\n"), "node1\n");
        assert_eq!(from_file(b"\n\xef\xbb\xbf"), "\n\u{feff}");
    }

    #[test]
    fn what_people_write_stays_readable() {
        assert_eq!(from_bytes("grün".as_bytes()), "grün");
        assert_ne!(from_bytes(b"gr\xfcn"), from_bytes(b"gr\xfdn"));
    }

    #[test]
    fn names_come_back_to_the_byte() {
        let name = OsStr::from_bytes(b"/tmp/\xe4 b");
        assert_eq!(to_os(&from_os(name)), name);
        assert_eq!(to_path(&from_os(name)).as_os_str(), name);
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>) {
            let text = from_bytes(&bytes);
            prop_assert_eq!(&*to_bytes(&text), &bytes[..]);
        }

        #[test]
        fn text_with_characters_of_ours_comes_back(text in "[a\u{F6FF}-\u{F801}]*") {
            let inside = from_bytes(text.as_bytes());
            prop_assert_eq!(&*to_bytes(&inside), text.as_bytes());
        }
    }
}
