//! `cargo xtask install`: creates a relocatable installation.
//!
//! Layout: `bin/` programs, `include/` headers, `lib/` the library under its soname,
//! `lib/portcullis/` plugins,
//! `lib/portcullis/abi/` a link to the library, which mpirun adds to the search path of programs,
//! `lib/portcullis/compat/` the libraries for programs of other MPI ABIs,
//! `lib/portcullis/on/` the libraries for programs of the standard ABI on other libraries,
//! `lib/portcullis/openmpi/` the component for Open MPI, `lib/pkgconfig/`,
//! `lib/libmpifort_abi.so.1` the Fortran interface,
//! `share/portcullis/fortran/` the module sources, which `mpifort` compiles for each compiler,
//! `share/portcullis/python/` Python modules,
//! `share/` manual pages and shell completions: programs print their own,
//! and module `manual` generates the pages of MPI functions.
//! Each file is written under a temporary name and renamed, so running programs keep the old file.

use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::cargo::{Artifacts, Build, BuildError, Linking, Profile};
use crate::licences::{self, LicencesError};
use crate::manual;
use crate::process::{self, ProcessError};
use crate::ui::Steps;
use crate::workspace;

const LIBRARY_PACKAGE: &str = "mpi-abi-library";
/// The cargo packages of programs other than the launcher, and the programs' names.
const TOOL_PACKAGES: &[&str] = &["mpirun", "mpi-bench"];
const TOOLS: &[&str] = &["mpicc", "mpi-info", "mpi-ctl", "mpi-bench"];

const COMPILER_AND_LAUNCHER: &[&str] = &["mpicc", LAUNCHER];
const LAUNCHER: &str = "mpirun";

/// The programs that are built by separate cargo calls.
const APART: &[Apart] = &[
    // The launcher is copied to unknown machines, so it is linked statically;
    // a static program also starts faster.
    Apart {
        program: LAUNCHER,
        package: "mpirun",
        linking: Linking::static_if_possible,
    },
    // Built separately, so that the features
    // that only this program needs are not enabled in the library.
    Apart {
        program: "hwbarr",
        package: "hwbarr",
        linking: || Linking::Usual,
    },
];

/// A program that a separate cargo call builds.
struct Apart {
    program: &'static str,
    package: &'static str,
    linking: fn() -> Linking,
}

