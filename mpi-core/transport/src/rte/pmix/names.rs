//! Published names of a PMIx launcher (PMIx 4.1, chapter 9): every job of the launcher sees them.

#![allow(unsafe_code)]

use super::abi::{self, Looked, NOT_FOUND, Proc, Status, Value, kind};
use super::library::{Library, succeeded};
use std::ffi::CStr;

impl Library {
    /// Makes a text known under a key; `None` if the library is too old to do that.
    pub(super) fn publish(&self, key: &str, text: &CStr) -> Option<Result<(), Status>> {
        let publish = self.publish?;
        let info = abi::text_info(key, text);
        // SAFETY: the one structure is only read, and the call returns when it has been.
        Some(succeeded(unsafe { publish(&raw const info, 1) }))
    }

    /// The text that is known under a key.
    pub(super) fn lookup(&self, key: &str) -> Option<Result<Option<String>, Status>> {
        let lookup = self.lookup?;
        let mut data = Looked {
            publisher: Proc {
                namespace: [0; abi::NAMESPACE_ROOM],
                rank: 0,
            },
            key: abi::field(key.as_bytes()).unwrap_or([0; abi::KEY_ROOM]),
            value: Value::EMPTY,
        };
        // SAFETY: one structure, which the call may write to; no directives are given.
        let status = unsafe { lookup(&raw mut data, 1, std::ptr::null(), 0) };
        if status == NOT_FOUND {
            return Some(Ok(None));
        }
        let found = (data.value.kind == kind::STRING).then(|| {
            // SAFETY: `kind` says that the string was written; it was made by malloc, is ours, and is freed once.
            unsafe {
                let start = data.value.data.text;
                let text = (!start.is_null())
                    .then(|| mpi_base::text::from_bytes(CStr::from_ptr(start).to_bytes()));
                libc::free(start.cast());
                text
            }
        });
        Some(succeeded(status).map(|()| found.flatten()))
    }

    /// Takes a key back.
    pub(super) fn unpublish(&self, key: &CStr) -> Option<Result<(), Status>> {
        let unpublish = self.unpublish?;
        let mut keys = [key.as_ptr().cast_mut(), std::ptr::null_mut()];
        // SAFETY: an array of keys that ends with a null pointer, which is only read.
        Some(succeeded(unsafe {
            unpublish(keys.as_mut_ptr(), std::ptr::null(), 0)
        }))
    }
}
