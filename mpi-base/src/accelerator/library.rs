//! Access to a vendor's library that the program has loaded.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// A shared library that is loaded in this process; it stays loaded until the process ends.
#[derive(Debug)]
pub struct Library(NonNull<c_void>);

// SAFETY: a handle of the loader may be used by all threads.
unsafe impl Send for Library {}
// SAFETY: the only operation on a shared handle is the look-up of a symbol, which any number of threads may do at the same time (dlsym(3), MT-Safe).
unsafe impl Sync for Library {}

impl Library {
    /// Returns the library if the process has loaded it; never loads the library.
    pub fn resident(soname: &CStr) -> Option<Library> {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: the name is a C string; no code runs, since nothing is loaded.
        NonNull::new(unsafe { libc::dlopen(soname.as_ptr(), flags) }).map(Library)
    }

    /// Returns the address of a function; `None` if the library does not define it.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is valid, since it is never closed, and the name is a C string.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

/// Defines a table of a library's functions, and the function `resident`, which looks them up.
///
/// Functions marked optional may be missing in the library (`None`).
macro_rules! functions {
    (
        $(#[$attribute:meta])* $table:ident of $soname:literal $(or $other:literal)*;
        required { $($name:ident: $symbol:literal ($($argument:ty),*);)* }
        optional { $($maybe:ident: $maybe_symbol:literal ($($maybe_argument:ty),*);)* }
    ) => {
        $(#[$attribute])*
        struct $table {
            $($name: unsafe extern "C" fn($($argument),*) -> std::ffi::c_int,)*
            $($maybe: Option<unsafe extern "C" fn($($maybe_argument),*) -> std::ffi::c_int>,)*
        }

        impl $table {
            /// Returns the table if the library is loaded, or an error if it lacks a required function.
            fn resident() -> Option<Result<$table, $crate::accelerator::Lacks>> {
                let names = [$soname $(, $other)*];
                let mut found = names.into_iter().filter_map(|name| {
                    let c = std::ffi::CString::new(name).ok()?;
                    Some((name, $crate::accelerator::Library::resident(&c)?))
                });
                let (soname, library) = found.next()?;
                let look = |symbol: &'static str| {
                    std::ffi::CString::new(symbol).ok().and_then(|name| library.function(&name))
                };
                let fill = || {
                    Ok($table {
                        $($name: {
                            let lacks = $crate::accelerator::Lacks { soname, function: $symbol };
                            let function = look($symbol).ok_or(lacks)?;
                            // SAFETY: the library's function of this name has these parameters and returns an int.
                            unsafe {
                                std::mem::transmute::<
                                    std::ptr::NonNull<std::ffi::c_void>,
                                    unsafe extern "C" fn($($argument),*) -> std::ffi::c_int,
                                >(function)
                            }
                        },)*
                        $($maybe: look($maybe_symbol).map(|function| {
                            // SAFETY: the library's function of this name has these parameters and returns an int.
                            unsafe {
                                std::mem::transmute::<
                                    std::ptr::NonNull<std::ffi::c_void>,
                                    unsafe extern "C" fn($($maybe_argument),*) -> std::ffi::c_int,
                                >(function)
                            }
                        }),)*
                    })
                };
                Some(fill())
            }
        }
    };
}

pub(super) use functions;
