//! Tests of the checked-in `mpi.h`: it equals the tables, and a C compiler finds the same values.

use mpi_api_tables::{Functions, Kind, Section, header};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(crate_dir().join(name)).expect("a file of the repository")
}

fn tables() -> (Functions, Vec<Section>) {
    (
        mpi_api_tables::functions().expect("functions.txt"),
        mpi_api_tables::constants().expect("constants.txt"),
    )
}

#[test]
fn the_checked_in_header_is_what_the_tables_say() {
    let (functions, sections) = tables();
    assert!(
        read("include/mpi.h") == header::header(&functions, &sections),
        "mpi-abi/include/mpi.h is not what the tables say; run `cargo xtask gen`"
    );
}

#[test]
fn the_header_of_extensions_is_what_the_table_says() {
    let extensions = mpi_api_tables::extensions().expect("extensions.txt");
    let types = mpi_api_tables::extension_types().expect("extension_types.txt");
    let header = header::extension_header(&extensions, &types);
    assert!(
        read("include/mpi-ext.h") == header,
        "mpi-abi/include/mpi-ext.h is not what the table says; run `cargo xtask gen`"
    );
    for class in [75, 76, 77] {
        let (name, _) = mpi_abi::error::class_text(class).expect("a class with a text");
        assert!(header.contains(&format!("#define {name} {class}\n")));
    }
}

#[test]
fn the_interface_is_complete() {
    let (functions, _) = tables();
    let f = &functions.functions;
    // The counts of the MPI Forum's header: 503 functions and 161 large-count variants.
    // 51 of all functions belong to the tool interface.
    assert_eq!(f.len(), 664);
    assert_eq!(f.iter().filter(|f| f.name.ends_with("_c")).count(), 161);
    assert_eq!(f.iter().filter(|f| f.is_tool()).count(), 51);
    for twin in f.iter().filter_map(|f| f.name.strip_suffix("_c")) {
        assert!(
            f.iter().any(|f| f.name == twin),
            "{twin}_c has no small twin"
        );
    }
}

/// Returns a C program that compares every constant, size and offset with the table.
/// The program counts the differences.
fn checking_program(sections: &[Section]) -> String {
    let mut c = String::from(
        "#include \"mpi.h\"\n#include <stddef.h>\n#include <stdio.h>\nstatic int wrong;\n\
         static void check(const char *name, long long is, long long should) {\n    \
         if (is != should) { printf(\"%s is %lld, not %lld\\n\", name, is, should); wrong++; }\n}\nint main(void) {\n",
    );
    for s in sections {
        let pointer = s.kind == Kind::Handle || s.ctype.ends_with('*');
        for i in &s.items {
            match (s.kind, i.number()) {
                (Kind::Handle | Kind::Enum | Kind::Define, Some(n)) => {
                    let cast = if pointer { "(intptr_t)" } else { "" };
                    let _ = writeln!(c, "    check(\"{0}\", {cast}{0}, {n}LL);", i.name);
                }
                (Kind::Handle, None) => {
                    let _ = writeln!(
                        c,
                        "    check(\"{0}\", (intptr_t){0}, (intptr_t){1});",
                        i.name, i.value
                    );
                }
                _ => {}
            }
        }
        if s.kind == Kind::Handle {
            let _ = writeln!(
                c,
                "    check(\"sizeof {0}\", sizeof({0}), sizeof(void *));",
                s.ctype
            );
        }
    }
    // Section 20.3: the layout of a status and the widths of the integer types.
    for (what, is, should) in [
        ("size of MPI_Status", "sizeof(MPI_Status)", 32),
        ("MPI_SOURCE", "offsetof(MPI_Status, MPI_SOURCE)", 0),
        ("MPI_TAG", "offsetof(MPI_Status, MPI_TAG)", 4),
        ("MPI_ERROR", "offsetof(MPI_Status, MPI_ERROR)", 8),
        ("MPI_internal", "offsetof(MPI_Status, MPI_internal)", 12),
        ("size of MPI_Aint", "sizeof(MPI_Aint)", 8),
        ("size of MPI_Offset", "sizeof(MPI_Offset)", 8),
        ("size of MPI_Count", "sizeof(MPI_Count)", 8),
        ("size of MPI_T_cb_safety", "sizeof(MPI_T_cb_safety)", 4),
        (
            "size of MPI_T_source_order",
            "sizeof(MPI_T_source_order)",
            4,
        ),
    ] {
        let _ = writeln!(c, "    check(\"{what}\", {is}, {should});");
    }
    c.push_str("    return wrong != 0;\n}\n");
    c
}

/// Compiles a program against the header, with warnings as errors.
fn compile(compiler: &str, options: &[&str], dir: &Path, name: &str, text: &str) -> PathBuf {
    let source = dir.join(name);
    std::fs::write(&source, text).expect("a file in the temporary folder");
    let binary = source.with_extension("out");
    let output = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(options)
        .arg("-I")
        .arg(crate_dir().join("include"))
        .arg("-o")
        .args([&binary, &source])
        .output()
        .expect("a C compiler");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    binary
}

#[test]
fn a_c_compiler_agrees_with_every_constant_and_layout() {
    let (_, sections) = tables();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = compile(
        "gcc",
        &["-std=c99"],
        dir.path(),
        "check.c",
        &checking_program(&sections),
    );
    let output = Command::new(program)
        .output()
        .expect("the checking program");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn a_cpp_compiler_takes_the_header_twice() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = "#include \"mpi.h\"\n#include \"mpi.h\"\n\
                MPI_Comm world = MPI_COMM_WORLD;\nMPI_Comm_copy_attr_function *copy = MPI_COMM_DUP_FN;\n\
                int main() { return world == MPI_COMM_SELF || copy == MPI_COMM_NULL_COPY_FN; }\n";
    compile("g++", &["-std=c++11"], dir.path(), "check.cpp", text);
}

/// Projects that compile with these warnings as errors need no exception for MPI.
#[test]
fn a_cpp_compiler_warns_of_nothing_in_the_headers_and_their_constants() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = "#include \"mpi-ext.h\"\n\
                MPI_Comm world = MPI_COMM_WORLD;\nMPI_Datatype type = MPI_DATATYPE_NULL;\n\
                void *here = MPI_IN_PLACE, *bottom = MPI_BOTTOM;\nMPI_Status *none = MPI_STATUS_IGNORE;\n\
                int main() { return world == MPI_COMM_SELF || here == bottom || none != nullptr; }\n";
    for standard in ["-std=c++11", "-std=c++20"] {
        let warnings = [
            standard,
            "-Wold-style-cast",
            "-Wuseless-cast",
            "-Wzero-as-null-pointer-constant",
            "-Wundef",
            "-Wconversion",
        ];
        compile("g++", &warnings, dir.path(), "check.cpp", text);
    }
}

/// In C, a wrong argument that is a constant of the header is reported.
#[test]
fn a_c_compiler_warns_of_a_communicator_as_a_datatype() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let source = dir.path().join("wrong.c");
    let text = "#include \"mpi.h\"\nint main(void) { return MPI_Send(0, 0, MPI_COMM_WORLD, 0, 0, MPI_COMM_WORLD); }\n";
    std::fs::write(&source, text).expect("a file in the temporary folder");
    let output = Command::new("gcc")
        .args(["-fsyntax-only", "-I"])
        .arg(crate_dir().join("include"))
        .arg(&source)
        .output()
        .expect("a C compiler");
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(warned.contains("incompatible pointer type"), "{warned}");
}
