//! Views, and the individual and the shared file pointer (MPI 5.0, sections 14.3 and 14.4).

use super::conversion::Representation;
use super::error::{IoClass, IoError};
use super::file::File;
use super::view::View;
use crate::Error;
use crate::datatype::Datatype;

/// The origin of a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    Set,
    Current,
    End,
}

impl File {
    /// `MPI_File_set_view`; collective. Without `disp` the view begins at the shared pointer.
    pub fn set_view(
        &self,
        disp: Option<i64>,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Result<Representation, IoError>,
    ) -> Result<(), Error> {
        let disp = match disp {
            Some(disp) if self.amode.sequential => {
                let sentence = format!(
                    "disp is {disp}, but a file of MPI_MODE_SEQUENTIAL takes MPI_DISPLACEMENT_CURRENT only"
                );
                Err(IoError::new(IoClass::Arg, sentence))
            }
            Some(disp) => Ok(disp),
            None if self.amode.sequential => {
                let at = self.shared.get()?;
                let view = self.view.borrow();
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
            View::new(disp, etype, filetype, representation?, self.amode.writes())
        });
        let view = self.agree(view)?;
        self.same("the extent of etype", etype.extent())?;
        self.same("the sum over datarep's letters", name as i64)?;
        *self.view.borrow_mut() = view;
        self.position.set(0);
        if self.comm.rank() == 0 {
            self.shared.set(0)?;
        }
        self.meet()
    }

    pub(super) fn random_access(&self) -> Result<(), IoError> {
        match self.amode.sequential {
            false => Ok(()),
            true => Err(IoError::new(
                IoClass::UnsupportedOperation,
                "a file of MPI_MODE_SEQUENTIAL is read and written at its shared pointer only",
            )),
        }
    }

    fn sought(&self, now: i64, offset: i64, whence: Whence) -> Result<i64, IoError> {
        let base = match whence {
            Whence::Set => 0,
            Whence::Current => now,
            Whence::End => {
                let view = self.view.borrow();
                view.stream_bytes(self.size()?) / view.etype_bytes().max(1)
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

    /// `MPI_File_seek`.
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        let at = self.random_access();
        let at = at.and_then(|()| self.sought(self.position.get(), offset, whence));
        self.position.set(self.told(at)?);
        Ok(())
    }

    /// `MPI_File_get_position`.
    pub fn position(&self) -> Result<i64, Error> {
        self.told(self.random_access())?;
        Ok(self.position.get())
    }

    /// `MPI_File_seek_shared`; collective.
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        self.same("offset", offset)?;
        self.same("whence", whence as i64)?;
        let at = match self.comm.rank() {
            0 => {
                let now = self.shared.get()?;
                self.sought(now, offset, whence).map(Some)
            }
            _ => Ok(None),
        };
        if let Some(at) = self.agree(at)? {
            self.shared.set(at)?;
        }
        self.meet()
    }

    /// `MPI_File_get_position_shared`.
    pub fn position_shared(&self) -> Result<i64, Error> {
        self.shared.get()
    }

    /// `MPI_File_get_byte_offset`.
    pub fn byte_offset(&self, offset: i64) -> Result<i64, Error> {
        let view = self.view.borrow();
        let found = self.random_access().and_then(|()| {
            let at = offset.checked_mul(view.etype_bytes()).filter(|at| *at >= 0);
            let sentence = || format!("offset is {offset}, which no file has");
            at.map(|at| view.byte_offset(at))
                .ok_or_else(|| IoError::new(IoClass::Arg, sentence()))
        });
        self.told(found)
    }

    /// `MPI_File_get_type_extent`.
    pub fn type_extent(&self, datatype: &Datatype) -> Result<i64, Error> {
        let view = self.view.borrow();
        let there = view.representation.in_file(datatype);
        self.told(there.map(|there| there.extent()))
    }
}
