//! Generator of each ABI's elementary conversions: integer constants and predefined handles.

use crate::direction::Below;
use crate::tables::{HANDLES, Tables, Word};
use std::fmt::Write;

/// A non-standard ABI: that of MPICH or of Open MPI, which derived libraries share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Mpich,
    OpenMpi,
}

impl Which {
    /// Returns the value of a constant in this ABI, or `None` if the ABI lacks the constant.
    pub fn of(self, value: &(String, i64, Option<i64>, Option<i64>)) -> Option<i64> {
        match self {
            Which::Mpich => value.2,
            Which::OpenMpi => value.3,
        }
    }
}

/// Number of entries in each table indexed by a handle of the standard.
/// The largest predefined handle is 0x2eb.
const STANDARD_HANDLES: usize = 1024;
/// The lowest dynamic handle of the standard ABI.
const FIRST_DYNAMIC: usize = 0x1000;

/// Returns the variant name of the `Word` enumeration: `pvar_class` becomes `PvarClass`.
pub fn variant(word: &str) -> String {
    word.split('_')
        .flat_map(|part| {
            let mut letters = part.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}

/// Generates the enumeration `Word`, the kinds of integer arguments with named constants.
pub fn words(tables: &Tables) -> String {
    let mut out = String::from("#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Word {\n");
    for word in &tables.words {
        let _ = writeln!(out, "    {},", variant(&word.name));
    }
    out.push_str("}\n");
    out
}

/// Returns the `match` arm that converts values that are not among the named constants of `word`.
/// The conversion is to the backend if `inward`, otherwise from the backend.
fn default_arm(word: &Word, inward: bool, below: Below) -> &'static str {
    match (word.name.as_str(), inward) {
        ("keyval", true) if below == Below::Foreign => "other => added_keyval_in(other)",
        ("keyval", false) if below == Below::Foreign => "other => added_keyval_out(other)",
        ("error", true) => "other => added_error_in(other)",
        ("error", false) => "other => added_error_out(other)",
        ("rank" | "tag", true) => "other => unnamed(other)",
        ("keyval", true) => "other => if other < FIRST_KEYVAL { KEYVAL_INVALID } else { other }",
        ("darg" | "displacement" | "limits", _) | (_, false) => "other => other",
        (_, true) => "other => if other >= 0 { INVALID } else { other }",
    }
}

/// Generates the functions `word_in` and `word_out` of an ABI,
/// which convert integer constants for the backend and for the program.
pub fn word_functions(tables: &Tables, which: Which, below: Below) -> String {
    let mut out = String::new();
    for (name, inward) in [("word_in", true), ("word_out", false)] {
        let into_standard = inward == (below == Below::Standard);
        let _ = writeln!(
            out,
            "#[inline(always)]\npub fn {name}(word: Word, value: c_int) -> c_int {{\n    match word {{"
        );
        for word in &tables.words {
            let pairs: Vec<(i64, i64)> = word
                .values
                .iter()
                .filter_map(|value| {
                    let theirs = which.of(value)?;
                    Some(match into_standard {
                        true => (theirs, value.1),
                        false => (value.1, theirs),
                    })
                })
                .collect();
            let variant = variant(&word.name);
            if word.bits {
                let pairs: Vec<String> = pairs.iter().map(|p| format!("{p:?}")).collect();
                let _ = writeln!(
                    out,
                    "        Word::{variant} => bits(value, &[{}]),",
                    pairs.join(", ")
                );
                continue;
            }
            if pairs.is_empty() {
                // The ABI `which` has no constant of this kind: a `match` would have one arm.
                let default = default_arm(word, inward, below).replacen("other => ", "", 1);
                let default = default.replace("other", "value");
                let _ = writeln!(out, "        Word::{variant} => {{ {default} }}");
                continue;
            }
            let mut arms = String::new();
            let mut seen = Vec::new();
            for (from, to) in pairs {
                if !seen.contains(&from) {
                    seen.push(from);
                    let _ = write!(arms, "{from} => {to}, ");
                }
            }
            arms.push_str(default_arm(word, inward, below));
            // Ranks and tags are rarely named constants, so values from 0 on are returned first.
            // Named constants are even rarer as outputs, so their conversion is not inlined.
            let _ = match (word.name.as_str(), inward) {
                ("rank" | "tag", true) => writeln!(
                    out,
                    "        Word::{variant} if value >= 0 => value,\n        Word::{variant} => match value {{ {arms} }},"
                ),
                ("rank" | "tag", false) => writeln!(
                    out,
                    "        Word::{variant} if value >= 0 => value,\n        Word::{variant} => {{\n            \
                     #[cold]\n            #[inline(never)]\n            \
                     fn constant(value: c_int) -> c_int {{ match value {{ {arms} }} }}\n            \
                     constant(value)\n        }}"
                ),
                _ => writeln!(out, "        Word::{variant} => match value {{ {arms} }},"),
            };
        }
        out.push_str("    }\n}\n");
    }
    out
}

/// Returns the index of a predefined handle of MPICH in the table of the handle's type.
/// Handles with the highest bit set have the indices from 128 on.
fn mpich_slot(handle: u32) -> usize {
    (handle & 0x7f | (handle >> 31) << 7) as usize
}

/// Returns the index in [`HANDLES`] of a predefined handle of the standard.
/// The bits of the handle encode the type (MPI 5.0, chapter 20).
fn kind_of_standard(handle: usize) -> Option<usize> {
    let name = match handle {
        0x020..0x040 => "MPI_Op",
        0x100..0x108 => "MPI_Comm",
        0x108..0x110 => "MPI_Group",
        0x110..0x118 => "MPI_Win",
        0x118..0x120 => "MPI_File",
        0x120..0x128 => "MPI_Session",
        0x128..0x130 => "MPI_Message",
        0x130..0x138 => "MPI_Info",
        0x140..0x160 => "MPI_Errhandler",
        0x180..0x1c0 => "MPI_Request",
        0x200..0x400 => "MPI_Datatype",
        _ => return None,
    };
    HANDLES.iter().position(|known| *known == name)
}

/// Generates the tables of MPICH's predefined handles.
pub fn mpich_handles(tables: &Tables) -> Result<String, String> {
    let mut out = String::new();
    let mut theirs = vec![0u32; STANDARD_HANDLES];
    let mut nulls = Vec::new();
    for (kind, name) in HANDLES.iter().enumerate() {
        let mut slots = vec![(0u32, 0u32); 256];
        let mut null = (0u32, 0u32);
        let all = tables.handles.iter().filter(|h| h.kind == kind);
        for handle in all {
            let Some(value) = handle.mpich.filter(|_| *name != "MPI_File") else {
                continue;
            };
            let value = u32::try_from(value).map_err(|e| format!("{}: {e}", handle.name))?;
            let standard = u32::try_from(handle.standard).map_err(|e| e.to_string())?;
            if kind_of_standard(standard as usize) != Some(kind) {
                return Err(format!("{}: its number is of another type", handle.name));
            }
            if handle.name.ends_with("_NULL") {
                null = (value, standard);
                nulls.push((kind, value));
            } else if value & 0x4000_0000 == 0 && value & 0x8000_0000 == 0 {
                continue; // MPICH has no such type: the value is the null handle.
            } else {
                let slot = &mut slots[mpich_slot(value)];
                if slot.0 != 0 && slot.0 != value {
                    return Err(format!(
                        "{}: two handles of MPICH share a slot",
                        handle.name
                    ));
                }
                *slot = (value, standard);
            }
            let back = &mut theirs[handle.standard as usize];
            if *back == 0 {
                *back = value;
            }
        }
        let _ = writeln!(
            out,
            "pub static {}: Predefined = Predefined {{ null: {null:?}, slots: {slots:?} }};",
            name.to_uppercase()
        );
    }
    let theirs: Vec<u32> = (0..FIRST_DYNAMIC)
        .map(|handle| match theirs.get(handle) {
            Some(theirs) if *theirs != 0 => *theirs,
            _ => {
                let kind = kind_of_standard(handle);
                let null = nulls.iter().find(|(of, _)| Some(*of) == kind);
                null.map_or(0, |(_, value)| *value)
            }
        })
        .collect();
    let _ = writeln!(
        out,
        "/// MPICH's handle by the standard's; the null handle of the type to which the standard's number belongs where there is none.\n\
         pub const THEIRS: [u32; {FIRST_DYNAMIC}] = {theirs:?};"
    );
    Ok(out)
}

/// Symbols of Open MPI that are not in `families.txt`: additional symbols of predefined handles,
/// and symbols of handles that the standard has removed.
const MORE_SYMBOLS: [(&str, &str, usize); 4] = [
    ("ompi_mpi_c_complex", "MPI_C_FLOAT_COMPLEX", 0x200),
    ("ompi_mpi_ldblcplex", "MPI_C_LONG_DOUBLE_COMPLEX", 0x200),
    (
        "ompi_mpi_errors_throw_exceptions",
        "MPI_ERRORS_ARE_FATAL",
        0x400,
    ),
    ("ompi_mpi_unavailable", "MPI_DATATYPE_NULL", 0x200),
];

/// Open MPI's datatypes that the standard has removed: complex pairs, `MPI_LB` and `MPI_UB`.
/// The number is the content of the datatype's object. It differs from all handles of the standard.
const REMOVED_TYPES: [(&str, usize); 4] = [
    ("ompi_mpi_2cplex", 0x3fc),
    ("ompi_mpi_2dblcplex", 0x3fd),
    ("ompi_mpi_lb", LOWER_BOUND),
    ("ompi_mpi_ub", UPPER_BOUND),
];
const LOWER_BOUND: usize = 0x3fe;
const UPPER_BOUND: usize = 0x3ff;

/// Generates the objects of Open MPI's predefined handles,
/// and the table of their addresses, indexed by the standard's handle.
pub fn openmpi_handles(tables: &Tables) -> String {
    let mut out = String::new();
    let mut addresses = vec![None; STANDARD_HANDLES];
    let mut fortran = Vec::new();
    let mut written = Vec::new();
    for handle in &tables.handles {
        let Some((symbol, size, number)) = &handle.openmpi else {
            continue;
        };
        if let Some(number) = number {
            fortran.push((handle.kind, *number, handle.standard));
        }
        if written.contains(&symbol) {
            continue;
        }
        written.push(symbol);
        // Open MPI's Fortran library reads Fortran handles from group and request objects.
        let content = match (HANDLES[handle.kind], number) {
            ("MPI_Group" | "MPI_Request", Some(number)) => {
                format!("with_number({:#x}, {number})", handle.standard)
            }
            _ => format!("new({:#x})", handle.standard),
        };
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub static {symbol}: Object<{size}> = Object::{content};"
        );
        addresses[handle.standard as usize].get_or_insert(symbol);
    }
    for (symbol, name, size) in MORE_SYMBOLS {
        let standard = tables.handles.iter().find(|h| h.name == name);
        let standard = standard.map_or(0, |h| h.standard);
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub static {symbol}: Object<{size}> = Object::new({standard:#x});"
        );
    }
    for (symbol, number) in REMOVED_TYPES {
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub static {symbol}: Object<0x200> = Object::new({number:#x});"
        );
    }
    let _ = writeln!(
        out,
        "/// What is behind the marks of bounds that MPI-3 has removed.\n\
         pub const LOWER_BOUND: usize = {LOWER_BOUND:#x};\npub const UPPER_BOUND: usize = {UPPER_BOUND:#x};"
    );
    let _ = writeln!(
        out,
        "/// The address that programs know by the standard's handle.\npub static ADDRESSES: [Address; {STANDARD_HANDLES}] = ["
    );
    for symbol in &addresses {
        let _ = match symbol {
            Some(symbol) => writeln!(out, "    Address((&raw const {symbol}).cast()),"),
            None => writeln!(out, "    Address(std::ptr::null()),"),
        };
    }
    out.push_str("];\n");
    let _ = writeln!(
        out,
        "/// Type of handle, number in Fortran, the standard's handle.\npub const FORTRAN: &[(usize, c_int, usize)] = &{fortran:?};"
    );
    out
}

/// Generates the table of predefined handles for programs of the standard ABI on Open MPI.
/// A row is the standard's handle, the type, the null handle of that type, and Open MPI's symbol.
pub fn openmpi_symbols(tables: &Tables) -> String {
    let null = |kind: usize| {
        let mut nulls = tables.handles.iter().filter(|h| h.kind == kind);
        nulls
            .find(|h| h.name.ends_with("_NULL"))
            .map_or(0, |h| h.standard)
    };
    let mut rows = Vec::new();
    for handle in &tables.handles {
        let symbol = handle.openmpi.as_ref().map_or("", |(symbol, ..)| symbol);
        rows.push(format!(
            "    ({:#x}, {}, {:#x}, c\"{symbol}\"),\n",
            handle.standard,
            handle.kind,
            null(handle.kind)
        ));
    }
    format!(
        "/// The standard's handle, its type, the null handle of the type, the symbol of a library.\n\
         pub static SYMBOLS: [(usize, usize, usize, &CStr); {}] = [\n{}];\n",
        rows.len(),
        rows.concat()
    )
}
