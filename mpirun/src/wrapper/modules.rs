//! Fortran modules `mpi` and `mpi_f08`, compiled for each Fortran compiler at its first use.
//!
//! Module files differ between compilers and versions.
//! So an installation contains the modules' source (`share/portcullis/fortran`).
//! There is a folder of compiled modules for each compiler, version and set of kind-changing flags.
//! The folder is below the installation's `lib/portcullis/fortran` if the user may write there.
//! Otherwise the folder is below `portcullis/fortran` in the user's cache folder.
//! Concurrent processes are safe: one process compiles, under a lock, into a temporary folder and
//! renames the folder.

use mpi_base::{environment, text};
use rustix::fs::{FlockOperation, flock};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The source files in compilation order.
const SOURCES: [&str; 2] = ["mpi.f90", "mpi_f08.f90"];
/// A file that exists only in a complete folder.
const LAST: &str = "mpi_f08.mod";
/// The archive of module objects, needed only by programs that pass an MPI type as `CLASS(*)`.
const OBJECTS: &str = "libmpifort_modules.a";

/// Returns the folder with the compiled modules, which are compiled first if necessary.
pub(super) fn folder(
    prefix: &Path,
    (compiler, version): (&OsStr, &str),
    kind_flags: &[OsString],
    say: impl Fn(&str),
) -> Result<PathBuf, String> {
    let sources = prefix.join("share/portcullis/fortran");
    let name = name(&sources, compiler, version, kind_flags)?;
    let in_prefix = prefix.join("lib/portcullis/fortran");
    let in_cache = cache();
    let places: Vec<&Path> = [Some(in_prefix.as_path()), in_cache.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    let mut kept = places.iter().map(|place| place.join(&name));
    if let Some(made) = kept.find(|folder| folder.join(LAST).exists()) {
        return Ok(made);
    }
    let mut refused = Vec::new();
    for place in &places {
        let lock = fs::create_dir_all(place).and_then(|()| lock(place, &name));
        match lock {
            Ok(lock) => {
                return make(
                    &sources,
                    place,
                    &name,
                    compiler,
                    kind_flags,
                    (version, lock),
                    say,
                );
            }
            Err(error) => refused.push(format!("{} ({error})", place.display())),
        }
    }
    Err(format!(
        "the MPI modules are not compiled for {} yet, and the folders for them cannot be written: {}; \
         set XDG_CACHE_HOME to a folder that you may write, or have them compiled once by a user that may write the first one",
        title(version),
        refused.join(", ")
    ))
}

/// Returns the user's cache folder for compiled modules.
fn cache() -> Option<PathBuf> {
    let folder = |name, below: &str| {
        let value = environment::var(name).filter(|value| Path::new(value).is_absolute());
        value.map(|value| Path::new(&value).join(below))
    };
    let cache = folder("XDG_CACHE_HOME", "").or_else(|| folder("HOME", ".cache"))?;
    Some(cache.join("portcullis/fortran"))
}

/// The reason why a compiler's version is unknown.
pub(super) enum VersionError {
    /// The compiler cannot be started, so it cannot compile.
    NotRun(String),
    /// The compiler starts but prints no version.
    NotPrinted(String),
}

/// Returns the compiler's version output.
pub(super) fn version(compiler: &OsStr) -> Result<String, VersionError> {
    let mut failures = String::new();
    // NAG's and Cray's compilers accept only `-V`.
    for ask in ["--version", "-V"] {
        let output = command(compiler)
            .arg(ask)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                let name = shown(compiler);
                VersionError::NotRun(format!("the compiler {name} cannot be run: {error}"))
            })?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = text::from_bytes(&printed);
        if output.status.success() && !printed.trim().is_empty() {
            return Ok(printed);
        }
        failures = printed;
    }
    Err(VersionError::NotPrinted(format!(
        "the compiler {} does not print its version: {}",
        shown(compiler),
        failures.lines().next().unwrap_or("nothing")
    )))
}

