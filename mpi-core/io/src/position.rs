//! Setting a file's view and its file pointers (MPI 5.0, sections 14.3 and 14.4).

use super::conversion::Representation;
use super::error::{IoClass, IoError};
use super::file::File;
use super::view::View;
use crate::Error;
use crate::datatype::Datatype;

/// The position to which the offset of a seek is relative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    Set,
    Current,
    End,
}

impl File {
    /// Returns the operations on the view and the file pointers.
    #[inline]
    pub fn positions(&self) -> Positions<'_> {
        Positions { file: self }
    }
}

/// The operations on the view, and on the individual and shared pointers of a file.
#[derive(Clone, Copy)]
pub struct Positions<'a> {
    file: &'a File,
}

impl<'a> Positions<'a> {
    /// Implements `MPI_File_set_view`; collective.
    /// If `disp` is `None` (`MPI_DISPLACEMENT_CURRENT`), the view begins at the shared pointer.
    pub fn set_view(
        self,
        disp: Option<i64>,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Result<Representation, IoError>,
    ) -> Result<(), Error> {
        let disp = match disp {
            Some(disp) if self.file.amode.sequential => {
                let sentence = format!(
                    "disp is {disp}, but a file of MPI_MODE_SEQUENTIAL takes MPI_DISPLACEMENT_CURRENT only"
                );
                Err(IoError::new(IoClass::Arg, sentence))
            }
            Some(disp) => Ok(disp),
            None if self.file.amode.sequential => {
                let at = self.file.shared.get()?;
                let view = self.file.view.borrow();
                Ok(view.byte_offset(at * view.etype_bytes()))
            }
            None => Err(IoError::new(
                IoClass::Arg,
                "MPI_DISPLACEMENT_CURRENT needs MPI_MODE_SEQUENTIAL",
            )),
        };
        let name = representation.as_ref().map_or(0, |rep| {
            let bytes = rep.name().bytes();
            bytes.fold(1u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte))
        });
        let view = disp.and_then(|disp| {
            View::new(
                disp,
                etype,
                filetype,
                representation?,
                self.file.amode.writes(),
            )
        });
        let view = self.file.agree(view)?;
        self.file.same("the extent of etype", etype.extent())?;
        self.file
            .same("the sum over datarep's letters", name as i64)?;
        *self.file.view.borrow_mut() = view;
        self.file.position.set(0);
        if self.file.comm.rank() == 0 {
            self.file.shared.set(0)?;
        }
        self.file.meet()
    }

    fn sought(self, now: i64, offset: i64, whence: Whence) -> Result<i64, IoError> {
        let base = match whence {
            Whence::Set => 0,
            Whence::Current => now,
            Whence::End => {
                let view = self.file.view.borrow();
                view.stream_bytes(self.file.storage().size()?) / view.etype_bytes().max(1)
            }
        };
        match base.checked_add(offset) {
            Some(at) if at >= 0 => Ok(at),
            _ => {
                let sentence =
                    format!("offset is {offset}, which leads to before the view's beginning");
                Err(IoError::new(IoClass::Arg, sentence))
            }
        }
    }

    /// Implements `MPI_File_seek`.
    pub fn seek(self, offset: i64, whence: Whence) -> Result<(), Error> {
        let at = self.file.random_access();
        let at = at.and_then(|()| self.sought(self.file.position.get(), offset, whence));
        self.file.position.set(self.file.told(at)?);
        Ok(())
    }

    /// Implements `MPI_File_get_position`.
    pub fn position(self) -> Result<i64, Error> {
        self.file.told(self.file.random_access())?;
        Ok(self.file.position.get())
    }

    /// Implements `MPI_File_seek_shared`; collective.
    pub fn seek_shared(self, offset: i64, whence: Whence) -> Result<(), Error> {
        self.file.same("offset", offset)?;
        self.file.same("whence", whence as i64)?;
        let at = match self.file.comm.rank() {
            0 => {
                let now = self.file.shared.get()?;
                self.sought(now, offset, whence).map(Some)
            }
            _ => Ok(None),
        };
        if let Some(at) = self.file.agree(at)? {
            self.file.shared.set(at)?;
        }
        self.file.meet()
    }

    /// Implements `MPI_File_get_position_shared`.
    pub fn position_shared(self) -> Result<i64, Error> {
        self.file.shared.get()
    }

    /// Implements `MPI_File_get_byte_offset`.
    pub fn byte_offset(self, offset: i64) -> Result<i64, Error> {
        let view = self.file.view.borrow();
        let found = self.file.random_access().and_then(|()| {
            let at = offset.checked_mul(view.etype_bytes()).filter(|at| *at >= 0);
            let sentence = || format!("offset is {offset}, which no file has");
            at.map(|at| view.byte_offset(at))
                .ok_or_else(|| IoError::new(IoClass::Arg, sentence()))
        });
        self.file.told(found)
    }

    /// Implements `MPI_File_get_type_extent`.
    pub fn type_extent(self, datatype: &Datatype) -> Result<i64, Error> {
        let view = self.file.view.borrow();
        let there = view.representation.in_file(datatype);
        self.file.told(there.map(|there| there.extent()))
    }
}
