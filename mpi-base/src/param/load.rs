//! Loading of parameter values: the environment and two files are merged into a [`Params`].

use super::value::Value;
use super::{About, Param, ParamError};
use crate::{environment, text};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// The prefix of the environment variables of parameters.
pub const PREFIX: &str = "PORTCULLIS_MCA_";

/// Environment variable: the parameters set by `mpirun --mca`, separated by commas.
pub const MARKER: &str = "PORTCULLIS_MPIRUN_MCA";

/// The source of a value. If two sources set the same parameter, the greater one takes precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// No source has set the parameter; the value is the declared default.
    Default,
    /// The installation's file, `<prefix>/etc/portcullis-mca-params.conf`.
    SystemFile(String),
    /// The user's file, `~/.portcullis/mca-params.conf`.
    UserFile(String),
    /// The environment variable `PORTCULLIS_MCA_<name>`, unless [`MARKER`] names the parameter.
    Environment,
    /// The option `mpirun --mca name value`, which sets the environment variable and [`MARKER`].
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => write!(f, "default"),
            Source::SystemFile(path) | Source::UserFile(path) => {
                write!(f, "file {}", printable::name(path))
            }
            Source::Environment => write!(f, "environment"),
            Source::CommandLine => write!(f, "command line"),
        }
    }
}

/// The paths of the parameter files; a file that does not exist sets nothing.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The user's file, `~/.portcullis/mca-params.conf`; `None` if there is no home directory.
    pub user: Option<PathBuf>,
    /// The installation's file, `<prefix>/etc/portcullis-mca-params.conf`.
    /// `None` if the installation is unknown.
    pub system: Option<PathBuf>,
}

impl Files {
    /// Returns the paths of the parameter files for a home directory and an installation prefix.
    pub fn standard(home: Option<&Path>, prefix: Option<&Path>) -> Files {
        Files {
            user: home.map(|home| home.join(".portcullis/mca-params.conf")),
            system: prefix.map(|prefix| prefix.join("etc/portcullis-mca-params.conf")),
        }
    }
}

#[derive(Clone, Debug)]
struct Setting {
    value: String,
    source: Source,
}

/// The user's settings from all sources.
#[derive(Clone, Debug, Default)]
pub struct Params {
    settings: BTreeMap<String, Setting>,
    complaints: Vec<ParamError>,
}

impl Params {
    /// Merges the settings of the environment and of the files.
    ///
    /// Loading always succeeds. Malformed lines and unreadable files are in [`Params::complaints`].
    pub fn load(env: impl IntoIterator<Item = (OsString, OsString)>, files: &Files) -> Params {
        let mut params = Params::default();
        let mut from_mpirun = BTreeSet::new();
        let mut from_env = Vec::new();
        for (name, value) in env {
            let value = text::from_os(value);
            if name == OsStr::new(MARKER) {
                from_mpirun.extend(value.split(',').map(str::to_string));
            } else if let Some(name) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) {
                from_env.push((name.to_string(), value));
            }
        }
        if let Some(path) = &files.system {
            params.read_file(path, Source::SystemFile);
        }
        if let Some(path) = &files.user {
            params.read_file(path, Source::UserFile);
        }
        for (name, value) in from_env {
            let source = if from_mpirun.contains(&name) {
                Source::CommandLine
            } else {
                Source::Environment
            };
            params.set(&name, &value, source);
        }
        params
    }

    /// Merges the settings of this process's environment and of the standard files.
    /// `prefix` is the installation, if known.
    ///
    /// A program that has more rights than its user ([`environment`]) ignores the user's settings.
    /// It reads only the installation's file. Otherwise its user could make it load any plugin.
    pub fn from_process(prefix: Option<&Path>) -> Params {
        let home = environment::var("HOME").filter(|home| !home.is_empty());
        Params::load(
            environment::all(),
            &Files::standard(home.as_deref().map(Path::new), prefix),
        )
    }

    /// Sets a value unless a source with precedence has already set it;
    /// of two values from the same source, the last one is used.
    pub fn set(&mut self, name: &str, value: &str, source: Source) {
        match self.settings.get(name) {
            Some(present) if present.source > source => {}
            _ => {
                let value = value.to_string();
                self.settings
                    .insert(name.to_string(), Setting { value, source });
            }
        }
    }

    /// Returns the value of a parameter.
    pub fn get<T: Value>(&self, param: &Param<T>) -> Result<T, ParamError> {
        let about = param.about();
        T::parse(self.text(about)).map_err(|expected| self.malformed(about, expected))
    }

    /// Checks that a parameter's value has the parameter's type.
    pub fn check(&self, about: &About) -> Result<(), ParamError> {
        let text = self.text(about);
        let checked = match about.check {
            Some(check) => check(text),
            None => about.kind.check(text),
        };
        checked.map_err(|expected| self.malformed(about, expected))
    }

    fn malformed(&self, about: &About, expected: String) -> ParamError {
        ParamError::Malformed {
            name: about.full_name(),
            value: self.text(about).to_string(),
            source: self.source(about),
            expected,
        }
    }

    /// Returns the value of a parameter as text.
    pub fn text<'a>(&'a self, about: &'a About) -> &'a str {
        self.setting(about)
            .map_or(about.default, |setting| &setting.value)
    }

    /// Returns the source of a parameter's value.
    pub fn source(&self, about: &About) -> Source {
        self.setting(about)
            .map_or(Source::Default, |setting| setting.source.clone())
    }

    /// Returns the setting of a parameter, if a source has set it. The search is linear:
    /// users set few parameters, so the search costs less than building a key.
    fn setting(&self, about: &About) -> Option<&Setting> {
        let mut set = self.settings.iter();
        set.find(|(name, _)| about.is_called(name))
            .map(|(_, setting)| setting)
    }

    /// Returns all settings sorted by name, as `(name, value, source)`.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str, &Source)> {
        self.settings
            .iter()
            .map(|(name, setting)| (name.as_str(), setting.value.as_str(), &setting.source))
    }

    /// Returns the lines that could not be parsed and the files that could not be read.
    pub fn complaints(&self) -> &[ParamError] {
        &self.complaints
    }

    fn read_file(&mut self, path: &Path, source: fn(String) -> Source) {
        let file = text::from_os(path);
        let text = match std::fs::read(path) {
            Ok(bytes) => text::from_file(&bytes),
            // If the home directory is not accessible, the file counts as missing.
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound
                        | std::io::ErrorKind::PermissionDenied
                        | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return;
            }
            Err(error) => {
                let reason = error.to_string();
                self.complaints
                    .push(ParamError::Unreadable { file, reason });
                return;
            }
        };
        self.read_lines(&file, &text, source);
    }

    /// Applies the settings in a file's lines; malformed lines become complaints.
    pub(crate) fn read_lines(&mut self, file: &str, text: &str, source: fn(String) -> Source) {
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() => {
                    self.set(name.trim(), value.trim(), source(file.to_owned()));
                }
                _ => self.complaints.push(ParamError::BadLine {
                    file: file.to_owned(),
                    line: number + 1,
                    text: line.to_string(),
                }),
            }
        }
    }
}
