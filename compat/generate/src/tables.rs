//! Parser of the tables of `compat/api`: conversions of parameters, and constants of other ABIs.

use mpi_api_tables::{Function, lines, number};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The handle types, in the order of the constants of `compat::family::Kind`.
pub const HANDLES: [&str; 11] = [
    "MPI_Comm",
    "MPI_Group",
    "MPI_Win",
    "MPI_File",
    "MPI_Session",
    "MPI_Message",
    "MPI_Info",
    "MPI_Errhandler",
    "MPI_Request",
    "MPI_Op",
    "MPI_Datatype",
];

/// Returns true for functions that programs of other ABIs do not call.
/// MPICH and Open MPI lack these functions or give them another meaning.
pub fn is_of_standard_abi_only(name: &str) -> bool {
    name.starts_with("MPI_Abi_")
        || name.ends_with("_toint")
        || name.ends_with("_fromint")
        || name == "MPIX_Comm_ishrink"
        || is_ours_alone(name)
        || is_query(name)
}

/// Constants of this library's extensions (`mpi-ext.h`).
const EXTENSIONS: [(&str, i64); 5] = [
    ("MPIX_C_FLOAT16", 0x24a),
    ("MPIX_ERR_PROC_FAILED", 75),
    ("MPIX_ERR_PROC_FAILED_PENDING", 76),
    ("MPIX_ERR_REVOKED", 77),
    ("MPIX_FT", 575),
];

/// Returns true for extensions that no other library has: eureka and checkpoints.
pub fn is_ours_alone(name: &str) -> bool {
    name.starts_with("MPIX_Eureka_") || name.starts_with("MPIX_Checkpoint_")
}

/// Returns true for the queries of device memory, which return no error code.
/// The libraries for other ABIs implement them by hand.
pub fn is_query(name: &str) -> bool {
    name.starts_with("MPIX_Query_")
}

/// A predefined handle: its name, type, and value in each ABI.
#[derive(Clone, Debug)]
pub struct Handle {
    pub name: String,
    /// Index into [`HANDLES`].
    pub kind: usize,
    pub standard: i64,
    pub mpich: Option<i64>,
    /// Open MPI's symbol, the object's size in bytes, and the Fortran handle if there is one.
    pub openmpi: Option<(String, i64, Option<i64>)>,
}

/// A kind of integer argument whose named constants differ between ABIs, such as `pvar_class`.
/// If `bits` is true, the constants are flags, which are converted one by one.
#[derive(Clone, Debug)]
pub struct Word {
    pub name: String,
    pub bits: bool,
    /// Each constant: the name, and the values in the standard, MPICH and Open MPI.
    pub values: Vec<(String, i64, Option<i64>, Option<i64>)>,
}

/// The content of all tables.
#[derive(Clone, Debug)]
pub struct Tables {
    pub functions: Vec<Function>,
    /// The meaning (conversion) of each parameter, by function and parameter.
    pub meanings: BTreeMap<(String, String), String>,
    /// Functions that MPICH and Open MPI implement without calling exported MPI functions.
    alone: BTreeSet<String>,
    pub handles: Vec<Handle>,
    pub words: Vec<Word>,
}

/// Reads all tables. `root` is the root of the repository.
pub fn read(root: &Path) -> Result<Tables, String> {
    let text = |path: &str| {
        let path: PathBuf = root.join(path);
        println!("cargo:rerun-if-changed={}", path.display());
        std::fs::read_to_string(&path)
            .map_err(|e| format!("{} cannot be read: {e}", path.display()))
    };
    let mut functions = mpi_api_tables::functions()?.functions;
    functions.extend(mpi_api_tables::extensions()?.functions);
    let constants = mpi_api_tables::constants()?;
    let mut standard = mpi_api_tables::values(&constants);
    // Constants of extensions, which are not in the standard's header.
    for (name, value) in EXTENSIONS {
        standard.insert(name, value);
    }
    let (handles, words) = families(&text("compat/api/families.txt")?, &standard)?;
    let (meanings, alone) = meanings(&text("compat/api/kinds.txt")?, &functions)?;
    Ok(Tables {
        functions,
        meanings,
        alone,
        handles,
        words,
    })
}

