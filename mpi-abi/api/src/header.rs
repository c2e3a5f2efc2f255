//! Generator of `mpi.h` and `mpi-ext.h` from the tables.
//!
//! The layout is for human readers: types and constants by subject, functions by chapter,
//! and at the end the profiling variants of the functions.

use super::{Function, Functions, Kind, Section};
use std::fmt::Write;

/// Maximum width of a line in the generated headers, in characters.
const WIDTH: usize = 110;

/// In C++ the header is a system header, so a compiler does not warn of the casts in its constants (`-Wold-style-cast`).
///
/// In C it is not: gcc would not warn of a wrong argument any more if the argument is a macro of the header.
const SYSTEM_HEADER: &str = "\
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

";

/// Returns the text of `mpi.h`.
pub fn header(functions: &Functions, sections: &[Section]) -> String {
    let mut out = String::from(
        "/* mpi.h: the C interface of MPI 5.0 with the standard application binary interface (chapter 20).\n\
         \x20*\n\
         \x20* Programs compiled with this header run on every library that provides libmpi_abi.so.1.\n\
         \x20* Generated from mpi-abi/api by `cargo xtask gen`; edit the tables there.\n\
         \x20*/\n\
         #ifndef MPI_H_ABI\n#define MPI_H_ABI\n\n",
    );
    out.push_str(SYSTEM_HEADER);
    out.push_str(
        "#include <stdint.h>\n\n\
         #if defined(__cplusplus)\nextern \"C\" {\n#endif\n",
    );
    for section in sections {
        out.push('\n');
        write_section(&mut out, section);
    }
    for prefix in ["MPI_", "PMPI_"] {
        for (index, chapter) in functions.chapters.iter().enumerate() {
            let profiling = if prefix == "PMPI_" {
                ", for profiling tools"
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "\n/* Chapter {}: {}{profiling} */",
                chapter.number, chapter.title
            );
            for function in functions.functions.iter().filter(|f| f.chapter == index) {
                write_prototype(&mut out, function, prefix);
            }
        }
    }
    write_fortran(&mut out, functions);
    out.push_str("\n#if defined(__cplusplus)\n}\n#endif\n\n#endif /* MPI_H_ABI */\n");
    out
}