/// Returns the first line of a version output, for messages.
fn title(version: &str) -> &str {
    let mut lines = version.lines().map(str::trim);
    lines
        .find(|line| !line.is_empty())
        .unwrap_or("the compiler")
}

/// Returns the folder's name: the compiler's name and a hash of all inputs of module files.
fn name(
    sources: &Path,
    compiler: &OsStr,
    version: &str,
    kind_flags: &[OsString],
) -> Result<String, String> {
    let mut hash = DefaultHasher::new();
    compiler.hash(&mut hash);
    version.hash(&mut hash);
    kind_flags.hash(&mut hash);
    for source in SOURCES {
        let file = sources.join(source);
        let text = fs::read(&file).map_err(|error| {
            format!(
                "{}, a part of this installation, cannot be read: {error}",
                file.display()
            )
        })?;
        text.hash(&mut hash);
    }
    let compiler = text::from_os(compiler);
    let program = compiler.split_whitespace().next().unwrap_or("compiler");
    let program = Path::new(program).file_name().unwrap_or_default();
    Ok(format!("{}-{:016x}", text::from_os(program), hash.finish()))
}

/// Locks the folder against concurrent compilations; closing the file releases the lock.
fn lock(place: &Path, name: &str) -> io::Result<File> {
    let file = File::create(place.join(format!("{name}.lock")))?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            done => return done.map(|()| file).map_err(Into::into),
        }
    }
}

/// Compiles the modules into a temporary folder and renames it when it is complete.
fn make(
    sources: &Path,
    place: &Path,
    name: &str,
    compiler: &OsStr,
    kind_flags: &[OsString],
    (version, lock): (&str, File),
    say: impl Fn(&str),
) -> Result<PathBuf, String> {
    let folder = place.join(name);
    if folder.join(LAST).exists() {
        // Another process has compiled the modules during the wait for the lock.
        return Ok(folder);
    }
    let begun = Instant::now();
    let failed = |error: io::Error| format!("{} cannot be written: {error}", folder.display());
    let fresh = place.join(format!("{name}.{}", std::process::id()));
    let done = compile(sources, &fresh, compiler, kind_flags).and_then(|()| {
        // An incomplete folder with this name exists if a user has removed files from it.
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&fresh, &folder).map_err(failed)
    });
    if let Err(reason) = done {
        let _ = fs::remove_dir_all(&fresh);
        return Err(format!(
            "{} cannot compile the MPI modules: {reason}",
            title(version)
        ));
    }
    drop(lock);
    say(&format!(
        "compiled the modules mpi and mpi_f08 once for {} ({:.1} s) and keeps them in {}",
        title(version),
        begun.elapsed().as_secs_f64(),
        folder.display()
    ));
    Ok(folder)
}

