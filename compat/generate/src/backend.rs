//! Generator of the backend interface: a function pointer (slot) and a typed accessor per function.

use crate::tables::Tables;
use mpi_api_tables::{Function, Param};
use std::fmt::Write;

/// Returns true if a C type is a handle type of the standard.
pub fn is_handle(base: &str) -> bool {
    crate::tables::HANDLES.contains(&base)
}

/// Returns true if a parameter is a callback.
pub fn is_function(p: &Param) -> bool {
    p.base.ends_with("_function") || p.base.ends_with("_function_c")
}

/// Returns true if a callback has no handle and no error code among its arguments.
/// All libraries can call such a callback without conversion.
pub fn is_plain_function(p: &Param) -> bool {
    p.base == "MPIX_Checkpoint_function"
}

/// Returns the Rust type for the C type `c`, which is not a pointer type.
/// `handle`, `file` and `status` are the Rust types of handles, file handles and statuses.
pub fn base(c: &str, handle: &str, file: &str, status: &str) -> String {
    match c {
        "MPI_File" => file.to_string(),
        c if is_handle(c) => handle.to_string(),
        "MPI_Status" => status.to_string(),
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "c_int".into(),
        "double" => "f64".into(),
        "char" => "c_char".into(),
        "void" => "c_void".into(),
        "MPI_Aint" => "isize".into(),
        "MPI_Count" | "MPI_Offset" => "i64".into(),
        _ => "usize".into(),
    }
}

/// Returns the Rust type of a parameter.
pub fn parameter(p: &Param, handle: &str, file: &str, status: &str) -> String {
    if is_function(p) {
        return "usize".into();
    }
    p.rust_type(&base(&p.base, handle, file, status))
}

/// Returns the Rust type of the result of the backend's function `f`.
pub fn result(f: &Function) -> String {
    base(&f.returns, "F::Below", "usize", "F::BelowStatus")
}

/// Returns the Rust type of a pointer to the backend's function `f`.
/// In the generated code, `F` is the type that implements `Family` (the ABI conversions).
pub fn function_type(f: &Function) -> String {
    let types: Vec<String> = f
        .fixed_params()
        .map(|p| parameter(p, "F::Below", "usize", "F::BelowStatus"))
        .collect();
    format!(
        "unsafe extern \"C-unwind\" fn({}) -> {}",
        types.join(", "),
        result(f)
    )
}

/// Generates the table of slots (function pointers into the backend) and their accessors.
pub fn write(tables: &Tables) -> String {
    let count = tables.functions.len();
    let mut out = String::new();
    let names: Vec<String> = tables
        .functions
        .iter()
        .map(|f| format!("    c\"P{}\",\n", f.name))
        .collect();
    let _ = writeln!(
        out,
        "/// The symbols, in the order of the slots.\npub static NAMES: [&CStr; {count}] = [\n{}];",
        names.concat()
    );
    let _ = writeln!(
        out,
        "pub static SLOTS: [AtomicPtr<c_void>; {count}] = [const {{ AtomicPtr::new(unavailable as *mut c_void) }}; {count}];"
    );
    out.push_str("/// The number of each slot.\npub mod slot {\n");
    for (id, f) in tables.functions.iter().enumerate() {
        let _ = writeln!(out, "    pub const {}: usize = {id};", f.name);
    }
    out.push_str("}\n");
    for (id, f) in tables.functions.iter().enumerate() {
        // SAFETY: the generated text is part of the module that fills the slots.
        let _ = writeln!(
            out,
            "#[inline(always)]\npub fn {name}<F: Family>() -> {kind} {{\n    \
             // SAFETY: the slot holds the symbol of this name, whose type the standard gives, or a function that does not return.\n    \
             unsafe {{ std::mem::transmute::<*mut c_void, {kind}>(in_slot::<{id}>()) }}\n}}",
            name = f.name,
            kind = function_type(f),
        );
    }
    out
}