/// Returns the text of `mpi-ext.h`: the extensions, under the names of Open MPI's header.
pub fn extension_header(extensions: &Functions, types: &[Section]) -> String {
    let mut out = String::from(
        "/* mpi-ext.h: functions and datatypes beyond MPI 5.0.\n\
         \x20*\n\
         \x20* Fault tolerance (ULFM) has the names and values of Open MPI's header of this name. In a job that is started by\n\
         \x20* `mpirun --with-ft ulfm`, the other ranks continue when a rank dies.\n\
         \x20* The eureka line (MPIX_Eureka_...), the early termination of a parallel search, is an extension of this library only.\n\
         \x20* The queries for device memory (MPIX_Query_..._support) return 1 if buffers of that kind may be passed now, which is\n\
         \x20* after MPI_Init and after the program has loaded the library of the devices (such as libcuda or libamdhip64).\n\
         \x20* With the functions of checkpoints (MPIX_Checkpoint_...) a program saves its state when no message is in flight, and\n\
         \x20* a later run continues from this state: `mpirun --checkpoint-dir`, `mpirun --restart`.\n\
         \x20* Generated from mpi-abi/api by `cargo xtask gen`; edit the tables there.\n\
         \x20*/\n\
         #ifndef MPI_EXT_H\n#define MPI_EXT_H\n\n",
    );
    out.push_str(SYSTEM_HEADER);
    out.push_str(
        "#include <mpi.h>\n\n\
         #if defined(__cplusplus)\nextern \"C\" {\n#endif\n\n\
         /* Feature-test macros of the extensions. */\n\
         #define OMPI_HAVE_MPI_EXT_FTMPI 1\n\
         #define OMPI_HAVE_MPI_EXT_SHORTFLOAT 1\n\
         #define OMPI_HAVE_MPIX_COMM_GET_FAILED 1\n\
         #define OMPI_HAVE_MPIX_COMM_ACK_FAILED 1\n\
         #define OMPI_HAVE_MPIX_COMM_ISHRINK 1\n\
         #define OMPI_HAVE_MPI_EXT_CUDA 1\n\
         #define OMPI_HAVE_MPI_EXT_ROCM 1\n\
         #define PORTCULLIS_HAVE_MPIX_EUREKA 1\n\
         #define PORTCULLIS_HAVE_MPIX_CHECKPOINT 1\n\n\
         /* This library has the code for buffers in the memory of CUDA and ROCm devices; the queries return whether it is in use. */\n\
         #define MPIX_CUDA_AWARE_SUPPORT 1\n\
         #define MPIX_ROCM_AWARE_SUPPORT 1\n\n\
         /* Datatypes of 16-bit floating-point numbers (C's _Float16), and of pairs of them as complex numbers.\n\
         \x20* This library defines their values; other libraries of the standard ABI may not know them. */\n\
         #define MPIX_C_FLOAT16 ((MPI_Datatype)0x0000024a)\n\
         #define MPIX_SHORT_FLOAT MPIX_C_FLOAT16\n\
         #define MPIX_C_SHORT_FLOAT_COMPLEX MPI_COMPLEX4\n\
         #define MPIX_CXX_SHORT_FLOAT_COMPLEX MPI_COMPLEX4\n\n\
         /* Error classes */\n\
         #define MPIX_ERR_PROC_FAILED 75\n\
         #define MPIX_ERR_PROC_FAILED_PENDING 76\n\
         #define MPIX_ERR_REVOKED 77\n\
         #define MPI_ERR_PROC_FAILED MPIX_ERR_PROC_FAILED\n\
         #define MPI_ERR_PROC_FAILED_PENDING MPIX_ERR_PROC_FAILED_PENDING\n\
         #define MPI_ERR_REVOKED MPIX_ERR_REVOKED\n\n\
         /* The attribute of communicators whose value is 1 if the job continues when a rank dies, and 0 otherwise */\n\
         #define MPIX_FT 575\n\
         #define MPI_FT MPIX_FT\n",
    );
    for section in types {
        out.push('\n');
        write_section(&mut out, section);
    }
    for prefix in ["MPIX_", "PMPIX_", "MPI_", "PMPI_"] {
        out.push('\n');
        let standing = prefix.contains('X');
        let named = |chapter: usize| standing || extensions.chapters[chapter].number == 0;
        for function in extensions.functions.iter().filter(|f| named(f.chapter)) {
            if let Some(name) = function.name.strip_prefix("MPIX_") {
                let words = function.prototype(&format!("{prefix}{name}"));
                let _ = writeln!(out, "{}", words.concat());
            }
        }
    }
    out.push_str("\n#if defined(__cplusplus)\n}\n#endif\n\n#endif /* MPI_EXT_H */\n");
    out
}

/// Writes the C declarations for Fortran handles and statuses, such as `MPI_Comm_c2f`.
/// The C interface has had these declarations since MPI-2.
///
/// Fortran handles belong to the C interface (sections 19.3.4 and 19.3.5), but not to the ABI.
/// Only a Fortran compiler knows the size of its `INTEGER` (section 20.5).
/// Macros and inline functions in the header call only functions that every MPI library exports.
/// See docs/adr/0021-mpi-h-brings-the-handles-of-fortran.md.
fn write_fortran(out: &mut String, functions: &Functions) {
    out.push_str(FORTRAN_TYPES);
    for prefix in ["MPI_", "PMPI_"] {
        out.push('\n');
        let names = functions.functions.iter().map(|f| &f.name);
        for name in names.filter_map(|name| name.strip_prefix("MPI_")?.strip_suffix("_toint")) {
            let _ = writeln!(
                out,
                "#define {prefix}{name}_c2f(handle)  {prefix}{name}_toint(handle)\n\
                 #define {prefix}{name}_f2c(integer) {prefix}{name}_fromint(integer)"
            );
        }
    }
    let kinds = [
        ("c", "MPI_Status"),
        ("f", "MPI_Fint"),
        ("f08", "MPI_F08_status"),
    ];
    let pairs = kinds
        .iter()
        .flat_map(|from| kinds.iter().map(move |to| (from, to)));
    for ((from, have), (to, want)) in pairs.filter(|(from, to)| from != to) {
        let name = format!("Status_{from}2{to}");
        let _ = writeln!(
            out,
            "\nMPI_ABI_INLINE int MPI_{name}(const {have} *{from}_status, {want} *{to}_status)\n\
             {{\n    *(MPI_Status *){to}_status = *(const MPI_Status *){from}_status;\n    return MPI_SUCCESS;\n}}\n\
             #define PMPI_{name} MPI_{name}"
        );
    }
}

