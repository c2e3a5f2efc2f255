//! The PMI-1 wire protocol, for clients and servers: lines of `key=value` words over a stream socket.
//!
//! A message is `cmd=NAME key=value key=value\n`. A key ends at `=`, a value at a space or the end of the line,
//! and the character after a backslash belongs to the value.
//! PMI-1 has no standard. This module does what Hydra, Slurm, gforker and Flux do:
//! * keys are in any order, and unknown keys are ignored;
//! * a value is never empty and never contains a space, a newline or a NUL, so binary values are sent as [`hex`]; all other bytes are sent unchanged, even if they are not UTF-8;
//! * a line is shorter than 1024 bytes, because Slurm treats the result of one `read()` of this size as one request;
//! * a reply without `rc` reports success, because old servers never send `rc`.
//!
//! Received values are not changed, and retain their backslashes,
//! so a client receives exactly the bytes that another client has stored.
//!
//! In the lines of a spawn request, a value extends to the end of its line.
//! A value with a newline is sent as [`hex`] under the key `KEY.hex`
//! if the server has announced [`TAKES_HEX`]; it cannot be sent to other servers.
//!
//! No received bytes can make this module panic or allocate memory without a limit.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

/// Maximum length of a received line in bytes. Clients of Hydra can send lines that are much longer than [`SEND_MAX`]:
///
/// the kernel accepts program arguments of up to 128 KiB,
/// and as hexadecimal digits such an argument is twice as long.
pub const LINE_MAX: usize = 512 * 1024;

/// Maximum length of a sent line in bytes, including the newline.
pub const SEND_MAX: usize = 1023;

/// Maximum length of a value in bytes, so that it fits into a line of [`SEND_MAX`] bytes together with the keys.
pub const VALUE_MAX: usize = 900;

/// Maximum length of a KVS name in bytes. Every server reports this and the following limits in reply to `get_maxes`.
pub const KVSNAME_MAX: usize = 256;
/// Maximum length of a key in bytes.
pub const KEY_MAX: usize = 64;

/// The command of a death notice, which the server sends without a request: `cmd=process_died job=KVSNAME rank=RANK`.
///
/// Only the mpirun of this library sends this notice, only if the job continues after deaths,
/// and only to clients that have sent [`HEARS_DEATHS`].
/// With `left=1` the process has not died but has sent `finalize`.
/// In both cases the process sends no more messages to its peers.
/// The notice may occur between any two lines, even before the reply for which a client waits.
pub const DEATH: &str = "process_died";

/// The key of `init` with which a client announces, by the value `1`, that it understands [`DEATH`].
pub const HEARS_DEATHS: &str = "portcullis_deaths";

/// The key of `init` with which a client of this library names its process ID, if its launcher is the mpirun of this library.
/// The reply contains the same value, because it may be read by a later process of the same rank.
///
/// A process that sends `init` after an earlier process of its rank has sent `finalize` begins the next program of the rank.
/// The reply arrives when all ranks of the job have begun this program; with it, the memory of the node is passed as a descriptor.
pub const PROGRAM: &str = "portcullis_program";

/// The key in the reply to `init` of a later program: the name of the program's key-value space, which is the name of the job.
pub const PROGRAM_JOB: &str = "portcullis_job";

/// The key in the refusal of `init` of a later program: the reason, in hexadecimal.
pub const WHY: &str = "portcullis_why";

/// The command of a notice that a spawned job has failed: `cmd=spawn_failed job=KVSNAME why=HEX`.
///
/// The spawned job will never connect to its parent, and all its processes have ended.
/// Only the mpirun of this library sends this notice,
/// and only to a process whose spawn request contained [`HEARS_FAILURE`].
pub const SPAWN_FAILED: &str = "spawn_failed";

/// The key that a process adds, with the value `1`, to its spawn request to announce that it understands [`SPAWN_FAILED`].
pub const HEARS_FAILURE: &str = "PORTCULLIS_hears_failure";

/// The command of notices and reports about checkpoints. They are sent in both directions and have no replies ([`super::checkpoints`]).
pub const CHECKPOINT: &str = "checkpoint";

