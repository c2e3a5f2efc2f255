//! Builds the Python wheel of `libhwbarr`: one folder with the module, the library and the C header.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Compression, PackageError, VERSION, about, files, wheel};
use crate::cargo::{Build, Linking, Profile};
use crate::workspace;

const SCRIPT: &str = concat!(
    include_str!("wheel_archive.py"),
    include_str!("hwbarr_wheel.py")
);

const LIBRARY: &str = "libhwbarr.so";

/// The files of the wheel: path in the repository, and name in the Python module.
const FILES: [(&str, &str); 4] = [
    ("barrier-driver/library/python/hwbarr.py", "__init__.py"),
    ("barrier-driver/library/include/hwbarr.h", "hwbarr.h"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
];

/// Builds the library and packs it as a wheel.
pub fn run(out: Option<&Path>, dev: bool) -> Result<(), PackageError> {
    let profile = if dev { Profile::Dev } else { Profile::Release };
    let build = Build {
        profile,
        packages: &["hwbarr-library"],
        libraries: true,
        programs: &[],
        linking: Linking::Usual,
        folder: profile.folder(),
    };
    let built = build.run().map_err(PackageError::Build)?;
    let library = built.file(LIBRARY).map_err(PackageError::Build)?;
    let usual = workspace::target().join("packages");
    let out = out.unwrap_or(&usual);
    let compression = if dev {
        Compression::Quick
    } else {
        Compression::Usual
    };
    println!("{}", pack(library, out, compression)?.display());
    Ok(())
}

/// Packs this library without debug information; the wheel is for every Python 3 on this system.
pub fn pack(library: &Path, out: &Path, compression: Compression) -> Result<PathBuf, PackageError> {
    fs::create_dir_all(out).map_err(about(out))?;
    let folder = tempfile::tempdir_in(out).map_err(about(out))?;
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).map_err(about(&whole))?;
    for (source, name) in FILES {
        copy(&workspace::root().join(source), &whole.join(name))?;
    }
    copy(library, &whole.join(LIBRARY))?;
    let stripped = folder.path().join("stripped");
    files::stripped(&whole, &stripped)?;
    let tag = wheel::tag(&stripped)?;
    let file = out.join(format!("hwbarr-{VERSION}-{tag}.whl"));
    wheel::write(SCRIPT, &stripped, &file, &tag, compression)?;
    Ok(file)
}

fn copy(from: &Path, to: &Path) -> Result<(), PackageError> {
    fs::copy(from, to).map(drop).map_err(about(from))
}
