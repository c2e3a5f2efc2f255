//! Publication of service names through a PMIx launcher (PMIx 4.1, chapter 9), visible to all jobs of the launcher.

#![allow(unsafe_code)]

use super::abi::{self, Looked, NOT_FOUND, Proc, Status, Value, kind};
use super::library::{Library, succeeded};
use std::ffi::CStr;

impl Library {
    /// Publishes a text under a key. Returns `None` if the library lacks the function.
    pub(super) fn publish(&self, key: &str, text: &CStr) -> Option<Result<(), Status>> {
        let publish = self.publish?;
        let info = abi::text_info(key, text);
        // SAFETY: `info` is one valid structure. The structure and its text outlive the call, which returns after it has read both.
        Some(succeeded(unsafe { publish(&raw const info, 1) }))
    }

    /// Returns the text that is published under a key. Returns `None` if the library lacks the function.
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
        // SAFETY: `data` is one valid structure, which the call may write; the directives are null with length 0.
        let status = unsafe { lookup(&raw mut data, 1, std::ptr::null(), 0) };
        if status == NOT_FOUND {
            return Some(Ok(None));
        }
        let found = (data.value.kind == kind::STRING).then(|| {
            // SAFETY: by `kind` the member `text` was written. It is null, or a C string from malloc that the caller owns and frees once, here.
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

    /// Withdraws a published key. Returns `None` if the library lacks the function.
    pub(super) fn unpublish(&self, key: &CStr) -> Option<Result<(), Status>> {
        let unpublish = self.unpublish?;
        let mut keys = [key.as_ptr().cast_mut(), std::ptr::null_mut()];
        // SAFETY: `keys` is a null-terminated array of valid C strings that outlives the call, and the call only reads it.
        Some(succeeded(unsafe {
            unpublish(keys.as_mut_ptr(), std::ptr::null(), 0)
        }))
    }
}
