//! The packed bytes of a buffer, as a buffer of bytes.
//!
//! If the data are contiguous, the staged bytes are the buffer's own memory, otherwise a temporary copy;
//! so an algorithm that cuts data at any byte works for every datatype, and contiguous data are not copied.

use super::{bytes, copy};
use crate::Error;
use crate::datatype::RecvBuf;

/// Packed bytes, and the buffer to which they belong.
pub struct Staged {
    pub bytes: RecvBuf,
    home: Option<RecvBuf>,
}

impl Staged {
    /// Packed bytes for data to be received; [`Staged::deliver`] copies them to their buffer.
    pub fn to_fill(home: &RecvBuf) -> Result<Staged, Error> {
        Ok(match home.as_bytes() {
            Some(bytes) => Staged { bytes, home: None },
            None => Staged {
                bytes: bytes(home.bytes())?.all(),
                home: Some(home.clone()),
            },
        })
    }

    /// The packed bytes of existing data.
    pub fn filled(home: &RecvBuf) -> Result<Staged, Error> {
        let staged = Staged::to_fill(home)?;
        if staged.home.is_some() {
            copy(&home.as_send(), &staged.bytes);
        }
        Ok(staged)
    }

    /// Copies the bytes to their buffer.
    pub fn deliver(self) {
        if let Some(home) = self.home {
            copy(&self.bytes.as_send(), &home);
        }
    }
}