impl Apart {
    /// Returns the cargo call that builds only this program, otherwise with the settings of `usual`.
    fn of(&'static self, usual: &Build) -> Build<'static> {
        Build {
            profile: usual.profile,
            packages: std::slice::from_ref(&self.package),
            libraries: false,
            programs: std::slice::from_ref(&self.program),
            linking: (self.linking)(),
            folder: usual.folder.clone(),
        }
    }
}

/// The library without optional components: its package, and its file in cargo's folder.
const BARE: (&str, &str) = ("mpi-abi-bare", "libmpi_abi_bare.so");

/// The library: its file in cargo's folder, and its name in `lib`, which is the standard ABI's soname.
const LIBRARY: (&str, &str) = ("libmpi_abi_library.so", "libmpi_abi.so.1");

/// The Fortran interface: its package, its file in cargo's folder, and its name in `lib`.
const FORTRAN: (&str, &str, &str) = ("mpi-fortran", "libmpi_fortran.so", "libmpifort_abi.so.1");

/// The packages of those components that are also installed as plugin files.
const PLUGIN_PACKAGES: &[&str] = &["coll-hwbarr-plugin"];
const PLUGIN_MADE: &str = "libcoll_hwbarr_plugin.so";
/// The plugin's name in `lib/portcullis`, made of framework and component.
pub const PLUGIN: &str = "coll_hwbarr.so";

/// The packages of the compatibility libraries: for programs of other MPI ABIs,
/// and for programs of the standard ABI on other libraries.
const COMPAT_PACKAGES: &[&str] = &["compat-mpich", "compat-openmpi", "on-mpich", "on-openmpi"];
/// The compatibility libraries: file in cargo's folder, path in the installation.
/// Each has its own folder, which the loader searches only on request.
const COMPAT: &[(&str, &str)] = &[
    (
        "libcompat_mpich.so",
        "lib/portcullis/compat/mpich/libmpi.so.12",
    ),
    (
        "libcompat_openmpi.so",
        "lib/portcullis/compat/openmpi/libmpi.so.40",
    ),
    ("libon_mpich.so", "lib/portcullis/on/mpich/libmpi_abi.so.1"),
    (
        "libon_openmpi.so",
        "lib/portcullis/on/openmpi/libmpi_abi.so.1",
    ),
];

/// The audit library that redirects the loader's searches:
/// its source file, and its path in the installation.
const SEARCHER: (&str, &str) = (
    "compat/search.rs",
    "lib/portcullis/compat/libportcullis-search.so",
);
/// The audit library's compiler flags: without the standard library and the C library;
/// `compat/search.rs` explains the flags.
const SEARCHER_FLAGS: &[&str] = &[
    "--edition=2024",
    "--crate-type=cdylib",
    "--crate-name=portcullis_search",
    "-Copt-level=2",
    "-Cpanic=abort",
    "-Cstrip=debuginfo",
    "-Clink-arg=-nostdlib",
];

/// The packages that use the hardware barrier from other MPI libraries, under their own launchers.
const FOREIGN_PACKAGES: &[&str] = &[
    "coll-hwbarr-openmpi",
    "portcullis-preload",
    "portcullis-queues",
];
/// The files of [`FOREIGN_PACKAGES`]: file in cargo's folder, path in the installation.
/// Open MPI loads all files of the component's folder, so that folder contains no other file.
const FOREIGN: &[(&str, &str)] = &[
    (
        "libmca_coll_hwbarr.so",
        "lib/portcullis/openmpi/mca_coll_hwbarr.so",
    ),
    (
        "libportcullis_preload.so",
        "lib/portcullis/libportcullis-preload.so",
    ),
    // The library that debuggers load to show a rank's message queues.
    (
        "libportcullis_queues.so",
        "lib/portcullis/libportcullis-queues.so",
    ),
];

/// Links in an installation: (link, target).
const LINKS: &[(&str, &str)] = &[
    ("lib/libmpi_abi.so", "libmpi_abi.so.1"),
    // This folder is for library search paths, so it contains only this link.
    (
        "lib/portcullis/abi/libmpi_abi.so.1",
        "../../libmpi_abi.so.1",
    ),
    ("bin/mpiexec", "mpirun"),
    ("bin/mpicxx", "mpicc"),
    ("bin/mpic++", "mpicc"),
    // Meson searches for this name first, and would find that of another MPI library.
    ("bin/mpiCC", "mpicc"),
    ("bin/mpifort", "mpicc"),
    ("bin/mpif90", "mpicc"),
    ("bin/mpif77", "mpicc"),
    ("lib/libmpifort_abi.so", "libmpifort_abi.so.1"),
    ("share/man/man1/mpiexec.1", "mpirun.1"),
    ("share/man/man1/mpic++.1", "mpicxx.1"),
    ("share/man/man1/mpiCC.1", "mpicxx.1"),
    ("share/man/man1/mpif90.1", "mpifort.1"),
    ("share/man/man1/mpif77.1", "mpifort.1"),
];

/// Links beside the compatibility libraries, for MPICH's name in Debian and for names without a version.
const COMPAT_LINKS: &[(&str, &str)] = &[
    ("lib/portcullis/compat/mpich/libmpich.so.12", "libmpi.so.12"),
    ("lib/portcullis/compat/mpich/libmpi.so", "libmpi.so.12"),
    ("lib/portcullis/compat/openmpi/libmpi.so", "libmpi.so.40"),
];

/// Headers, Python modules and Fortran sources, as (path in the repository, path in the installation).
const HEADERS: &[(&str, &str)] = &[
    ("mpi-abi/include/mpi.h", "include/mpi.h"),
    ("mpi-abi/include/mpi-ext.h", "include/mpi-ext.h"),
    (
        "mpi-core/include/portcullis/plugin.h",
        "include/portcullis/plugin.h",
    ),
    (
        "mpi-core/include/portcullis/transport.h",
        "include/portcullis/transport.h",
    ),
    (
        "mpi-abi/python/portcullis_checkpoint.py",
        "share/portcullis/python/portcullis_checkpoint.py",
    ),
    ("fortran/include/mpif.h", "include/mpif.h"),
    (
        "fortran/modules/mpi.f90",
        "share/portcullis/fortran/mpi.f90",
    ),
    (
        "fortran/modules/mpi_f08.f90",
        "share/portcullis/fortran/mpi_f08.f90",
    ),
];

/// Names of the pkg-config files: those of MPICH, Debian and CMake's FindMPI.
const PKG_CONFIG: &[&str] = &["mpi.pc", "mpi-c.pc", "mpi-cxx.pc", FORTRAN_PKG_CONFIG];
const FORTRAN_PKG_CONFIG: &str = "mpi-fort.pc";

/// A linker script for build systems that link with `-lmpi`: its path and its text.
///
/// The file is not a link to the library. A program that opens `libmpi.so` at run time
/// expects another ABI; the loader skips a file that is not a library.
const PLAIN_NAME: (&str, &str) = (
    "lib/libmpi.so",
    "/* GNU ld script */\nINPUT ( -lmpi_abi )\n",
);

const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];
/// The folder of the licences in an installation.
pub const DOCUMENTS: &str = "share/doc/portcullis";

