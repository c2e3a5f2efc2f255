//! The packed bytes of a buffer, as a buffer of bytes.
//!
//! If the data are contiguous, the staged bytes are the buffer's own memory, otherwise they are a temporary copy.
//! So an algorithm may cut data at any byte, for every datatype, and contiguous data are not copied.

use super::{bytes, copy};
use crate::Error;
use crate::datatype::RecvBuf;

/// The packed bytes, and the buffer to which they must be copied at the end.
pub struct Staged {
    pub bytes: RecvBuf,
    home: Option<RecvBuf>,
}

impl Staged {
    /// Allocates packed bytes for data to be received into `home`; [`Staged::deliver`] copies them there.
    pub fn to_fill(home: &RecvBuf) -> Result<Staged, Error> {
        Ok(match home.as_bytes() {
            Some(bytes) => Staged { bytes, home: None },
            None => Staged {
                bytes: bytes(home.bytes())?.all(),
                home: Some(home.clone()),
            },
        })
    }

    /// Returns the packed bytes of the data in `home`.
    pub fn filled(home: &RecvBuf) -> Result<Staged, Error> {
        let staged = Staged::to_fill(home)?;
        if staged.home.is_some() {
            copy(&home.as_send(), &staged.bytes);
        }
        Ok(staged)
    }

    /// Unpacks the bytes into their buffer, if they are a copy.
    pub fn deliver(self) {
        if let Some(home) = self.home {
            copy(&self.bytes.as_send(), &home);
        }
    }
}
