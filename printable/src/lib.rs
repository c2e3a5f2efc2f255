//! Escaping of untrusted text before it is printed on a terminal.
//!
//! A terminal executes control characters: they can set its title, hide lines and forge others.
//! Arguments, host names, environment variables and other names may contain control characters,
//! and another user may have chosen them.
//!
//! * [`name`] escapes untrusted text within a sentence.
//!   A newline becomes `\n`, so it starts no new line on the terminal.
//! * [`text`] escapes whole sentences or tables, except their newlines and tabs.
//! * [`eprintln!`] prints one sentence on one line.
//!   [`to_stderr`] and [`to_stdout`] print several lines.
//!   The project prints all messages to terminals with these functions.

#![deny(unsafe_code)]
#![warn(missing_docs)]

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write as _};

/// Untrusted text, to be displayed within a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a>(&'a OsStr);

/// Marks a name, an argument, a path or a value from outside this program to be escaped.
pub fn name<T: AsRef<OsStr> + ?Sized>(text: &T) -> Name<'_> {
    Name(text.as_ref())
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0.as_encoded_bytes(), |_| false, f)
    }
}

/// Escapes whole sentences: all control characters except newlines, tabs and CSV line ends.
pub fn text(text: &str) -> Cow<'_, str> {
    /// The end of a CSV line (RFC 4180, section 2).
    const CSV_END: &str = "\r\n";
    let is_escaped = |c: char| is_special(c) && !is_layout(c);
    if !text.split(CSV_END).any(|part| part.contains(is_escaped)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (number, part) in text.split(CSV_END).enumerate() {
        if number > 0 {
            out.push_str(CSV_END);
        }
        // A write to a `String` cannot fail.
        let _ = show(part.as_bytes(), is_layout, &mut out);
    }
    Cow::Owned(out)
}

/// Escapes whole sentences as [`text`] does, with JSON escapes, so that JSON stays valid.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_special(c) && !is_layout(c);
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_escaped(c) {
            // All characters that are escaped are below U+10000, so one JSON escape suffices.
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Prints sentences on standard error by one write: other processes may print at the same time.
///
/// If standard error is closed, the error is ignored, because no process would read the text.
pub fn to_stderr(sentences: &str) {
    let _ = io::stderr().write_all(text(sentences).as_bytes());
}

/// Prints on standard output. The caller handles errors: a closed pipe is often not an error.
pub fn to_stdout(answer: &str) -> io::Result<()> {
    io::stdout().write_all(text(answer).as_bytes())
}

/// Prints like the standard library's `eprintln!`, but escapes control characters and newlines.
/// The text is one write. If standard error is closed, the macro does not panic.
#[macro_export]
macro_rules! eprintln {
    ($($arg:tt)*) => {{
        let sentence = ::std::format!($($arg)*);
        $crate::to_stderr(&::std::format!("{}\n", $crate::name(&sentence)))
    }};
}

/// Returns true for the characters that arrange lines and tables: newline and tab.
fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

/// Returns true for control characters, which terminals execute, also those above 0x7f.
/// Also returns true for characters that change the display order of later text (Unicode, UAX #9).
fn is_special(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn show(bytes: &[u8], keeps: impl Fn(char) -> bool, out: &mut impl fmt::Write) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_special(c) && !keeps(c) {
                true => write!(out, "{}", c.escape_default())?,
                false => out.write_char(c)?,
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn control_characters_of_a_name_are_shown() {
        for (given, shown) in [
            ("plain name-1.txt", "plain name-1.txt"),
            ("a\x1b]0;title\x07b", "a\\u{1b}]0;title\\u{7}b"),
            ("a\nmpirun: forged", "a\\nmpirun: forged"),
            ("a\r\tb\x7f", "a\\r\\tb\\u{7f}"),
            // The control sequence introducer (CSI) as a single character.
            ("\u{9b}2J", "\\u{9b}2J"),
            // The right-to-left override.
            ("txt.\u{202e}exe", "txt.\\u{202e}exe"),
            ("Grüße, 世界", "Grüße, 世界"),
        ] {
            assert_eq!(name(given).to_string(), shown);
        }
        let bytes = OsStr::from_bytes(b"caf\xe9\x9b1m");
        assert_eq!(name(bytes).to_string(), "caf\\xe9\\x9b1m");
    }

    #[test]
    fn lines_of_a_table_stay_lines() {
        assert_eq!(text("a\tb\nc \x1b[1m\n"), "a\tb\nc \\u{1b}[1m\n");
        assert!(matches!(text("a\tb\n"), Cow::Borrowed(_)));
        assert!(matches!(text("a,b\r\nc,d\r\n"), Cow::Borrowed(_)));
        assert_eq!(text("a\rb\r\nc\x07\r\n"), "a\\rb\r\nc\\u{7}\r\n");
    }

    #[test]
    fn json_stays_json() {
        assert_eq!(json("{\n\t\"a\u{9b}\": 1}"), "{\n\t\"a\\u009b\": 1}");
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(given: String, bytes: Vec<u8>) {
            let shown = name(OsStr::from_bytes(&bytes)).to_string();
            prop_assert!(!shown.chars().any(is_special));
            prop_assert!(!name(&given).to_string().chars().any(is_special));
            let shown = text(&given).replace("\r\n", "\n");
            prop_assert!(!shown.chars().any(|c| is_special(c) && c != '\n' && c != '\t'));
        }
    }
}
