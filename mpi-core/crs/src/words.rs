//! The encoding of any bytes as one word of a text line.
//! Each byte outside printable ASCII, `%` and `|` become `%XX`. The empty word is `%`.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Encodes bytes as a word.
pub fn encode(word: &OsStr) -> String {
    let bytes = word.as_bytes();
    if bytes.is_empty() {
        return "%".into();
    }
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'%' | b'|' => {
                let _ = write!(text, "%{byte:02x}");
            }
            byte if byte.is_ascii_graphic() => text.push(char::from(*byte)),
            byte => {
                let _ = write!(text, "%{byte:02x}");
            }
        }
    }
    text
}

/// Decodes a word. Returns `None` if the text is malformed.
pub fn decode(text: &str) -> Option<OsString> {
    if text == "%" {
        return Some(OsString::new());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    (!bytes.is_empty()).then(|| OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let word = OsString::from_vec(bytes);
            let text = encode(&word);
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'|'));
            prop_assert_eq!(decode(&text), Some(word));
        }
    }

    #[test]
    fn what_is_no_encoding_is_refused() {
        for text in ["", "%x", "%4", "a%", "%zz"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
