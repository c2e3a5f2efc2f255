//! The regular files that were open for writing at a dump, read from CRIU's image `files.img`.
//!
//! CRIU saves no contents of such files, and restores a process only if they have their old length.
//! A job that went on after the dump has usually appended to its files.
//!
//! The image is two words of 4 bytes, then messages of Protocol Buffers, each after its length.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// A file that was open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    pub path: PathBuf,
    /// The length of the file at the dump.
    pub len: u64,
}

/// The length of the two words at the begin of an image.
const HEAD: usize = 8;

/// The field of a `file_entry` with a regular file (`reg_file_entry`).
const REGULAR: u64 = 3;
/// The fields of a `reg_file_entry`.
const FLAGS: u64 = 2;
const NAME: u64 = 6;
const SIZE: u64 = 8;

/// The access mode in the flags of a file, and its value for a file that is only read.
const ACCESS: u64 = 3;
const READ_ONLY: u64 = 0;

/// Reads the image `files.img`. Returns `None` if the image is not as CRIU writes it.
pub fn read(image: &[u8]) -> Option<Vec<OpenFile>> {
    let mut rest = image.get(HEAD..)?;
    let mut found: Vec<OpenFile> = Vec::new();
    while !rest.is_empty() {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (message, tail) = tail.split_at_checked(length)?;
        rest = tail;
        let mut fields = Fields(message);
        while let Some((field, value)) = fields.field()? {
            if let (REGULAR, Value::Bytes(entry)) = (field, value) {
                let file = regular(entry)?;
                found.extend(file.filter(|file| !found.contains(file)));
            }
        }
    }
    Some(found)
}

/// Reads a `reg_file_entry`. Returns an inner `None` for a file that was only read.
fn regular(entry: &[u8]) -> Option<Option<OpenFile>> {
    let (mut flags, mut path, mut len) = (READ_ONLY, None, None);
    let mut fields = Fields(entry);
    while let Some((field, value)) = fields.field()? {
        match (field, value) {
            (FLAGS, Value::Number(value)) => flags = value,
            (SIZE, Value::Number(value)) => len = Some(value),
            (NAME, Value::Bytes(name)) => path = Some(OsString::from_vec(name.to_vec())),
            _ => {}
        }
    }
    let is_written = flags & ACCESS != READ_ONLY;
    let file = path.zip(len).filter(|_| is_written);
    Some(file.map(|(path, len)| OpenFile {
        path: path.into(),
        len,
    }))
}

/// The value of a field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A value of fixed length, which no field of interest has.
    Other,
}

/// The fields of a message of Protocol Buffers.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the next field; an inner `None` at the end of the message.
    fn field(&mut self) -> Option<Option<(u64, Value<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.number()?;
        let value = match key & 7 {
            0 => Value::Number(self.number()?),
            1 => self.skip(8)?,
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.skip(4)?,
            _ => return None,
        };
        Some(Some((key >> 3, value)))
    }

    fn skip(&mut self, length: usize) -> Option<Value<'a>> {
        self.take(length).map(|_| Value::Other)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a number of variable length: seven bits in each byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                bytes.push(low);
                return bytes;
            }
            bytes.push(low | 0x80);
        }
    }

    fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
        [
            number(field << 3 | 2),
            number(value.len() as u64),
            value.to_vec(),
        ]
        .concat()
    }

    fn field(field: u64, value: u64) -> Vec<u8> {
        [number(field << 3), number(value)].concat()
    }

    fn file(name: &str, flags: u64, size: u64) -> Vec<u8> {
        let owner = bytes(5, &field(1, 0));
        let entry = [
            field(1, 7),
            field(FLAGS, flags),
            field(3, 0),
            owner,
            bytes(NAME, name.as_bytes()),
            field(SIZE, size),
        ];
        [field(1, 1), field(2, 7), bytes(REGULAR, &entry.concat())].concat()
    }

    fn image(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut image = vec![0; HEAD];
        for entry in entries {
            image.extend((entry.len() as u32).to_le_bytes());
            image.extend(entry);
        }
        image
    }

    #[test]
    fn files_that_were_written_are_found_with_their_lengths() {
        let socket = [field(1, 4), field(2, 9), bytes(4, &field(1, 3))].concat();
        let image = image(&[
            file("/usr/lib/x.so", 0, 5),
            socket,
            file("/work/out file", 0o102_001, 70_000),
            file("/work/both", 2, 0),
            file("/work/both", 2, 0),
        ]);
        let expected = [("/work/out file", 70_000), ("/work/both", 0)];
        let expected = expected.map(|(path, len)| OpenFile {
            path: path.into(),
            len,
        });
        assert_eq!(read(&image), Some(expected.to_vec()));
        for end in 0..image.len() {
            // A part ends in the middle of an entry, or has some of the files.
            let part = read(&image[..end]);
            assert!(part.is_none_or(|files| files.len() <= 2), "{end}");
        }
    }
}
