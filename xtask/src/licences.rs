//! Collects the licences of the third-party packages that an installation links into one text.
//!
//! Most packages have MIT or Apache-2.0, which require their text with every copy.
//! The texts are read from the packages in cargo's source folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::process::{self, ProcessError};
use crate::workspace;

/// The name of the file with the licence texts in an installation.
pub const OF_OTHERS: &str = "LICENSES-OF-OTHERS";

/// Time limit for `cargo metadata`, which fetches the packages that no build has needed yet.
const LIMIT: Duration = Duration::from_secs(10 * 60);

const FILES: [&str; 5] = ["license", "licence", "copying", "copyright", "notice"];

/// Reasons why the licences could not be collected.
#[derive(Debug)]
pub enum LicencesError {
    /// `cargo metadata` failed.
    Cargo(ProcessError),
    /// The output of `cargo metadata` is not valid JSON.
    Metadata(serde_json::Error),
    /// A package's folder, or a file in it, could not be read.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
}

impl fmt::Display for LicencesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cargo(error) => error.fmt(f),
            Self::Metadata(error) => write!(f, "cargo's metadata cannot be read: {error}"),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for LicencesError {}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> LicencesError {
    move |reason| LicencesError::File {
        path: path.to_owned(),
        reason,
    }
}

/// The fields of `cargo metadata` that this module uses.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// The registry; `None` for a package of this project.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for a normal (linked) dependency; otherwise "dev" or "build".
    kind: Option<String>,
}

const NOT_INSTALLED: [&str; 2] = ["tests", "xtask"];

/// Returns the licences of all third-party packages that an installation links;
/// packages with the same text share one copy.
pub fn of_others() -> Result<String, LicencesError> {
    let metadata = metadata()?;
    let by_id: BTreeMap<&str, &Package> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package))
        .collect();
    let linked = linked(&metadata, &by_id);
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in &linked {
        let terms = package
            .license
            .as_deref()
            .unwrap_or("terms in its own file");
        let title = format!("{} {}", package.name, package.version);
        let _ = writeln!(list, "  {title}: {terms}");
        for text in texts(package)? {
            users.entry(text).or_default().push(title.clone());
        }
    }
    let mut all = format!(
        "Portcullis contains parts of these packages, and of Rust's standard library (MIT OR Apache-2.0):\n\n{list}\n\
         Their terms, as each package has them:\n"
    );
    for (text, users) in users {
        let _ = write!(
            all,
            "\n{}\n{}:\n\n{text}\n",
            "-".repeat(78),
            users.join(", ")
        );
    }
    Ok(all)
}

fn metadata() -> Result<Metadata, LicencesError> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        // Not `--offline`: the metadata include packages of the tests, which a build of the installation has not fetched.
        .args(["metadata", "--format-version=1", "--locked"])
        .arg(format!(
            "--filter-platform={}-unknown-linux-gnu",
            std::env::consts::ARCH
        ));
    let said = process::output(&mut cargo, LIMIT).map_err(LicencesError::Cargo)?;
    serde_json::from_str(&said.stdout).map_err(LicencesError::Metadata)
}

/// Returns the third-party packages that the installed packages link, directly or indirectly, sorted by name.
fn linked<'a>(metadata: &Metadata, by_id: &BTreeMap<&str, &'a Package>) -> Vec<&'a Package> {
    let dependencies: BTreeMap<&str, &Vec<Dependency>> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), &node.deps))
        .collect();
    let is_installed = |id: &&str| {
        by_id
            .get(id)
            .is_some_and(|package| !NOT_INSTALLED.contains(&&*package.name))
    };
    let members = metadata.workspace_members.iter().map(String::as_str);
    let mut open: Vec<&str> = members.filter(is_installed).collect();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            let below = dependencies
                .get(id)
                .into_iter()
                .flat_map(|list| list.iter());
            let linked = below.filter(|one| one.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            open.extend(linked.map(|one| one.pkg.as_str()));
        }
    }
    let packages = reached.iter().filter_map(|id| by_id.get(id).copied());
    let mut of_others: Vec<&Package> = packages
        .filter(|package| package.source.is_some())
        .collect();
    of_others.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    of_others
}

fn texts(package: &Package) -> Result<Vec<String>, LicencesError> {
    let folder = package.manifest_path.parent().unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        if FILES.iter().any(|begin| name.starts_with(begin)) && path.is_file() {
            let bytes = fs::read(&path).map_err(file(&path))?;
            found.push(String::from_utf8_lossy(&bytes).trim_end().to_owned());
        }
    }
    Ok(found)
}
