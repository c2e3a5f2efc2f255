//! Builds the Debian packages: `portcullis` for running programs, `libportcullis-dev` for building them.
//!
//! The whole installation is in `/usr/lib/portcullis`. The user commands in `/usr/bin` have
//! distinct names, such as `mpirun.portcullis`, and are registered as alternatives,
//! through which Debian selects one of several MPI libraries.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{self, copy};
use super::{Compression, PackageError, VERSION, about};
use crate::install::DOCUMENTS;
use crate::licences;
use crate::manual;
use crate::process;

/// The path of the installation in the package.
const HOME: &str = "usr/lib/portcullis";

/// The priority of the alternatives:
/// below Open MPI's and MPICH's, so that the packages change no default.
const PRIORITY: u32 = 30;

/// A package: name, description, and alternatives as (link, group, program);
/// the first alternative of each group has the others as slaves.
struct Package {
    name: &'static str,
    /// Dependencies that cannot be derived from the files of the package.
    depends: Option<&'static str>,
    description: &'static str,
    alternatives: &'static [&'static [(&'static str, &'static str, &'static str)]],
}

const LIBRARY: Package = Package {
    name: "portcullis",
    depends: None,
    description: "MPI library of the MPI 5.0 standard ABI, with its mpirun\n \
                  Programs that were compiled against the standard mpi.h run on it, as do\n \
                  programs of MPICH, Intel MPI and Open MPI. MPI_Barrier can be hardware.",
    alternatives: &[&[
        ("/usr/bin/mpirun", "mpirun", "/usr/bin/mpirun.portcullis"),
        ("/usr/bin/mpiexec", "mpiexec", "/usr/bin/mpiexec.portcullis"),
    ]],
};

const DEVELOPMENT: Package = Package {
    name: "libportcullis-dev",
    depends: Some(concat!(
        "portcullis (= ",
        env!("CARGO_PKG_VERSION"),
        "), gcc | c-compiler, libc6-dev | libc-dev"
    )),
    description: "MPI library of the MPI 5.0 standard ABI: header and compiler wrapper\n \
                  mpicc, mpicxx, mpifort, mpi.h, mpif.h, the source of the modules mpi and\n \
                  mpi_f08, and what pkg-config and CMake ask for.",
    alternatives: &[&[
        ("/usr/bin/mpicc", "mpi", "/usr/bin/mpicc.portcullis"),
        ("/usr/bin/mpicxx", "mpicxx", "/usr/bin/mpicxx.portcullis"),
        ("/usr/bin/mpic++", "mpic++", "/usr/bin/mpic++.portcullis"),
        ("/usr/bin/mpiCC", "mpiCC", "/usr/bin/mpiCC.portcullis"),
        ("/usr/bin/mpifort", "mpifort", "/usr/bin/mpifort.portcullis"),
        ("/usr/bin/mpif90", "mpif90", "/usr/bin/mpif90.portcullis"),
        ("/usr/bin/mpif77", "mpif77", "/usr/bin/mpif77.portcullis"),
    ]],
};

/// Returns true for files that are only needed to build programs.
fn is_development(inside: &Path) -> bool {
    const PROGRAMS: [&str; 7] = [
        "mpicc", "mpicxx", "mpic++", "mpiCC", "mpifort", "mpif90", "mpif77",
    ];
    inside.starts_with("include")
        || inside.starts_with("lib/pkgconfig")
        || inside.starts_with("share/portcullis/fortran")
        || inside == Path::new("lib/libmpi_abi.so")
        || inside == Path::new("lib/libmpifort_abi.so")
        || inside == Path::new("lib/libmpi.so")
        || inside.starts_with(manual::FOLDER)
        || PROGRAMS
            .iter()
            .any(|name| inside == Path::new("bin").join(name) || inside == manual_of(name))
}

fn manual_of(program: &str) -> PathBuf {
    format!("share/man/man1/{program}.1").into()
}

/// The Debian packages that contain an installation.
#[derive(Debug)]
pub struct Debian {
    /// The path of the package `portcullis`.
    pub library: PathBuf,
    /// The path of the package `libportcullis-dev`.
    pub development: PathBuf,
}

/// Packs an installation; the packages' contents are prepared in `scratch`.
pub fn debian(
    prefix: &Path,
    scratch: &Path,
    out: &Path,
    compression: Compression,
) -> Result<Debian, PackageError> {
    let packed = |package: &Package, has: &dyn Fn(&Path) -> bool| {
        let root = scratch.join(package.name);
        lay_out(package, prefix, &root, has)?;
        build(package, &root, out, compression)
    };
    Ok(Debian {
        library: packed(&LIBRARY, &|inside| !is_development(inside))?,
        development: packed(&DEVELOPMENT, &is_development)?,
    })
}

/// Creates the folder that `dpkg-deb` packs.
fn lay_out(
    package: &Package,
    prefix: &Path,
    root: &Path,
    has: &dyn Fn(&Path) -> bool,
) -> Result<(), PackageError> {
    copy(prefix, Path::new(""), &root.join(HOME), has)?;
    let bin = root.join("usr/bin");
    fs::create_dir_all(&bin).map_err(about(&bin))?;
    for (_, _, program) in package.alternatives.iter().copied().flatten() {
        let link = root.join(program.trim_start_matches('/'));
        let name = link.file_stem().unwrap_or_default().to_owned();
        let target = Path::new("../lib/portcullis/bin").join(&name);
        symlink(&target, &link).map_err(about(&link))?;
        let page = manual_of(&name.to_string_lossy());
        let link = root.join("usr/share/man/man1");
        fs::create_dir_all(&link).map_err(about(&link))?;
        let link = link.join(format!("{}.portcullis.1", name.display()));
        symlink(Path::new("../../../lib/portcullis").join(page), &link).map_err(about(&link))?;
    }
    let control = root.join("DEBIAN");
    fs::create_dir_all(&control).map_err(about(&control))?;
    let copyright = root
        .join("usr/share/doc")
        .join(package.name)
        .join("copyright");
    let folder = copyright.parent().unwrap_or(root);
    fs::create_dir_all(folder).map_err(about(folder))?;
    write(&copyright, &self::copyright(prefix)?, 0o644)?;
    let depends = dependencies(package, root)?;
    let text = format!(
        "Package: {}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: The Portcullis developers <portcullis@localhost>\n\
         Section: net\nPriority: optional\nDepends: {}\nInstalled-Size: {}\nDescription: {}\n",
        package.name,
        architecture(),
        depends,
        size(root)? / 1024 + 1,
        package.description
    );
    write(&control.join("control"), &text, 0o644)?;
    write(&control.join("postinst"), &postinst(package), 0o755)?;
    write(&control.join("prerm"), &prerm(package), 0o755)
}

/// Returns the packages, with versions, that the files of this package require at run time.
fn dependencies(package: &Package, root: &Path) -> Result<String, PackageError> {
    let (major, minor) = files::needed_glibc(root)?;
    let library = format!("libc6 (>= {major}.{minor})");
    Ok(match package.depends {
        Some(others) => format!("{library}, {others}"),
        // The interface of libgcc has not changed since this version.
        None => format!("{library}, libgcc-s1 (>= 4.2)"),
    })
}

/// Returns the copyright file in Debian's format: origin and licences of the files.
fn copyright(prefix: &Path) -> Result<String, PackageError> {
    let read = |name: &str| {
        let path = prefix.join(DOCUMENTS).join(name);
        fs::read_to_string(&path).map_err(about(&path))
    };
    let mit = read("LICENSE-MIT")?;
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: Portcullis\n\
         Comment: The terms of the packages that are linked in are in\n /{HOME}/{DOCUMENTS}/{}.\n\n\
         Files: *\nCopyright: The Portcullis developers\nLicense: MIT or Apache-2.0\n\n\
         License: MIT\n{}\n\
         License: Apache-2.0\n On Debian systems the whole text is in /usr/share/common-licenses/Apache-2.0.\n",
        licences::OF_OTHERS,
        indented(&mit)
    ))
}

