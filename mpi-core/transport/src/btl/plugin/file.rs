//! Search and loading of a transport's plugin file, and the check of its table.
#![allow(unsafe_code)]

use mpi_base::installation;
use mpi_base::param::{About, Kind, Level, Params};
use mpi_base::plugin_file::folders::{self, Places};
use mpi_base::plugin_file::open::{self, Identity};
use mpi_base::plugin_file::{
    Manifest, ManifestError, OpenError, Trust, Untrusted, guarded, reported,
};
use mpi_base::state::{FileCall, StatePage};
use portcullis_plugin::btl::abi::{self, SYMBOL};
use portcullis_plugin::btl::{Transport as Guest, table};
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::path::{Path, PathBuf};

/// The name of the framework in the file names of transports' plugins (`btl_NAME.so`).
const FRAMEWORK: &str = "btl";
/// Maximum number of parameters of a transport; it limits the reads if the table contains garbage.
const MOST_PARAMS: usize = 256;

/// A transport plugin whose table has been checked.
#[derive(Clone)]
pub struct Plugin {
    pub name: &'static str,
    pub version: &'static str,
    pub exclusivity: u32,
    pub eager: usize,
    pub longest: usize,
    pub poll_is_syscall: bool,
    pub params: &'static [About],
    pub file: PathBuf,
    pub table: abi::Transport,
}

/// The reason why a transport's plugin file is unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// No folder in the search order has a file for this name.
    Missing,
    /// Untrusted users can write the file or its folder.
    Untrusted(PathBuf, Untrusted),
    Manifest(PathBuf, ManifestError),
    Open(PathBuf, OpenError),
    /// The table is invalid; the text gives the reason.
    Table(PathBuf, String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Missing => {
                f.write_str("no folder of the parameter mca_component_path has its file")
            }
            FileError::Untrusted(path, _)
            | FileError::Manifest(path, _)
            | FileError::Open(path, _)
            | FileError::Table(path, _) => write!(f, "{}: {}", path.display(), self.reason()),
        }
    }
}

impl FileError {
    /// Returns the reason without the path.
    pub fn reason(&self) -> String {
        match self {
            FileError::Missing => self.to_string(),
            FileError::Untrusted(_, why) => why.to_string(),
            FileError::Manifest(_, why) => why.to_string(),
            FileError::Open(_, why) => why.to_string(),
            FileError::Table(_, why) => why.clone(),
        }
    }
}

impl std::error::Error for FileError {}

/// A transport's plugin file as its manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub file: PathBuf,
    /// The transport's version, or the reason why the file is unusable.
    pub version: Result<String, FileError>,
}

/// Lists the plugin files of transports by their manifests, without loading the files.
pub fn list(params: &Params) -> Vec<Found> {
    let search = Search::of_this_process();
    let mut all: Vec<Found> = Vec::new();
    for (name, file) in search.files(params) {
        if all.iter().any(|found| found.name == name) {
            continue;
        }
        let read = search.manifest(&file, &name);
        let version = read.map(|(manifest, _)| manifest.version);
        all.push(Found {
            name,
            file,
            version,
        });
    }
    all
}

/// Loads the first plugin file with this name in the search order.
///
/// While the file's start code runs, the state page `page` contains the file's name.
pub fn load(name: &str, params: &Params, page: Option<&StatePage>) -> Result<Plugin, FileError> {
    let search = Search::of_this_process();
    let mut files = search.files(params).into_iter();
    let (_, file) = files
        .find(|(found, _)| found == name)
        .ok_or(FileError::Missing)?;
    let (manifest, before) = search.manifest(&file, name)?;
    let shown = file.to_string_lossy();
    reported(page, FileCall::PluginStart, &shown, || {
        start(&file, &manifest, before)
    })
}

/// Checks the table of a built-in transport in the same way as that of a plugin file.
pub fn built_in<T: Guest>() -> Result<Plugin, FileError> {
    let file = Path::new("the library");
    let text = |text: &CStr| text.to_string_lossy().into_owned();
    let manifest = Manifest {
        major: abi::TRANSPORT_VERSION,
        minor: abi::TRANSPORT_MINOR,
        needs_minor: abi::TRANSPORT_MINOR,
        layout: abi::TRANSPORT_LAYOUT,
        framework: FRAMEWORK.into(),
        component: text(T::NAME),
        version: text(T::VERSION),
    };
    // SAFETY: the table is built at compile time, and everything to which it points is constant.
    let read = unsafe { check(table::<T>(), &manifest, file) };
    read.map_err(|reason| FileError::Table(file.to_path_buf(), reason))
}

/// Loads a plugin file and checks its table.
fn start(file: &Path, manifest: &Manifest, before: Option<Identity>) -> Result<Plugin, FileError> {
    let of_file = |error| FileError::Open(file.to_path_buf(), error);
    let entry = open::entry(file, before, SYMBOL).map_err(of_file)?;
    // SAFETY: `transport.h` specifies the type of the symbol, and a function pointer has the size of a pointer.
    let entry = unsafe { std::mem::transmute::<*const c_void, abi::Entry>(entry) };
    let shown = file.to_string_lossy();
    let owner = (&*manifest.component, &*shown);
    // SAFETY: by `transport.h` the function takes no arguments and returns a table that remains valid; the file is never closed.
    let table = guarded(&owner, SYMBOL, || unsafe { entry() });
    // SAFETY: by `transport.h` the table and everything to which it points do not change.
    let read = unsafe { check(table, manifest, file) };
    read.map_err(|reason| FileError::Table(file.to_path_buf(), reason))
}

/// The folders in which this process searches, and the owners of files that it trusts.
struct Search {
    places: Places,
    trust: Trust,
}