/// The key of `init` with which a client announces, by the value `1`, that it understands notices about checkpoints.
pub const HEARS_CHECKPOINTS: &str = "portcullis_checkpoints";

/// The command of a report from a process to this library's mpirun when the process's connections change. It has no reply:
/// `cmd=connections jobs=NUMBER,NUMBER` contains the [numbers](crate::universe::job_number) of the
/// other jobs to which this process is connected, or `jobs=none`.
pub const CONNECTIONS: &str = "connections";

/// The value of `jobs` if there are no other jobs, because a value must not be empty.
pub const NO_JOBS: &str = "none";

/// The key in the reply to `init` with which a server announces, by the value `1`, that it accepts hexadecimal values in a spawn request (marked by [`HEX_SUFFIX`]).
pub const TAKES_HEX: &str = "portcullis_hex";

/// The suffix of a key whose value is hexadecimal.
pub const HEX_SUFFIX: &str = ".hex";

/// The reason why received bytes, or a message to be sent, are invalid in PMI-1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// More than [`LINE_MAX`] bytes were received without a newline.
    LineTooLong { len: usize },
    /// The line does not begin with `cmd=`.
    NotAMessage { line: String },
    /// The command of the message is not the expected one.
    Unexpected { wanted: String, line: String },
    /// The message lacks a mandatory key.
    Missing { key: String, line: String },
    /// The value of the key is not a number.
    NotANumber { key: String, value: String },
    /// The value of the key contains characters other than hexadecimal digits.
    NotHex { key: String },
    /// The server has replied with an error code.
    Refused { request: String, answer: String },
    /// The value cannot be transferred by this protocol.
    Unsendable { key: String, value: String },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::LineTooLong { len } => {
                write!(
                    f,
                    "{len} bytes came without a newline; a PMI-1 line has at most {LINE_MAX}"
                )
            }
            WireError::NotAMessage { line } => {
                write!(f, "the line \"{line}\" is not a PMI-1 message")
            }
            WireError::Unexpected { wanted, line } => {
                write!(f, "\"{line}\" came where cmd={wanted} was expected")
            }
            WireError::Missing { key, line } => {
                write!(f, "the message \"{line}\" has no {key}")
            }
            WireError::NotANumber { key, value } => {
                write!(
                    f,
                    "{key}=\"{value}\" came where a whole number was expected"
                )
            }
            WireError::NotHex { key } => {
                write!(f, "the value of {key} is not made of hexadecimal digits")
            }
            WireError::Refused { request, answer } => {
                write!(f, "the request {request} was answered \"{answer}\"")
            }
            WireError::Unsendable { key, value } => {
                write!(
                    f,
                    "{key}=\"{value}\" cannot be sent: a value is not empty, has no spaces or newlines, and its line has at most {SEND_MAX} bytes"
                )
            }
        }
    }
}

impl std::error::Error for WireError {}

/// Returns a received line as printable text.
pub fn shown(line: &[u8]) -> String {
    const SHOWN: usize = 200;
    let begin = OsStr::from_bytes(&line[..line.len().min(SHOWN)]);
    let text = printable::name(begin).to_string();
    if line.len() > SHOWN {
        text + "..."
    } else {
        text
    }
}

/// A received message.
#[derive(Clone, Debug)]
pub struct Message {
    line: String,
    words: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Message {
    /// Parses a line, which must not contain its newline.
    pub fn parse(line: &[u8]) -> Result<Message, WireError> {
        let message = Message {
            line: shown(line),
            words: words(line),
        };
        match message.get("cmd") {
            Some(_) => Ok(message),
            None => Err(WireError::NotAMessage { line: message.line }),
        }
    }

    /// Returns the name of the command.
    pub fn cmd(&self) -> &str {
        self.get("cmd").unwrap_or_default()
    }

    /// Returns the line, shortened for error texts.
    pub fn shown(&self) -> &str {
        &self.line
    }

    /// Returns the value of a key as bytes; the first value if the key occurs twice.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        let mut words = self.words.iter();
        words
            .find(|(name, _)| name == key.as_bytes())
            .map(|(_, value)| value.as_slice())
    }