fn compile(
    sources: &Path,
    fresh: &Path,
    compiler: &OsStr,
    kind_flags: &[OsString],
) -> Result<(), String> {
    let failed = |error: io::Error| format!("{} cannot be written: {error}", fresh.display());
    let _ = fs::remove_dir_all(fresh);
    fs::create_dir(fresh).map_err(failed)?;
    let mut objects = Vec::new();
    for source in SOURCES {
        let object = Path::new(source).with_extension("o");
        let mut command = command(compiler);
        command
            .args(kind_flags)
            .arg("-c")
            .arg(sources.join(source))
            .arg("-o")
            .arg(&object)
            // Compilers write module files to the current folder.
            .current_dir(fresh);
        run(&mut command)?;
        objects.push(object);
    }
    let mut archive = Command::new("ar");
    archive.arg("rcs").arg(OBJECTS).args(&objects);
    // If `ar` fails, only programs that pass an MPI type as CLASS(*) cannot be linked.
    let _ = run(archive.current_dir(fresh));
    for object in objects {
        let _ = fs::remove_file(fresh.join(object));
    }
    if fresh.join(LAST).exists() {
        return Ok(());
    }
    Err(format!("it ended well but wrote no {LAST}"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stderr, output.stdout].concat();
    let printed = text::from_bytes(&printed);
    let errors = printed.lines().filter(|line| !line.trim().is_empty());
    let errors: Vec<&str> = errors.take(8).collect();
    Err(format!("{}\n{}", output.status, errors.join("\n")))
}

/// Returns a command; the compiler may have arguments, as in `MPIFORT_FC="gfortran -m64"`.
fn command(compiler: &OsStr) -> Command {
    let compiler = text::from_os(compiler);
    let mut words = compiler.split_whitespace().map(text::to_os);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn shown(compiler: &OsStr) -> String {
    printable::name(compiler).to_string()
}

/// Returns the flags that link the modules' objects, if the archive exists.
pub(super) fn link_flags(folder: &Path) -> Vec<OsString> {
    match folder.join(OBJECTS).exists() {
        true => vec![folder.join(OBJECTS).into_os_string()],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fake compiler: it writes a module file for each source file and counts its calls.
    const COMPILER: &str = r#"#!/bin/sh
case "$*" in
  *--version*) echo "Toy Fortran 1.0"; exit 0;;
esac
echo x >>"$(dirname "$0")/calls"
for arg; do case "$arg" in *.f90) b=$(basename "$arg" .f90); echo m >"$b.mod"; echo o >"$b.o";; esac; done
"#;

    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new(compiler: &str) -> Place {
            let folder = tempfile::tempdir().unwrap();
            let sources = folder.path().join("share/portcullis/fortran");
            fs::create_dir_all(&sources).unwrap();
            for source in SOURCES {
                fs::write(sources.join(source), "module").unwrap();
            }
            fs::write(folder.path().join("toyfc"), compiler).unwrap();
            Place { folder }
        }

        /// Returns a command that runs the script by `sh`.
        /// A direct execution could fail:
        /// a child of another test may have the script open for writing.
        fn compiler(&self) -> OsString {
            let mut compiler = OsString::from("sh ");
            compiler.push(self.folder.path().join("toyfc"));
            compiler
        }

        fn ask(&self, flags: &[&str]) -> Result<PathBuf, String> {
            let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
            let compiler = self.compiler();
            let version = version(&compiler).map_err(|error| match error {
                VersionError::NotRun(reason) | VersionError::NotPrinted(reason) => reason,
            })?;
            folder(self.folder.path(), (&compiler, &version), &flags, |_| ())
        }

        fn calls(&self) -> usize {
            let calls = fs::read_to_string(self.folder.path().join("calls"));
            calls.map_or(0, |calls| calls.lines().count())
        }
    }

    #[test]
    fn many_compilers_at_once_compile_the_modules_once() {
        let place = Place::new(COMPILER);
        let folders: Vec<PathBuf> = std::thread::scope(|scope| {
            let each: Vec<_> = (0..8).map(|_| scope.spawn(|| place.ask(&[]))).collect();
            each.into_iter()
                .map(|one| one.join().unwrap().unwrap())
                .collect()
        });
        assert!(folders.iter().all(|folder| *folder == folders[0]));
        assert_eq!(place.calls(), SOURCES.len());
        assert!(folders[0].join("mpi.mod").exists());
        let other = place.ask(&["-fdefault-real-8"]).unwrap();
        assert_ne!(other, folders[0]);
        assert_eq!(place.calls(), 2 * SOURCES.len());
    }

    #[test]
    fn a_compiler_that_fails_leaves_nothing_and_its_words_are_shown() {
        let place = Place::new(
            "#!/bin/sh\ncase \"$*\" in *--version*) echo Toy 2; exit 0;; esac\necho 'no licence' >&2; exit 3\n",
        );
        let reason = place.ask(&[]).unwrap_err();
        assert!(
            reason.starts_with("Toy 2 cannot compile the MPI modules: ")
                && reason.ends_with("no licence"),
            "{reason}"
        );
        let left = fs::read_dir(place.folder.path().join("lib/portcullis/fortran")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert!(
            left.iter()
                .all(|name| text::from_os(name).ends_with(".lock")),
            "{left:?}"
        );
    }
}
