//! Runs cargo builds and returns the paths of the files that they produce.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::workspace;

/// The cargo profile of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// cargo's `dev` with all features that the tests need, in cargo's own target folder.
    /// The compilation equals that of `cargo test --workspace`, so no package is compiled twice.
    Tests,
    /// cargo's `dev`, which compiles quickly.
    Dev,
    /// Compiles quickly and runs nearly as fast as a release; for the demo.
    Demo,
    /// cargo's `release`, with link-time optimisation:
    /// libraries that users install or that are measured.
    Release,
    /// A release without link-time optimisation, for programs and plugins that transfer no messages.
    Tools,
}

impl Profile {
    /// Returns the profile's name in the workspace's `Cargo.toml`, or in cargo.
    fn name(self) -> &'static str {
        match self {
            Self::Tests | Self::Dev => "dev",
            Self::Demo => "demo",
            Self::Release => "release",
            Self::Tools => "tools",
        }
    }

    /// Returns the target folder of a build with this profile; only tests use cargo's usual folder.
    ///
    /// An installation and `cargo build` have different flags (`path_flags`);
    /// in one folder each would invalidate the other's files.
    pub fn folder(self) -> PathBuf {
        match self {
            Self::Tests => workspace::target(),
            Self::Dev | Self::Demo | Self::Release | Self::Tools => {
                workspace::target().join("products")
            }
        }
    }
}

/// Returns compiler flags that remap the builder's paths to `portcullis/` and `cargo/`.
/// Panic messages and line tables contain such paths.
fn path_flags() -> Vec<OsString> {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let folders = [
        (Some(workspace::root().to_owned()), "portcullis"),
        (cargo_home, "cargo"),
    ];
    let remap = folders.into_iter().filter_map(|(folder, name)| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(folder?);
        flag.push("=");
        flag.push(name);
        Some(flag)
    });
    // The flags of the caller's `RUSTFLAGS` are kept.
    let asked = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    let asked = asked.into_string().unwrap_or_default();
    asked
        .split_whitespace()
        .map(OsString::from)
        .chain(remap)
        .collect()
}

/// The linkage of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// rustc's default: dynamic linkage with the C library.
    Usual,
    /// Static linkage with the C library, so that the program runs on any machine;
    /// for a single program of a single package.
    Static,
}

impl Linking {
    /// Returns `Static` if the C library's archive is installed;
    /// some distributions have it in a separate package.
    pub fn static_if_possible() -> Linking {
        let mut compiler = Command::new("cc");
        compiler.arg("-print-file-name=libc.a");
        // A compiler that finds the archive prints its path; otherwise it prints the bare name.
        let found = compiler
            .output()
            .is_ok_and(|said| said.stdout.contains(&b'/'));
        match found {
            true => Linking::Static,
            false => Linking::Usual,
        }
    }
}

/// cargo arguments of [`Profile::Tests`]. cargo unifies the features of all selected packages.
/// So all packages are selected, and features that only their tests need are named.
const AS_TESTED: &[&str] = &[
    "--workspace",
    "--features",
    "mpi-core/testing,barrier-driver/async,barrier-driver/suite",
];

/// The packages and programs of a build.
#[derive(Clone, Debug)]
pub struct Build<'a> {
    /// The profile of the build.
    pub profile: Profile,
    /// Names of the workspace's packages, as for `cargo build -p`.
    /// [`Profile::Tests`] builds all other packages too.
    pub packages: &'a [&'a str],
    /// True to build the libraries of these packages; at least one package must have a library.
    pub libraries: bool,
    /// Names of programs of these packages.
    pub programs: &'a [&'a str],
    /// How the programs are linked; [`Linking::Static`] requires one package with one program.
    pub linking: Linking,
    /// The target folder.
    pub folder: PathBuf,
}

/// Reasons why a build fails.
#[derive(Debug)]
pub enum BuildError {
    /// `cargo`, or the program in the variable `CARGO`, could not be started.
    Start(std::io::Error),
    /// The compilation failed; the compiler's messages are on the terminal.
    Failed {
        /// The packages, separated by commas.
        packages: String,
    },
    /// cargo reported no product of this name: the package has no such target.
    Missing {
        /// The name of the product.
        file: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(reason) => write!(f, "cannot start cargo: {reason}"),
            Self::Failed { packages } => write!(
                f,
                "cargo could not build {packages}; its messages are above"
            ),
            Self::Missing { file } => write!(
                f,
                "cargo built everything that was asked for but made no {file}"
            ),
        }
    }
}

impl std::error::Error for BuildError {}

/// The files that a build produced.
#[derive(Debug, Default)]
pub struct Artifacts(Vec<PathBuf>);

impl Artifacts {
    /// Returns the files of both builds.
    pub fn and(mut self, others: Artifacts) -> Artifacts {
        self.0.extend(others.0);
        self
    }

    /// Returns the path of the file with this name.
    pub fn file(&self, name: &str) -> Result<&Path, BuildError> {
        self.0
            .iter()
            .map(PathBuf::as_path)
            .find(|path| path.file_name().is_some_and(|f| f == name))
            .ok_or_else(|| BuildError::Missing {
                file: name.to_owned(),
            })
    }
}

/// The fields of cargo's JSON messages that this module uses.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

impl Build<'_> {
    /// Builds libraries and programs; cargo prints its own progress.
    pub fn run(&self) -> Result<Artifacts, BuildError> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(workspace::root())
            .arg(match self.linking {
                Linking::Usual => "build",
                Linking::Static => "rustc",
            })
            .args(self.libraries.then_some("--lib"))
            .arg("--message-format=json-render-diagnostics");
        match self.profile {
            Profile::Tests => drop(command.args(AS_TESTED)),
            Profile::Dev | Profile::Demo | Profile::Release | Profile::Tools => {
                for package in self.packages {
                    command.args(["-p", package]);
                }
                // Unlike `RUSTFLAGS`, this variable allows spaces in folder names.
                let flags = path_flags().join(OsStr::new("\x1f"));
                command.env("CARGO_ENCODED_RUSTFLAGS", flags);
            }
        }
        for program in self.programs {
            command.args(["--bin", program]);
        }
        command.args(["--profile", self.profile.name()]);
        command.arg("--target-dir").arg(&self.folder);
        if self.linking == Linking::Static {
            command.args(["--", "-C", "target-feature=+crt-static"]);
        }
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(BuildError::Start)?;
        if !output.status.success() {
            return Err(BuildError::Failed {
                packages: self.packages.join(", "),
            });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(artifacts(&text))
    }
}

fn artifacts(messages: &str) -> Artifacts {
    let files = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact")
        .flat_map(|message| message.filenames.into_iter().chain(message.executable));
    Artifacts(files.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_programs_are_found_by_their_names() {
        let made = artifacts(concat!(
            r#"{"reason":"compiler-artifact","filenames":["/t/liba.so","/t/liba.rlib"],"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","filenames":["/t/b"],"executable":"/t/b"}"#,
            "\nnot json\n",
            r#"{"reason":"build-finished","success":true}"#
        ));
        assert_eq!(made.file("liba.so").unwrap(), Path::new("/t/liba.so"));
        assert_eq!(made.file("b").unwrap(), Path::new("/t/b"));
        assert!(
            made.file("c")
                .unwrap_err()
                .to_string()
                .contains("made no c")
        );
    }
}
