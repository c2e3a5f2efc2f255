//! A buffer's packed bytes as a buffer of bytes.
//!
//! If the data is one run of memory that is the memory itself, otherwise a copy of our own;
//! so an algorithm that cuts data at any byte works on every datatype and costs nothing on the usual ones.

use super::{bytes, copy};
use crate::Error;
use crate::datatype::RecvBuf;

/// Packed bytes and where they belong.
pub struct Staged {
    pub bytes: RecvBuf,
    home: Option<RecvBuf>,
}

impl Staged {
    /// Packed bytes for data still to come; [`Staged::deliver`] takes them home.
    pub fn to_fill(home: &RecvBuf) -> Result<Staged, Error> {
        Ok(match home.as_bytes() {
            Some(bytes) => Staged { bytes, home: None },
            None => Staged {
                bytes: bytes(home.bytes())?.all(),
                home: Some(home.clone()),
            },
        })
    }

    /// The packed bytes of data that is there.
    pub fn filled(home: &RecvBuf) -> Result<Staged, Error> {
        let staged = Staged::to_fill(home)?;
        if staged.home.is_some() {
            copy(&home.as_send(), &staged.bytes);
        }
        Ok(staged)
    }

    /// Takes the bytes to where they belong.
    pub fn deliver(self) {
        if let Some(home) = self.home {
            copy(&self.bytes.as_send(), &home);
        }
    }
}