/// Formats a text as a control field: a blank before each line, a dot for an empty line.
fn indented(text: &str) -> String {
    let lines = text.trim_end().lines();
    lines.fold(String::new(), |mut all, line| {
        let _ = match line.trim_end() {
            "" => writeln!(all, " ."),
            line => writeln!(all, " {line}"),
        };
        all
    })
}

fn build(
    package: &Package,
    root: &Path,
    out: &Path,
    compression: Compression,
) -> Result<PathBuf, PackageError> {
    let file = out.join(format!("{}_{VERSION}_{}.deb", package.name, architecture()));
    let mut build = Command::new("dpkg-deb");
    build
        .arg("--root-owner-group")
        .args(match compression {
            Compression::Usual => &[][..],
            Compression::Quick => &["-Zgzip", "-z1"],
        })
        .arg("--build")
        .arg(root)
        .arg(&file);
    process::run(&mut build).map_err(|reason| PackageError::Tool {
        what: "Debian package",
        reason,
    })?;
    Ok(file)
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn postinst(package: &Package) -> String {
    let mut text = String::from("#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n");
    for group in package.alternatives {
        for (i, (link, name, program)) in group.iter().enumerate() {
            text.push_str(&match i {
                0 => {
                    format!("    update-alternatives --install {link} {name} {program} {PRIORITY}")
                }
                _ => format!(" \\\n        --slave {link} {name} {program}"),
            });
        }
        text.push('\n');
    }
    text + "fi\n"
}

fn prerm(package: &Package) -> String {
    let mut text = String::from("#!/bin/sh\nset -e\nif [ \"$1\" != upgrade ]; then\n");
    for group in package.alternatives {
        if let Some((_, name, program)) = group.first() {
            text.push_str(&format!(
                "    update-alternatives --remove {name} {program}\n"
            ));
        }
    }
    text + "fi\n"
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), PackageError> {
    fs::write(path, text).map_err(about(path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(about(path))
}

fn size(folder: &Path) -> Result<u64, PackageError> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(about(folder))? {
        let entry = entry.map_err(about(folder))?;
        let path = entry.path();
        let about_it = fs::symlink_metadata(&path).map_err(about(&path))?;
        sum += match about_it.is_dir() {
            true => size(&path)?,
            false => about_it.len(),
        };
    }
    Ok(sum)
}