/// The manual pages that programs print, as (program, arguments); the page has the program's name.
const MANUALS: &[(&str, &[&str])] = &[
    ("mpirun", &["--generate", "man"]),
    ("mpicc", &["--showme:manual"]),
    ("mpicxx", &["--showme:manual"]),
    ("mpifort", &["--showme:manual"]),
    ("mpi-info", &["--generate", "man"]),
    ("mpi-ctl", &["--generate", "man"]),
    ("mpi-bench", &["--generate", "man"]),
    ("hwbarr", &["manual"]),
];

/// The shell completions that `mpirun --generate` prints, as (program, shell, path in the installation).
const COMPLETIONS: &[(&str, &str, &str)] = &[
    ("mpirun", "bash", "share/bash-completion/completions/mpirun"),
    ("mpirun", "zsh", "share/zsh/site-functions/_mpirun"),
    (
        "mpirun",
        "fish",
        "share/fish/vendor_completions.d/mpirun.fish",
    ),
    (
        "mpiexec",
        "bash",
        "share/bash-completion/completions/mpiexec",
    ),
    ("mpiexec", "zsh", "share/zsh/site-functions/_mpiexec"),
    (
        "mpiexec",
        "fish",
        "share/fish/vendor_completions.d/mpiexec.fish",
    ),
];

/// Time limit of a program that prints a manual page or shell completions.
const GENERATION: Duration = Duration::from_secs(20);

/// The optional parts of an installation.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The cargo profile of library and programs; tests use [`Profile::Tests`].
    pub profile: Profile,
    /// True to install the library without optional components instead of the usual library.
    pub bare: bool,
    /// True to add plugin files to `lib/portcullis`.
    pub plugins: bool,
    /// True to add the parts for other ABIs,
    /// other libraries and other launchers to `lib/portcullis`.
    pub others: bool,
    /// The programs in `bin`.
    pub programs: Programs,
}

/// The choice of programs in an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// All programs. A separate cargo call builds the launcher, if possible as a static program,
    /// because it is copied to unknown machines.
    All,
    /// Only `mpicc` and `mpirun`, built together with the library by one cargo call, which is quick.
    CompileAndRun,
}

impl Programs {
    /// Returns the programs that are built with the library by one cargo call.
    fn beside_the_library(self) -> &'static [&'static str] {
        match self {
            Self::All => TOOLS,
            Self::CompileAndRun => COMPILER_AND_LAUNCHER,
        }
    }

    /// Returns the programs that are built by separate cargo calls.
    fn apart(self) -> &'static [Apart] {
        match self {
            Self::All => APART,
            Self::CompileAndRun => &[],
        }
    }
}

