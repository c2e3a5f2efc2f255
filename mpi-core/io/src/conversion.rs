//! Data representations (MPI 5.0, section 14.5): the format of data in the file.

use super::error::IoError;
use crate::datatype::{self, Datatype, Named, RecvBuf, SendBuf};
use std::fmt;
use std::rc::Rc;

/// A data representation that the program registered.
pub trait Conversion {
    /// Returns the size in the file of one element of a predefined type, in bytes.
    fn file_bytes(&self, basic: Named) -> Result<i64, IoError>;
    /// Returns true if data must be encoded for the file; otherwise the data are written unchanged.
    fn converts_writes(&self) -> bool;
    fn converts_reads(&self) -> bool;
    /// Encodes the elements of `from` into `file`.
    fn write(&self, from: &SendBuf, file: &mut [u8]) -> Result<(), IoError>;
    /// Decodes `elements` elements of `to` from the file data in `file`.
    fn read(&self, to: &mut RecvBuf, elements: i64, file: &mut [u8]) -> Result<(), IoError>;
}

/// The format of data in a file.
#[derive(Clone)]
pub enum Representation {
    /// The data in the file have the format of memory.
    Native,
    /// The same as `Native`, because all processes of a job have the same memory layout.
    Internal,
    External32,
    User(String, Rc<dyn Conversion>),
}

impl Representation {
    /// Returns the name of the representation, as the program passes it to `MPI_File_set_view`.
    pub fn name(&self) -> &str {
        match self {
            Self::Native => "native",
            Self::Internal => "internal",
            Self::External32 => "external32",
            Self::User(name, _) => name,
        }
    }

    /// Returns the predefined representation with this name, if there is one.
    pub fn named(name: &str) -> Option<Representation> {
        [Self::Native, Self::Internal, Self::External32]
            .into_iter()
            .find(|known| known.name() == name)
    }

    /// Returns the size in the file, in bytes, of `count` elements of a datatype.
    pub fn file_bytes(&self, datatype: &Datatype, count: i64) -> Result<i64, IoError> {
        Ok(match self {
            Self::Native | Self::Internal => datatype.bytes(count),
            Self::External32 => datatype::external_bytes(datatype, count),
            Self::User(..) => self.in_file(datatype)?.size().saturating_mul(count),
        })
    }

    /// Returns the datatype in the file that corresponds to a datatype in memory.
    /// Each basic type has its size in the file, without padding between elements.
    /// Displacements that the program gave in bytes stay unchanged.
    /// Displacements given in elements scale with the sizes (section 14.5.1).
    pub(super) fn in_file(&self, datatype: &Datatype) -> Result<Datatype, IoError> {
        let bytes = |count| Ok(Datatype::contiguous(count, &Named::BYTE.into())?);
        match self {
            Self::Native | Self::Internal => Ok(datatype.clone()),
            Self::External32 => datatype::over(datatype, &mut |basic| {
                bytes(datatype::external_bytes(&Datatype::from(basic), 1))
            }),
            Self::User(_, conversion) => {
                datatype::over(datatype, &mut |basic| bytes(conversion.file_bytes(basic)?))
            }
        }
    }

    /// Returns true if a write must convert the data.
    pub(super) fn converts_writes(&self) -> bool {
        match self {
            Self::Native | Self::Internal => false,
            Self::External32 => true,
            Self::User(_, conversion) => conversion.converts_writes(),
        }
    }

    /// Returns true if a read must convert the data.
    pub(super) fn converts_reads(&self) -> bool {
        match self {
            Self::Native | Self::Internal => false,
            Self::External32 => true,
            Self::User(_, conversion) => conversion.converts_reads(),
        }
    }

    /// Returns the contents of a buffer, encoded for the file.
    pub(super) fn encode(&self, from: &SendBuf) -> Result<Vec<u8>, IoError> {
        let bytes = self.file_bytes(from.datatype(), from.count())?;
        let mut file = vec![0; bytes as usize];
        match self {
            Self::User(_, conversion) => conversion.write(from, &mut file)?,
            _ => from.pack_external(&mut file),
        }
        Ok(file)
    }

    /// Decodes file data into a buffer, until the data or the buffer ends.
    pub(super) fn decode(&self, to: &mut RecvBuf, file: &mut [u8]) -> Result<(), IoError> {
        match self {
            Self::User(_, conversion) => {
                let each = self.file_bytes(to.datatype(), 1)?.max(1);
                conversion.read(to, file.len() as i64 / each, file)
            }
            _ => {
                to.unpack_external(file);
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
