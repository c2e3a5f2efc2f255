//! `cargo xtask package`: packs an installation as a Python wheel, Debian packages and an archive;
//! `cargo xtask hwbarr-wheel`: packs `libhwbarr` as a Python wheel.
//!
//! All packages contain the same files of one installation, without debug information.
//! The installation is relocatable: programs find their files relative to their own location.

mod debian;
mod files;
pub mod hwbarr_wheel;
mod tarball;
mod wheel;

pub use debian::Debian;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::{BuildError, Profile};
use crate::install::{self, Contents, InstallError, Programs};
use crate::process::ProcessError;
use crate::workspace;

/// The version of all packages.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The options of the packages.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Folder of the packages [default: target/packages]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Compile without optimisation and compress little, as tests do
    #[arg(long)]
    pub dev: bool,
}

/// How strongly packages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The defaults of the tools, for distributed packages.
    Usual,
    /// The fastest level of the formats, for packages that are unpacked once.
    Quick,
}

/// The paths of all packages of one installation.
#[derive(Debug)]
pub struct Packages {
    /// The path of the archive.
    pub tarball: PathBuf,
    /// The path of the Python wheel.
    pub wheel: PathBuf,
    /// The paths of the Debian packages.
    pub debian: Debian,
}

/// The reason why a package was not created.
#[derive(Debug)]
pub enum PackageError {
    /// The installation failed.
    Install(InstallError),
    /// cargo failed, or did not build the library.
    Build(BuildError),
    /// A packing tool failed.
    Tool {
        /// The kind of package, for messages.
        what: &'static str,
        /// The tool's failure, with its output.
        reason: ProcessError,
    },
    /// A file could not be read or written.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(reason) => write!(f, "nothing to pack: {reason}"),
            Self::Build(reason) => write!(f, "nothing to pack: {reason}"),
            Self::Tool { what, reason } => write!(f, "no {what}: {reason}"),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for PackageError {}

/// Returns a function that adds the file's path to an I/O error.
fn about(path: &Path) -> impl FnOnce(std::io::Error) -> PackageError {
    let path = path.to_owned();
    move |reason| PackageError::File { path, reason }
}

/// Creates all packages and prints their paths.
pub fn run(options: &Options) -> Result<(), PackageError> {
    let out = options.out.clone();
    let out = out.unwrap_or_else(|| workspace::target().join("packages"));
    // The build takes minutes, so the folder is checked before it.
    install::check_folder(&out).map_err(PackageError::Install)?;
    let whole = workspace::target().join("package-installation");
    if whole.exists() {
        fs::remove_dir_all(&whole).map_err(about(&whole))?;
    }
    let contents = Contents {
        profile: if options.dev {
            Profile::Dev
        } else {
            Profile::Release
        },
        bare: false,
        plugins: true,
        others: true,
        programs: Programs::All,
    };
    install::install(&whole, &contents).map_err(PackageError::Install)?;
    let compression = match options.dev {
        true => Compression::Quick,
        false => Compression::Usual,
    };
    let made = pack(&whole, &out, compression)?;
    for file in [
        made.tarball,
        made.wheel,
        made.debian.library,
        made.debian.development,
    ] {
        println!("{}", file.display());
    }
    Ok(())
}

/// Packs an installation in all formats, without debug information, into the folder `out`.
pub fn pack(
    installation: &Path,
    out: &Path,
    compression: Compression,
) -> Result<Packages, PackageError> {
    let stripped = tempfile::tempdir_in(out).map_err(about(out))?;
    let prefix = stripped.path().join("installation");
    files::stripped(installation, &prefix)?;
    Ok(Packages {
        tarball: tarball::tarball(&prefix, out, compression)?,
        wheel: wheel::wheel(&prefix, out, compression)?,
        debian: debian::debian(&prefix, stripped.path(), out, compression)?,
    })
}