/// The files that the cargo builds produced.
struct Made {
    /// The libraries, and the programs built with them.
    usual: Artifacts,
    /// The names of the programs built with the libraries.
    beside: Vec<&'static str>,
    /// The programs built by separate cargo calls.
    apart: Separate,
    /// The library without optional components.
    bare: Option<Artifacts>,
}

/// The reason why an installation is incomplete.
#[derive(Debug)]
pub enum InstallError {
    /// cargo failed.
    Build(BuildError),
    /// The licences of the linked packages could not be collected.
    Licences(LicencesError),
    /// The tables of MPI functions are inconsistent.
    Tables(String),
    /// A compiler, or a program that prints a manual page or completions, failed or timed out.
    Generate(ProcessError),
    /// A file could not be copied or its folder created; files installed before are complete.
    File {
        /// The verb of the failed action after "cannot", such as "remove".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::Licences(error) => error.fmt(f),
            Self::Generate(error) => error.fmt(f),
            Self::Tables(reason) => f.write_str(reason),
            Self::File {
                action,
                path,
                reason,
            } => write!(f, "cannot {action} {}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for InstallError {}

impl From<BuildError> for InstallError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> InstallError {
    move |reason| InstallError::File {
        action,
        path: path.to_owned(),
        reason,
    }
}

/// Runs `cargo xtask install`: builds, installs and prints the layout.
pub fn run(prefix: &Path, profile: Profile, fortran: &[String]) -> Result<(), InstallError> {
    let prefix = std::path::absolute(prefix).map_err(failed("find", prefix))?;
    // The build takes minutes, so what would fail after it is checked before it.
    check_folder(&prefix)?;
    fortran.iter().try_for_each(|name| check_compiler(name))?;
    let mut steps = Steps::new(2 + fortran.len());
    let contents = Contents {
        profile,
        bare: false,
        plugins: true,
        others: true,
        programs: Programs::All,
    };
    let made = steps.step("building the library, the launcher and the tools", || {
        build(&contents)
    })?;
    steps.step(format!("installing into {}", prefix.display()), || {
        place(&made, &contents, &prefix)
    })?;
    for compiler in fortran {
        steps.step(
            format!("compiling the Fortran modules for {compiler}"),
            || compile_modules(&prefix, compiler),
        )?;
    }
    println!("installed into {}", prefix.display());
    println!("  compile: {}/bin/mpicc -o hello hello.c", prefix.display());
    println!("  run:     {}/bin/mpirun -n 4 ./hello", prefix.display());
    Ok(())
}

/// Creates a folder, and checks that files can be written into it.
pub fn check_folder(folder: &Path) -> Result<(), InstallError> {
    fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    let file = tempfile::tempfile_in(folder);
    file.map(drop).map_err(failed("write into", folder))
}

/// Checks that a compiler, possibly with arguments, can be run.
fn check_compiler(name: &str) -> Result<(), InstallError> {
    let program = name.split_whitespace().next().unwrap_or(name);
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    let outcome = command.output();
    outcome
        .map(drop)
        .map_err(failed("run the compiler", Path::new(program)))
}

/// Runs `mpifort` so that it compiles the Fortran modules now instead of at its first use.
fn compile_modules(prefix: &Path, compiler: &str) -> Result<(), InstallError> {
    let mut command = Command::new(prefix.join("bin/mpifort"));
    command.arg(format!("-fc={compiler}")).arg("-show");
    process::output(&mut command, GENERATION)
        .map(drop)
        .map_err(InstallError::Generate)
}

/// Builds and installs without printing; the tests use this function.
pub fn install(prefix: &Path, contents: &Contents) -> Result<(), InstallError> {
    let made = build(contents)?;
    place(&made, contents, prefix)
}

fn build(contents: &Contents) -> Result<Made, InstallError> {
    let mut libraries = vec![LIBRARY_PACKAGE, FORTRAN.0];
    let mut tools = TOOL_PACKAGES.to_vec();
    if contents.others {
        libraries.extend(COMPAT_PACKAGES);
        tools.extend(FOREIGN_PACKAGES);
    }
    if contents.plugins {
        tools.extend(PLUGIN_PACKAGES);
    }
    let mut programs = contents.programs.beside_the_library().to_vec();
    let mut apart = contents.programs.apart();
    if contents.profile == Profile::Tests {
        // The tests build everything in one call: separate cargo calls would enable other features.
        programs.extend(apart.iter().map(|apart| apart.program));
        apart = &[];
    }
    let libraries = Build {
        profile: contents.profile,
        packages: &libraries,
        libraries: true,
        programs: &[],
        linking: Linking::Usual,
        folder: contents.profile.folder(),
    };
    let tools = Build {
        profile: match contents.profile {
            Profile::Release => Profile::Tools,
            other => other,
        },
        packages: &tools,
        programs: &programs,
        ..libraries.clone()
    };
    // The bare library is built by a separate cargo call: in a common call,
    // feature unification would add the components of the full library.
    let bare = Build {
        packages: &[BARE.0],
        ..libraries.clone()
    };
    let (usual, apart) = match libraries.profile == tools.profile {
        true => (together(&libraries, &tools)?, each(apart, &tools)?),
        false => beside_each_other(&libraries, &tools, apart)?,
    };
    Ok(Made {
        usual,
        beside: programs.clone(),
        apart,
        bare: contents.bare.then(|| bare.run()).transpose()?,
    })
}

/// The programs that are built by separate cargo calls, with their names.
type Separate = Vec<(&'static str, Artifacts)>;

fn each(programs: &'static [Apart], usual: &Build) -> Result<Separate, BuildError> {
    programs
        .iter()
        .map(|apart| Ok((apart.program, apart.of(usual).run()?)))
        .collect()
}

/// Builds libraries and tools by one cargo call, so that common dependencies are compiled once.
fn together(libraries: &Build, tools: &Build) -> Result<Artifacts, BuildError> {
    let all = Build {
        packages: &[libraries.packages, tools.packages].concat(),
        ..tools.clone()
    };
    all.run()
}

/// Builds libraries and programs concurrently, because link-time optimisation uses one thread for about a minute.
fn beside_each_other(
    libraries: &Build,
    tools: &Build,
    apart: &'static [Apart],
) -> Result<(Artifacts, Separate), BuildError> {
    thread::scope(|scope| {
        let programs = scope.spawn(|| Ok::<_, BuildError>((tools.run()?, each(apart, tools)?)));
        let libraries = libraries.run();
        let programs = programs.join().unwrap_or_else(|panic| resume_unwind(panic));
        let (tools, apart) = programs?;
        Ok((libraries?.and(tools), apart))
    })
}

fn place(made: &Made, contents: &Contents, prefix: &Path) -> Result<(), InstallError> {
    let beside = made.beside.iter().map(|name| (*name, &made.usual));
    let apart = made.apart.iter().map(|(name, made)| (*name, made));
    for (name, made) in beside.chain(apart) {
        copy(made.file(name)?, &prefix.join("bin").join(name))?;
    }
    let library = match &made.bare {
        Some(made) => made.file(BARE.1)?,
        None => made.usual.file(LIBRARY.0)?,
    };
    copy(library, &prefix.join("lib").join(LIBRARY.1))?;
    let fortran = made.usual.file(FORTRAN.1)?;
    copy(fortran, &prefix.join("lib").join(FORTRAN.2))?;
    for (made_as, to) in COMPAT.iter().chain(FOREIGN) {
        match contents.others {
            true => copy(made.usual.file(made_as)?, &prefix.join(to))?,
            false => remove(&prefix.join(to))?,
        }
    }
    if contents.others {
        make_searcher(&prefix.join(SEARCHER.1))?;
    }
    let plugin = prefix.join("lib/portcullis").join(PLUGIN);
    make_folder_of(&plugin)?;
    match contents.plugins {
        true => copy(made.usual.file(PLUGIN_MADE)?, &plugin)?,
        false => remove(&plugin)?,
    }
    for (from, to) in HEADERS {
        let from = workspace::root().join(from);
        // The plugin header exists only if the plugin interface is installed.
        if from.exists() {
            copy(&from, &prefix.join(to))?;
        }
    }
    let compat_links: &[_] = if contents.others { COMPAT_LINKS } else { &[] };
    if !contents.others {
        for gone in COMPAT_LINKS
            .iter()
            .map(|(link, _)| link)
            .chain([&SEARCHER.1])
        {
            remove(&prefix.join(gone))?;
        }
    }
    for (link, target) in LINKS.iter().chain(compat_links) {
        let link = prefix.join(link);
        replace(&link, |fresh| symlink(target, fresh))?;
    }
    for (name, what, file) in COMPLETIONS {
        generate(prefix, name, &["--generate", what], file)?;
    }
    make_manuals(prefix)?;
    for name in PKG_CONFIG {
        let description = prefix.join("lib/pkgconfig").join(name);
        replace(&description, |fresh| fs::write(fresh, pkg_config(name)))?;
    }
    let plain = prefix.join(PLAIN_NAME.0);
    replace(&plain, |fresh| fs::write(fresh, PLAIN_NAME.1))?;
    for name in LICENCES {
        let text = workspace::root().join(name);
        copy(&text, &prefix.join(DOCUMENTS).join(name))?;
    }
    let others = prefix.join(DOCUMENTS).join(licences::OF_OTHERS);
    // The licence text depends only on the packages in the lock file.
    if is_newer(&others, &workspace::root().join("Cargo.lock")) {
        return Ok(());
    }
    let texts = licences::of_others().map_err(InstallError::Licences)?;
    replace(&others, |fresh| fs::write(fresh, &texts))
}

/// Writes the output of an installed program, called with these arguments, to `file`.
fn generate(prefix: &Path, name: &str, args: &[&str], file: &str) -> Result<(), InstallError> {
    let mut command = Command::new(prefix.join("bin").join(name));
    command.args(args);
    let made = process::output(&mut command, GENERATION).map_err(InstallError::Generate)?;
    write(&prefix.join(file), &made.stdout)
}

fn make_manuals(prefix: &Path) -> Result<(), InstallError> {
    for (name, args) in MANUALS {
        if prefix.join("bin").join(name).exists() {
            generate(prefix, name, args, &format!("share/man/man1/{name}.1"))?;
        }
    }
    for page in manual::pages().map_err(InstallError::Tables)? {
        write(&prefix.join(manual::FOLDER).join(page.file), &page.text)?;
    }
    Ok(())
}

/// Writes a text to a file, unless the file already has this text.
fn write(to: &Path, text: &str) -> Result<(), InstallError> {
    if fs::read_to_string(to).is_ok_and(|old| old == text) {
        return Ok(());
    }
    replace(to, |fresh| fs::write(fresh, text))
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    matches!((time(file), time(than)), (Some(a), Some(b)) if a > b)
}

fn make_searcher(to: &Path) -> Result<(), InstallError> {
    make_folder_of(to)?;
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let scratch = tempfile::tempdir().map_err(failed("make a folder for", to))?;
    let made = scratch.path().join("made.so");
    let mut command = Command::new(compiler);
    command
        .args(SEARCHER_FLAGS)
        .arg("-o")
        .arg(&made)
        .arg(workspace::root().join(SEARCHER.0));
    process::output(&mut command, GENERATION).map_err(InstallError::Generate)?;
    copy(&made, to)
}

/// Removes a file that an earlier installation with more parts may have left.
fn remove(file: &Path) -> Result<(), InstallError> {
    match fs::remove_file(file) {
        Err(reason) if reason.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("remove", file)(reason))
        }
        _ => Ok(()),
    }
}

/// Returns a relocatable pkg-config file, whose paths are relative to the file's location.
fn pkg_config(file: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let name = file.trim_end_matches(".pc");
    let libraries = match file {
        FORTRAN_PKG_CONFIG => "-lmpifort_abi -lmpi_abi",
        _ => "-lmpi_abi",
    };
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: {name}\n\
         Description: Portcullis, an MPI library with the MPI 5.0 standard ABI\n\
         Version: {version}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} {libraries}\n"
    )
}