impl Tables {
    /// Returns true if the backends implement `function` without calling exported MPI functions.
    pub fn is_alone(&self, function: &str) -> bool {
        self.alone.contains(function)
    }

    pub fn word(&self, name: &str) -> Option<&Word> {
        self.words.iter().find(|w| w.name == name)
    }

    /// Returns the meaning (conversion) of a parameter, and the length of an array parameter.
    pub fn meaning(&self, function: &str, parameter: &str) -> Option<(&str, Option<&str>)> {
        let key = (function.to_string(), parameter.to_string());
        let text = self.meanings.get(&key)?;
        Some(match text.split_once('[') {
            Some((word, length)) => (word, Some(length.trim_end_matches(']'))),
            None => (text, None),
        })
    }
}

/// The word in `kinds.txt` that marks the functions of `Tables::alone`.
const ALONE: &str = "alone";

fn families(
    text: &str,
    standard: &BTreeMap<&str, i64>,
) -> Result<(Vec<Handle>, Vec<Word>), String> {
    let (mut handles, mut words) = (Vec::new(), Vec::<Word>::new());
    let mut kind = None;
    for (at, line) in lines(text) {
        let wrong = |what: &str| format!("families.txt, line {at}: {what}");
        if let Some(head) = line.strip_prefix("== ") {
            let (sort, name) = head.split_once(' ').ok_or_else(|| wrong("no name"))?;
            kind = match sort {
                "handle" => Some(
                    HANDLES
                        .iter()
                        .position(|h| *h == name)
                        .ok_or_else(|| wrong("no type of handles"))?,
                ),
                "value" | "bits" => {
                    words.push(Word {
                        name: name.to_string(),
                        bits: sort == "bits",
                        values: Vec::new(),
                    });
                    None
                }
                _ => return Err(wrong("a section is `handle`, `value` or `bits`")),
            };
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = fields[0].to_string();
        let value = *standard
            .get(name.as_str())
            .ok_or_else(|| wrong("the standard has no such constant"))?;
        match (kind, fields.as_slice()) {
            (Some(kind), [_, mpich, symbol, size, fortran]) => handles.push(Handle {
                name,
                kind,
                standard: value,
                mpich: number(mpich),
                openmpi: number(size).map(|size| (symbol.to_string(), size, number(fortran))),
            }),
            (None, [_, mpich, openmpi]) => words
                .last_mut()
                .ok_or_else(|| wrong("a value before the first section"))?
                .values
                .push((name, value, number(mpich), number(openmpi))),
            _ => return Err(wrong("a wrong number of columns")),
        }
    }
    Ok((handles, words))
}

type Meanings = BTreeMap<(String, String), String>;

fn meanings(text: &str, functions: &[Function]) -> Result<(Meanings, BTreeSet<String>), String> {
    let (mut meanings, mut alone) = (BTreeMap::new(), BTreeSet::new());
    for (at, line) in lines(text) {
        let mut fields = line.split_whitespace();
        let name = fields.next().unwrap_or_default();
        let function = functions
            .iter()
            .find(|f| f.name == name)
            .ok_or_else(|| format!("kinds.txt, line {at}: no function {name}"))?;
        for field in fields {
            if field == ALONE {
                alone.insert(name.to_string());
                continue;
            }
            let (parameter, meaning) = field
                .split_once('=')
                .filter(|(p, _)| function.params.iter().any(|q| q.name == *p))
                .ok_or_else(|| format!("kinds.txt, line {at}: no parameter `{field}`"))?;
            meanings.insert(
                (name.to_string(), parameter.to_string()),
                meaning.to_string(),
            );
        }
    }
    Ok((meanings, alone))
}