const FORTRAN_TYPES: &str = "
/* Handles and statuses of Fortran, which are no part of the binary interface: they come down to what is.
 * An INTEGER is taken to be a C int, as it is with every usual compiler and its usual options. */
typedef int MPI_Fint;
typedef MPI_Status MPI_F08_status;
#define MPI_F_STATUS_IGNORE     ((MPI_Fint *)0)
#define MPI_F_STATUSES_IGNORE   ((MPI_Fint *)0)
#define MPI_F08_STATUS_IGNORE   ((MPI_F08_status *)0)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status *)0)
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define MPI_ABI_INLINE static inline
#else
#define MPI_ABI_INLINE static __inline
#endif
";

fn write_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "/* {} */", section.title);
    let width = section
        .items
        .iter()
        .map(|i| i.name.len())
        .max()
        .unwrap_or(0);
    match section.kind {
        Kind::Typedef | Kind::Alias => {
            for item in &section.items {
                let _ = writeln!(out, "typedef {} {};", item.value, item.name);
            }
        }
        Kind::Struct => {
            out.push_str("typedef struct {\n");
            for item in &section.items {
                let _ = writeln!(out, "    {};", item.value);
            }
            let _ = writeln!(out, "}} {};", section.ctype);
        }
        Kind::Handle => {
            let tag = section.ctype.replacen("MPI_", "MPI_ABI_", 1);
            let _ = writeln!(out, "typedef struct {tag} *{};", section.ctype);
            write_defines(out, section, width);
        }
        Kind::Define => write_defines(out, section, width),
        Kind::Enum => {
            match section.ctype.as_str() {
                "" => out.push_str("enum {\n"),
                name => {
                    let _ = writeln!(out, "typedef enum {name} {{");
                }
            }
            for (i, item) in section.items.iter().enumerate() {
                let comma = if i + 1 == section.items.len() {
                    ""
                } else {
                    ","
                };
                let _ = write!(out, "    {:width$} = {}{comma}", item.name, item.value);
                write_note(out, item.note.as_deref());
            }
            match section.ctype.as_str() {
                "" => out.push_str("};\n"),
                name => {
                    let _ = writeln!(out, "}} {name};");
                }
            }
        }
        Kind::Callback => {
            for item in &section.items {
                let (returns, rest) = item.value.split_once(' ').unwrap_or_default();
                let declared = rest.replacen(&item.name, &format!("({})", item.name), 1);
                let (head, tail) = declared.split_once(")(").unwrap_or_default();
                let mut words = vec![format!("typedef {returns} {head})(")];
                words.extend(tail.split_inclusive(", ").map(str::to_string));
                if let Some(last) = words.last_mut() {
                    last.push(';');
                }
                write_wrapped(out, &words);
                write_note(out, item.note.as_deref());
            }
        }
    }
}

fn write_defines(out: &mut String, section: &Section, width: usize) {
    for item in &section.items {
        let value = match item.number() {
            Some(_) if section.ctype == "int" => item.value.clone(),
            Some(_) => format!("(({}){})", section.ctype, item.value),
            None => item.value.clone(),
        };
        let _ = write!(out, "#define {:width$} {value}", item.name);
        write_note(out, item.note.as_deref());
    }
}

fn write_note(out: &mut String, note: Option<&str>) {
    match note {
        Some(note) => {
            let _ = writeln!(out, " /* {note} */");
        }
        None => out.push('\n'),
    }
}

fn write_prototype(out: &mut String, function: &Function, prefix: &str) {
    let name = function.name.replacen("MPI_", prefix, 1);
    write_wrapped(out, &function.prototype(&name));
    let note = function
        .deprecated
        .as_ref()
        .map(|v| format!("deprecated: MPI-{v}"));
    write_note(out, note.as_deref());
}

/// Writes `words`, the parts of a C declaration between possible line breaks, in sequence.
/// A part that would exceed [`WIDTH`] begins a new indented line.
fn write_wrapped(out: &mut String, words: &[String]) {
    let mut column = 0;
    for word in words {
        if column > 0 && column + word.trim_end().len() > WIDTH {
            let line_end = out.trim_end().len();
            out.truncate(line_end);
            out.push_str("\n        ");
            column = 8;
        }
        out.push_str(word);
        column += word.len();
    }
}
