//! Detects with one load that the process has loaded another library.
//!
//! The loader appends each object that it loads to a list (`link_map` in `<link.h>`, which debuggers read).
//! The field `l_next` of the last object is null until another object is loaded: a check is a load.
//! `find` prevents the unloading of the last object, which would free its list entry.

use crate::atomic::AtomicUsize;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// The public fields of `struct link_map`.
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const c_char,
    dynamic: *const c_void,
    next: *mut LinkMap,
    previous: *mut LinkMap,
}

/// `RTLD_DI_LINKMAP`: the request of `dlinfo` for an object's list entry.
const LINK_MAP: c_int = 2;

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, result: *mut c_void) -> c_int;
}

/// The last object of the loader's list at the time of [`Tail::find`].
#[derive(Clone, Copy, Debug)]
pub struct Tail(&'static AtomicUsize);

impl Tail {
    /// Finds the last object and keeps it in the process; `None` if the loader refuses.
    pub fn find() -> Option<Tail> {
        // Another thread may load or unload a library between the search and `dlopen`: retry.
        (0..3).find_map(|_| {
            let (last, name) = last_object()?;
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            // SAFETY: the name is a C string; no code runs, since nothing is loaded.
            let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
            let kept = link_map(handle)?;
            // SAFETY: `kept` is the entry of an object that is never unloaded; only the address of its field is formed.
            let next = unsafe { &raw const (*kept).next };
            // SAFETY: the loader writes the field with one store of a pointer, and the entry lives as long as the object.
            (kept == last).then(|| Tail(unsafe { &*next.cast::<AtomicUsize>() }))
        })
    }

    /// Returns the word that becomes nonzero when another object is loaded.
    pub fn word(self) -> &'static AtomicUsize {
        self.0
    }
}

/// Returns the loader's list entry of an object opened by `dlopen`.
fn link_map(handle: *mut c_void) -> Option<*mut LinkMap> {
    if handle.is_null() {
        return None;
    }
    let mut map: *mut LinkMap = std::ptr::null_mut();
    // SAFETY: the handle is one of the loader's, and the result of this request is a pointer.
    let code = unsafe { dlinfo(handle, LINK_MAP, (&raw mut map).cast()) };
    (code == 0 && !map.is_null()).then_some(map)
}

/// Returns the last entry of the loader's list and the name of its object.
fn last_object() -> Option<(*mut LinkMap, CString)> {
    // SAFETY: a null name denotes the program itself; nothing is loaded.
    let program = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
    let mut search = (link_map(program)?, None);
    // The list does not change while the loader calls a function for its objects.
    // SAFETY: `walk` has the signature that `dl_iterate_phdr` calls, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(walk), (&raw mut search).cast()) };
    search.1
}

unsafe extern "C" fn walk(
    _info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the value that `last_object` passes, which outlives the call.
    let search = unsafe { &mut *data.cast::<(*mut LinkMap, Option<(*mut LinkMap, CString)>)>() };
    let mut last = search.0;
    // SAFETY: entries of the list are valid, and stay so, while the loader holds its lock during this call.
    while let Some(next) = std::ptr::NonNull::new(unsafe { (*last).next }) {
        last = next.as_ptr();
    }
    // SAFETY: the entry is valid (above), and its name is a C string.
    let name = unsafe { CStr::from_ptr((*last).name) };
    search.1 = Some((last, name.to_owned()));
    // A nonzero result ends the iteration after its first call.
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_library_that_is_loaded_later_is_noticed() {
        let Some(tail) = Tail::find() else {
            panic!("the loader's list has no last object")
        };
        assert_eq!(tail.word().load(Relaxed), 0);
        // A library that belongs to the C library and that the tests do not otherwise load.
        // SAFETY: the C library's own file, whose constructors have no effect.
        let loaded = unsafe { libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW) };
        if loaded.is_null() {
            return;
        }
        assert_ne!(tail.word().load(Relaxed), 0);
        let again = Tail::find();
        assert!(again.is_some_and(|again| again.word().load(Relaxed) == 0));
    }
}