fn make_folder_of(path: &Path) -> Result<(), InstallError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed("make", folder))
}

/// Copies a file that may be a program, unless the target is already identical.
fn copy(from: &Path, to: &Path) -> Result<(), InstallError> {
    make_folder_of(to)?;
    let same = matches!((fs::read(from), fs::read(to)), (Ok(a), Ok(b)) if a == b);
    if same {
        return Ok(());
    }
    replace(to, |fresh| {
        process::copy_program(from, fresh).map_err(std::io::Error::other)
    })
}

/// Writes a file under a temporary name and renames it.
fn replace(to: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), InstallError> {
    make_folder_of(to)?;
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let fresh = to.with_file_name(name);
    make(&fresh).map_err(failed("write", &fresh))?;
    fs::rename(&fresh, to).map_err(failed("put into place", to))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of `cargo metadata` that this test uses.
    #[derive(serde::Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }

    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        targets: Vec<Target>,
    }

    #[derive(serde::Deserialize)]
    struct Target {
        kind: Vec<String>,
        name: String,
    }

    fn metadata() -> Metadata {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--offline", "--no-deps", "--format-version=1"]);
        let output = process::output(cargo.current_dir(workspace::root()), GENERATION);
        serde_json::from_str(&output.expect("metadata").stdout).expect("JSON")
    }

    /// Only releases make the separate cargo calls; the tests' installation builds all packages by one call.
    #[test]
    fn calls_for_one_program_name_only_what_its_package_has() {
        let metadata = metadata();
        let usual = Build {
            profile: Profile::Tools,
            packages: TOOL_PACKAGES,
            libraries: true,
            programs: TOOLS,
            linking: Linking::Usual,
            folder: PathBuf::new(),
        };
        for apart in APART {
            let build = apart.of(&usual);
            let package = metadata.packages.iter().find(|p| p.name == apart.package);
            let targets = &package.expect("a package of the workspace").targets;
            let is_kind = |target: &Target, kind: &str| target.kind.iter().any(|is| is == kind);
            for program in build.programs {
                let has = |t: &Target| t.name == *program && is_kind(t, "bin");
                assert!(targets.iter().any(has), "{} of {}", program, apart.package);
            }
            let has_library = targets.iter().any(|t| is_kind(t, "lib"));
            assert!(has_library || !build.libraries, "{}", apart.package);
        }
    }

    #[test]
    fn replacing_leaves_only_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/file");
        for text in ["one", "two"] {
            replace(&path, |fresh| fs::write(fresh, text)).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path().join("sub")).unwrap().count(), 1);
    }

    #[test]
    fn a_link_can_be_replaced_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        for target in ["a", "b"] {
            replace(&link, |fresh| symlink(target, fresh)).unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(target));
        }
    }

    /// The folder and the compilers are checked before the build, which takes minutes.
    #[test]
    fn what_would_fail_after_the_build_is_refused_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = |prefix: &Path, fortran: &[&str]| {
            let fortran: Vec<String> = fortran.iter().map(|name| (*name).to_owned()).collect();
            let refused = run(prefix, Profile::Release, &fortran).unwrap_err();
            refused.to_string()
        };
        let told = refused(&file, &[]);
        let expected = format!("cannot make the folder {}: ", file.display());
        assert!(told.starts_with(&expected), "{told}");
        assert!(refused(Path::new("/proc/nowhere"), &[]).contains("/proc/nowhere"));
        let told = refused(folder.path(), &["no-such-compiler -m64"]);
        assert!(
            told.starts_with("cannot run the compiler no-such-compiler: "),
            "{told}"
        );
        // The check leaves nothing in the folder.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_refusal_names_the_file() {
        let error = replace(Path::new("/proc/nowhere/file"), |_| Ok(()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("/proc/nowhere"), "{error}");
    }
}