impl Search {
    fn of_this_process() -> Search {
        let installation = installation::plugins();
        Search {
            places: Places::of_this_process(installation.as_deref()),
            trust: Trust::of_this_process(installation.as_deref()),
        }
    }

    /// Returns the plugin files of transports with their names, in search order.
    fn files(&self, params: &Params) -> Vec<(String, PathBuf)> {
        let (folders, _) = self.places.order(params);
        let mut all = Vec::new();
        for folder in folders {
            for file in folders::files(&folder.path).unwrap_or_default() {
                if let Some((FRAMEWORK, name)) = folders::names_of(&file) {
                    all.push((name.to_owned(), file));
                }
            }
        }
        all
    }

    /// Checks a file's owner, permissions and manifest. Returns the manifest and the file's identity.
    fn manifest(&self, file: &Path, name: &str) -> Result<(Manifest, Option<Identity>), FileError> {
        for path in file.parent().into_iter().chain([file]) {
            let trusted = self.trust.check(path);
            trusted.map_err(|why| FileError::Untrusted(path.to_path_buf(), why))?;
        }
        let before = Identity::of(file);
        let manifest = Manifest::of(file).and_then(|manifest| {
            manifest.check(&abi::INTERFACE, (FRAMEWORK, name))?;
            Ok(manifest)
        });
        let manifest = manifest.map_err(|why| FileError::Manifest(file.to_path_buf(), why))?;
        Ok((manifest, before))
    }
}

/// Checks a transport's table. The error is a sentence about the table.
///
/// # Safety
/// The table and everything to which it points must remain valid and unchanged, and the table must be readable for the size with which it begins
/// (the rules of `transport.h`).
unsafe fn check(
    table: *const abi::Transport,
    manifest: &Manifest,
    file: &Path,
) -> Result<Plugin, String> {
    if table.is_null() || !table.is_aligned() {
        return Err(format!("its function {SYMBOL} returns no table"));
    }
    // SAFETY: the caller guarantees that the table begins with its size.
    let size = unsafe { table.cast::<usize>().read() };
    let needed = std::mem::offset_of!(abi::Transport, free) + size_of::<usize>();
    if size < needed {
        return Err(format!(
            "its table has {size} bytes, the first version had {needed}"
        ));
    }
    // SAFETY: the caller guarantees that the table is readable for its size.
    let table = unsafe { abi::read(table) };
    if table.abi_version != abi::TRANSPORT_VERSION {
        return Err(format!(
            "it was built for version {} of the transport ABI, this library speaks version {}",
            table.abi_version,
            abi::TRANSPORT_VERSION
        ));
    }
    // SAFETY: the caller guarantees that the table's texts are NUL-terminated and do not change.
    let (name, version) = unsafe { (text(table.name), text(table.version)) };
    let (Some(name), Some(version)) = (name, version) else {
        return Err("its table has no name or no version".into());
    };
    if (name, version) != (&*manifest.component, &*manifest.version) {
        return Err(format!(
            "its table is that of the transport {name} {version}, and its manifest says {} {}",
            manifest.component, manifest.version
        ));
    }
    let has_all = table.open.is_some()
        && table.address.is_some()
        && table.connect.is_some()
        && table.send.is_some()
        && table.progress.is_some();
    if !has_all {
        return Err("its table lacks one of open, address, connect, send and progress".into());
    }
    let of_memory = [
        table.expose.is_some(),
        table.withdraw.is_some(),
        table.access.is_some(),
    ];
    if of_memory.contains(&true) && of_memory.contains(&false) {
        return Err("its table has some of expose, withdraw and access, and not all three".into());
    }
    if table.param_count > MOST_PARAMS {
        return Err(format!(
            "its table names {} parameters, and a transport has at most {MOST_PARAMS}",
            table.param_count
        ));
    }
    // SAFETY: the caller guarantees that the table has the specified number of parameters, with NUL-terminated texts.
    let params = unsafe { parameters(name, &table) }?;
    Ok(Plugin {
        name,
        version,
        exclusivity: table.exclusivity,
        eager: table.eager,
        longest: table.longest.max(1024),
        poll_is_syscall: table.poll_is_syscall != 0,
        params,
        file: file.to_path_buf(),
        table,
    })
}

/// # Safety
/// `params` of the table must point to `param_count` parameters with NUL-terminated texts, and all of these must not change.
unsafe fn parameters(
    transport: &'static str,
    table: &abi::Transport,
) -> Result<&'static [About], String> {
    if table.params.is_null() {
        return Ok(&[]);
    }
    // SAFETY: the pointer is not null, and the caller guarantees the number of parameters.
    let declared = unsafe { std::slice::from_raw_parts(table.params, table.param_count) };
    let mut params = Vec::with_capacity(declared.len());
    for param in declared {
        // SAFETY: the caller guarantees that the texts are NUL-terminated.
        let texts = unsafe {
            (
                text(param.name),
                text(param.default_value),
                text(param.help),
            )
        };
        let (Some(name), Some(default), Some(help)) = texts else {
            return Err("a parameter in its table has no name, default or help".into());
        };
        params.push(About {
            framework: FRAMEWORK,
            component: transport,
            name,
            default,
            help,
            level: Level::TUNER,
            kind: Kind::Text,
            check: None,
        });
    }
    Ok(params.leak())
}

/// # Safety
/// `at` must be null or a NUL-terminated text that does not change for the rest of the process's life.
unsafe fn text(at: *const c_char) -> Option<&'static str> {
    if at.is_null() {
        return None;
    }
    // SAFETY: the pointer is not null, and the caller guarantees a NUL-terminated text.
    unsafe { CStr::from_ptr(at) }.to_str().ok()
}
