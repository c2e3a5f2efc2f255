//! User-defined data representations (section 14.5.3).
//!
//! A representation is three callbacks, registered under a name that MPI_File_set_view accepts.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::api::args::Text;
use crate::error::{Failure, Outcome};
use crate::registry::datatype::{handle_of, remove};
use crate::state::state;
use crate::thrown::guarded;
use mpi_core::datatype::{Datatype, Named, RecvBuf, SendBuf};
use mpi_core::io::{Conversion, IoClass, IoError, Representation};
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A conversion callback, with an `int` or an `MPI_Count` count.
#[derive(Clone, Copy)]
enum Function {
    Small(MPI_Datarep_conversion_function),
    Large(MPI_Datarep_conversion_function_c),
}

struct Registered {
    read: Option<Function>,
    write: Option<Function>,
    extent: Option<MPI_Datarep_extent_function>,
    extra: *mut c_void,
}

fn failed(what: &str, code: c_int) -> IoError {
    let sentence = format!("the {what} function of the data representation returned {code}");
    IoError::new(IoClass::Conversion, sentence)
}

/// Calls `call` with a datatype handle that is valid during the call.
fn with_handle<R>(datatype: &Datatype, call: impl FnOnce(MPI_Datatype) -> R) -> Result<R, IoError> {
    let none = |_| IoError::new(IoClass::Conversion, "there are too many datatypes");
    let (handle, fresh) = handle_of(datatype).map_err(none)?;
    let result = call(handle);
    if fresh {
        let _ = remove(handle);
    }
    Ok(result)
}

impl Registered {
    fn convert(
        &self,
        function: Function,
        what: &str,
        user: *mut c_void,
        (datatype, count): (&Datatype, i64),
        file: *mut c_void,
    ) -> Result<(), IoError> {
        let extra = self.extra;
        let code = with_handle(datatype, |handle| match function {
            Function::Large(f) => {
                // SAFETY: the program registered a callback of this type.
                // The buffers hold `count` elements, and the position is 0.
                guarded(MPI_ERR_CONVERSION, move || unsafe {
                    f(user, handle, count, file, 0, extra)
                })
            }
            Function::Small(f) => match c_int::try_from(count) {
                Ok(count) => {
                    // SAFETY: the program registered a callback of this type.
                    // The buffers hold `count` elements, and the position is 0.
                    guarded(MPI_ERR_CONVERSION, move || unsafe {
                        f(user, handle, count, file, 0, extra)
                    })
                }
                Err(_) => MPI_ERR_COUNT,
            },
        })?;
        match code {
            MPI_SUCCESS => Ok(()),
            code => Err(failed(what, code)),
        }
    }
}

impl Conversion for Registered {
    fn file_bytes(&self, basic: Named) -> Result<i64, IoError> {
        let datatype = &Datatype::from(basic);
        let Some(function) = self.extent else {
            return Ok(datatype.size());
        };
        let mut extent: MPI_Aint = 0;
        let (extra, place) = (self.extra, &raw mut extent);
        let code = with_handle(datatype, |handle| {
            // SAFETY: the program registered a callback of this type. The output is a local.
            guarded(MPI_ERR_CONVERSION, move || unsafe {
                function(handle, place, extra)
            })
        })?;
        match code {
            MPI_SUCCESS if extent >= 0 => Ok(extent as i64),
            code => Err(failed("extent", code)),
        }
    }

    fn converts_writes(&self) -> bool {
        self.write.is_some()
    }

    fn converts_reads(&self) -> bool {
        self.read.is_some()
    }

    fn write(&self, from: &SendBuf, file: &mut [u8]) -> Result<(), IoError> {
        let Some(function) = self.write else {
            from.pack_at(0, file);
            return Ok(());
        };
        let user = from.ptr().cast_mut().cast();
        let elements = (from.datatype(), from.count());
        self.convert(function, "write", user, elements, file.as_mut_ptr().cast())
    }

    fn read(&self, to: &mut RecvBuf, elements: i64, file: &mut [u8]) -> Result<(), IoError> {
        let Some(function) = self.read else {
            to.unpack_at(0, file);
            return Ok(());
        };
        let user = to.ptr().cast();
        let datatype = to.datatype().clone();
        self.convert(
            function,
            "read",
            user,
            (&datatype, elements),
            file.as_mut_ptr().cast(),
        )
    }
}

/// Returns the representation registered under a name.
pub fn named(name: &str) -> Result<Representation, IoError> {
    if let Some(known) = Representation::named(name) {
        return Ok(known);
    }
    let own = state().program().datareps().borrow();
    let found = own.iter().find(|(known, _)| known == name);
    found
        .map(|(name, conversion)| Representation::User(name.clone(), conversion.clone()))
        .ok_or_else(|| {
            let sentence = format!("there is no data representation {name:?}");
            IoError::new(IoClass::UnsupportedDatarep, sentence)
        })
}

fn register(datarep: Text, functions: Registered) -> Outcome {
    let name = datarep.string(MPI_MAX_DATAREP_STRING, MPI_ERR_ARG, "datarep")?;
    if named(&name).is_ok() {
        return Err(Failure::new(
            MPI_ERR_DUP_DATAREP,
            format!("there is a data representation {name:?} already"),
        ));
    }
    if functions.extent.is_none() {
        return Err(Failure::new(
            MPI_ERR_ARG,
            "dtype_file_extent_fn is a null pointer",
        ));
    }
    state()
        .program()
        .datareps()
        .borrow_mut()
        .push((name, Rc::new(functions)));
    Ok(())
}

pub fn MPI_Register_datarep(
    datarep: Text,
    read_conversion_fn: Option<MPI_Datarep_conversion_function>,
    write_conversion_fn: Option<MPI_Datarep_conversion_function>,
    dtype_file_extent_fn: Option<MPI_Datarep_extent_function>,
    extra_state: *mut c_void,
) -> Outcome {
    let functions = Registered {
        read: read_conversion_fn.map(Function::Small),
        write: write_conversion_fn.map(Function::Small),
        extent: dtype_file_extent_fn,
        extra: extra_state,
    };
    register(datarep, functions)
}

pub fn MPI_Register_datarep_c(
    datarep: Text,
    read_conversion_fn: Option<MPI_Datarep_conversion_function_c>,
    write_conversion_fn: Option<MPI_Datarep_conversion_function_c>,
    dtype_file_extent_fn: Option<MPI_Datarep_extent_function>,
    extra_state: *mut c_void,
) -> Outcome {
    let functions = Registered {
        read: read_conversion_fn.map(Function::Large),
        write: write_conversion_fn.map(Function::Large),
        extent: dtype_file_extent_fn,
        extra: extra_state,
    };
    register(datarep, functions)
}