    /// Returns the value of a key as text; `None` if the key is missing or the value is not UTF-8.
    pub fn get(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.bytes(key)?).ok()
    }

    /// Returns the value of a mandatory key as bytes.
    pub fn need_bytes(&self, key: &str) -> Result<&[u8], WireError> {
        self.bytes(key).ok_or_else(|| self.missing(key))
    }

    /// Returns the value of a mandatory key as text.
    pub fn need(&self, key: &str) -> Result<&str, WireError> {
        self.get(key).ok_or_else(|| self.missing(key))
    }

    fn missing(&self, key: &str) -> WireError {
        WireError::Missing {
            key: key.into(),
            line: self.line.clone(),
        }
    }

    /// Returns the value of a mandatory key as a whole number.
    pub fn number(&self, key: &str) -> Result<i64, WireError> {
        let value = self.need(key)?;
        value.parse().map_err(|_| WireError::NotANumber {
            key: key.into(),
            value: shown(value.as_bytes()),
        })
    }

    /// Returns true if a reply reports success: `rc=0` or no `rc`, and not Slurm's `info=fail`.
    pub fn succeeded(&self) -> bool {
        matches!(self.get("rc"), None | Some("0")) && self.get("info") != Some("fail")
    }
}

fn words(line: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = &rest[rest
            .iter()
            .take_while(|byte| b" \r\t".contains(byte))
            .count()..];
        let Some(sign) = rest.iter().position(|&byte| byte == b'=') else {
            return words;
        };
        let (key, after) = (&rest[..sign], &rest[sign + 1..]);
        // A word without "=" is skipped: the key is the word immediately before "=".
        let key = key.rsplit(|&byte| byte == b' ').next().unwrap_or(key);
        let end = end_of_value(after);
        let mut value = &after[..end];
        while let Some(shorter) = value.strip_suffix(b"\r") {
            value = shorter;
        }
        words.push((key.to_vec(), value.to_vec()));
        rest = &after[end..];
    }
}

fn end_of_value(bytes: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b' ' => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// The builder of a message to send.
#[derive(Clone, Debug)]
pub struct Line {
    name: String,
    bytes: Vec<u8>,
    bad: Option<(String, String)>,
}

impl Line {
    /// Starts a message with the command `name`.
    pub fn cmd(name: &str) -> Line {
        Line {
            name: name.into(),
            bytes: format!("cmd={name}").into_bytes(),
            bad: None,
        }
    }

    /// Returns the name of the command, for error texts.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds the word `key=value`.
    pub fn with(self, key: &str, value: impl fmt::Display) -> Line {
        self.with_bytes(key, value.to_string().as_bytes())
    }

    /// Adds the word `key=value`. The value may contain all bytes that the protocol can transfer.
    pub fn with_bytes(mut self, key: &str, value: &[u8]) -> Line {
        // A value ends at the space behind it.
        // A single backslash at the end of the value would escape this space, so such a value does not fit.
        let fits = end_of_value(&[value, b" "].concat()) == value.len();
        if value.is_empty() || !fits || value.contains(&b'\n') || value.contains(&0) {
            self.bad.get_or_insert((key.into(), shown(value)));
        }
        self.bytes.push(b' ');
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.push(b'=');
        self.bytes.extend_from_slice(value);
        self
    }

    /// Returns the bytes to send, including the newline; their length is not limited. Only for servers, because clients can read lines of any length.
    pub fn finish(self) -> Result<Vec<u8>, WireError> {
        if let Some((key, value)) = self.bad {
            return Err(WireError::Unsendable { key, value });
        }
        let mut bytes = self.bytes;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Returns the bytes to send for a client. Returns an error if they exceed [`SEND_MAX`].
    pub fn finish_short(self) -> Result<Vec<u8>, WireError> {
        let bytes = self.finish()?;
        if bytes.len() > SEND_MAX {
            let value = shown(&bytes);
            return Err(WireError::Unsendable {
                key: "line".into(),
                value,
            });
        }
        Ok(bytes)
    }
}

/// Splits a stream into lines.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Length of the prefix of `bytes` that is known to contain no newline.
    searched: usize,
}

impl Lines {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete line without its newline; `None` if no complete line was received.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        match self.bytes[self.searched..]
            .iter()
            .position(|&byte| byte == b'\n')
        {
            Some(at) => {
                let rest = self.bytes.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.bytes, rest);
                line.pop();
                self.searched = 0;
                Ok(Some(line))
            }
            None if self.bytes.len() > LINE_MAX => Err(WireError::LineTooLong {
                len: self.bytes.len(),
            }),
            None => {
                self.searched = self.bytes.len();
                Ok(None)
            }
        }
    }
}

