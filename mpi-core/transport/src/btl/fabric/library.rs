//! Run-time loading of a network library, such as libfabric or UCX.
//!
//! The network library is not linked and no header is needed, so one build runs on machines with and without a network library.
//! A loaded library is never unloaded, because it may have started threads or installed handlers.

#![allow(unsafe_code)]

use super::variables::{self, Variables};
use libloading::os::unix::{Library as File, RTLD_LOCAL, RTLD_NOW};
use mpi_base::privilege;
use std::fmt;
use std::path::Path;

/// A network library: its file, and the package that a user must install.
pub struct Named {
    /// The library's display name, used in messages to the user.
    pub title: &'static str,
    /// The file name that the system's loader searches.
    pub soname: &'static str,
    /// The Debian package that contains the library.
    pub package: &'static str,
    /// The oldest version of the library that has all required functions.
    pub oldest: &'static str,
    /// Environment variables (name and value) that the library reads.
    /// A variable that the user has not set is set before the library is loaded.
    pub variables: Variables,
}

/// The reason why a library is unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// The loader could not load the library; `reason` is the loader's error.
    NotLoaded {
        title: &'static str,
        file: String,
        package: &'static str,
        reason: String,
    },
    /// The library has no function with the name `function`.
    Lacks {
        title: &'static str,
        file: String,
        package: &'static str,
        oldest: &'static str,
        function: String,
    },
    /// The library was loaded, but its initialization failed.
    Failed {
        title: &'static str,
        doing: &'static str,
        reason: String,
    },
    /// The program has raised privileges (setuid, for example), so no library is loaded.
    Raised { title: &'static str },
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LibraryError::NotLoaded {
                title,
                file,
                package,
                reason,
            } => write!(
                f,
                "the library of {title} cannot be loaded from {file} ({reason}); Debian's package {package} contains it"
            ),
            LibraryError::Lacks {
                title,
                file,
                package,
                oldest,
                function,
            } => write!(
                f,
                "{file} has no function {function}; {title} {oldest} or newer is needed, as in Debian's package {package}"
            ),
            LibraryError::Failed {
                title,
                doing,
                reason,
            } => write!(f, "{title} is installed, but {doing} failed: {reason}"),
            LibraryError::Raised { title } => write!(
                f,
                "the program has more rights than its user, and {title} would load files that the user chooses"
            ),
        }
    }
}

/// A loaded library, in which functions are looked up.
pub struct Opened {
    file: File,
    path: String,
    named: &'static Named,
}

impl Opened {
    /// Loads the library: from `path` if it is not empty, otherwise by the library's file name.
    pub fn open(named: &'static Named, path: &Path) -> Result<Opened, LibraryError> {
        // The libraries load plugins from folders that environment variables name.
        // A user without privileges can set these variables, so a process with raised privileges must not load the libraries.
        if privilege::is_raised() {
            return Err(LibraryError::Raised { title: named.title });
        }
        let path = match path.as_os_str().is_empty() {
            true => Path::new(named.soname),
            false => path,
        };
        variables::set(named.variables);
        // SAFETY: the library's constructors run. The system or the user chose the file, and this process does not have raised privileges.
        let file = unsafe { File::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let shown = path.display().to_string();
        let file = file.map_err(|error| LibraryError::NotLoaded {
            title: named.title,
            file: shown.clone(),
            package: named.package,
            reason: words(&error),
        })?;
        Ok(Opened {
            file,
            path: shown,
            named,
        })
    }

    /// Looks up the function `name` in the library.
    ///
    /// # Safety
    /// `F` must be the type of the function `name`.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, LibraryError> {
        let symbol = format!("{name}\0");
        // SAFETY: `F` is the type of this function, by the contract of this method.
        let found = unsafe { self.file.get::<F>(symbol.as_bytes()) };
        found.map(|found| *found).map_err(|_| LibraryError::Lacks {
            title: self.named.title,
            file: self.path.clone(),
            package: self.named.package,
            oldest: self.named.oldest,
            function: name.into(),
        })
    }

    /// Leaves the library loaded for the rest of the process's life.
    pub fn keep(self) {
        std::mem::forget(self.file);
    }
}

fn words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |inner| inner.to_string())
}

/// Declares the table of a library's functions; each function has the type that the library's header declares.
#[macro_export]
macro_rules! functions {
    ($(#[$meta:meta])* $table:ident { $($name:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $table {
            /// Looks up all functions of the table in an open library.
            pub fn find(library: &$crate::btl::fabric::library::Opened) -> Result<$table, $crate::btl::fabric::library::LibraryError> {
                Ok($table {
                    // SAFETY: the types in this table are those of the library's header.
                    $($name: unsafe { library.function(stringify!($name)) }?,)*
                })
            }
        }
    };
}