/// Encodes bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| {
            [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]
        })
        .map(char::from)
        .collect()
}

/// Decodes hexadecimal digits. Returns `None` if the text contains other characters or an odd number of digits.
pub fn unhex(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    let text = text.as_ref();
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_come_in_any_order_and_unknown_ones_are_passed_over() {
        let message = Message::parse(b"rc=0 what cmd=get_result  value=a=b;c new=1").unwrap();
        assert_eq!(message.cmd(), "get_result");
        assert_eq!(message.get("value"), Some("a=b;c"));
        assert!(message.succeeded());
    }

    #[test]
    fn a_backslash_keeps_a_space_in_a_value() {
        let message = Message::parse(br"cmd=abort message=out\ of\ cheese exitcode=3").unwrap();
        assert_eq!(message.get("message"), Some(r"out\ of\ cheese"));
        assert_eq!(message.number("exitcode"), Ok(3));
    }

    #[test]
    fn success_is_rc_0_or_no_rc_and_not_info_fail() {
        let ok = |line: &[u8]| Message::parse(line).unwrap().succeeded();
        assert!(ok(b"cmd=x") && ok(b"cmd=x rc=0") && ok(b"cmd=x info=ok"));
        assert!(!ok(b"cmd=x rc=1") && !ok(b"cmd=x rc=-1 msg=no") && !ok(b"cmd=x info=fail"));
    }

    #[test]
    fn a_value_the_wire_cannot_carry_is_refused_by_name() {
        for bad in ["", "a b", "a\nb", "a\0b"] {
            let error = Line::cmd("put").with("key", bad).finish().unwrap_err();
            assert!(matches!(error, WireError::Unsendable { key, .. } if key == "key"));
        }
        let long = Line::cmd("put").with("value", "x".repeat(SEND_MAX));
        assert!(long.clone().finish_short().is_err() && long.finish().is_ok());
    }

    #[test]
    fn endless_bytes_without_a_newline_are_refused() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; LINE_MAX + 1]);
        assert!(matches!(
            lines.next_line(),
            Err(WireError::LineTooLong { .. })
        ));
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_parsed(key in "[a-z_]{1,20}", value in "[!-~]{1,80}") {
            prop_assume!(key != "cmd");
            if let Ok(line) = Line::cmd("put").with(&key, &value).with("z", 1).finish() {
                let message = Message::parse(line.strip_suffix(b"\n").unwrap()).unwrap();
                prop_assert_eq!(message.get(&key), Some(value.as_str()));
            }
        }

        #[test]
        fn a_value_comes_as_the_bytes_that_were_sent(value in proptest::collection::vec(0x21u8.., 1..80)) {
            prop_assume!(!value.contains(&b'\\'));
            let line = Line::cmd("put").with_bytes("key", &value).with("z", 1).finish().unwrap();
            let message = Message::parse(line.strip_suffix(b"\n").unwrap()).unwrap();
            prop_assert_eq!(message.bytes("key"), Some(&value[..]));
            prop_assert_eq!(message.get("key"), std::str::from_utf8(&value).ok());
        }

        #[test]
        fn lines_do_not_depend_on_how_the_stream_is_cut(text in "[a-z\n]{0,200}", cut in 1usize..50) {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(cut) {
                lines.push(piece);
                while let Ok(Some(line)) = lines.next_line() {
                    found.push(String::from_utf8(line).unwrap());
                }
            }
            let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
            prop_assert_eq!(found, whole.lines().map(str::to_string).collect::<Vec<_>>());
        }

        #[test]
        fn hexadecimal_digits_carry_any_bytes(bytes: Vec<u8>) {
            prop_assert_eq!(unhex(hex(&bytes)), Some(bytes));
        }
    }
}
