//! Tests of the C headers against the Rust tables: layouts, layout hashes, C dialects.

use portcullis_plugin::manifest::{Interface, Note};
use portcullis_plugin::{btl, coll};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mpi-core/include");

/// A C header, and the crate's tables for it.
struct Header {
    file: &'static str,
    /// The C macro that creates the manifest, with its arguments.
    manifest: &'static str,
    layouts: &'static [coll::abi::Layout],
    constants: &'static [(&'static str, i64)],
    interface: Interface,
}

const HEADERS: [Header; 2] = [
    Header {
        file: "plugin.h",
        manifest: "PORTCULLIS_PLUGIN(\"coll\", \"mine\", \"1.0\")",
        layouts: coll::abi::LAYOUTS,
        constants: coll::abi::CONSTANTS,
        interface: coll::abi::INTERFACE,
    },
    Header {
        file: "transport.h",
        manifest: "PORTCULLIS_TRANSPORT(\"mine\", \"1.0\")",
        layouts: btl::abi::LAYOUTS,
        constants: btl::abi::CONSTANTS,
        interface: btl::abi::INTERFACE,
    },
];

/// Returns one line for the size of each structure and one for the offset of each member.
fn layout(header: &Header) -> String {
    let mut text = String::new();
    for (name, size, fields) in header.layouts {
        writeln!(text, "{name} {size}").expect("a string");
        for (field, offset) in *fields {
            writeln!(text, "{name}.{field} {offset}").expect("a string");
        }
    }
    text
}

/// Returns the 32-bit FNV-1a hash of a text.
fn fnv(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

#[test]
fn a_table_that_grows_raises_the_minor_version() {
    for header in HEADERS {
        let hash = fnv(&layout(&header));
        assert_eq!(
            header.interface.layout(),
            hash,
            "the tables of {} have another layout than version {}.{}: raise the minor version there, write the layout hash {hash:#x} beside it, \
             run `cargo xtask gen`, and add a line to INTERFACE",
            header.file,
            header.interface.major,
            header.interface.minor()
        );
    }
}

#[test]
fn the_headers_and_the_tables_in_rust_have_one_layout() {
    let folder = tempfile::tempdir().expect("a folder");
    for header in HEADERS {
        let mut ours = layout(&header);
        let mut program = String::new();
        for (name, _, fields) in header.layouts {
            writeln!(program, "printf(\"{name} %zu\\n\", sizeof({name}));").expect("a string");
            for (field, _) in *fields {
                writeln!(
                    program,
                    "printf(\"{name}.{field} %zu\\n\", offsetof({name}, {field}));"
                )
                .expect("a string");
            }
        }
        for (name, value) in header.constants {
            writeln!(ours, "{name} {value}").expect("a string");
            writeln!(program, "printf(\"{name} %lld\\n\", (long long){name});").expect("a string");
        }
        let manifest = size_of::<Note>();
        writeln!(ours, "manifest {manifest}").expect("a string");
        program += "printf(\"manifest %zu\\n\", sizeof(portcullis_manifest));\n";
        let (source, binary) = (folder.path().join("layout.c"), folder.path().join("layout"));
        let program = format!(
            "#include <portcullis/{}>\n#include <stdio.h>\n{};\nint main(void) {{\n{program}return 0;\n}}\n",
            header.file, header.manifest
        );
        std::fs::write(&source, program).expect("writing");
        compile("cc", "c99", &source, &["-o", &binary.to_string_lossy()]);
        let theirs = Command::new(&binary).output().expect("running").stdout;
        assert_eq!(ours, String::from_utf8_lossy(&theirs), "{}", header.file);
    }
}

#[test]
fn the_headers_compile_as_c_and_as_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    for header in HEADERS {
        let text = format!(
            "#include <portcullis/{}>\n{};\n",
            header.file, header.manifest
        );
        for (compiler, standard, file) in [
            ("cc", "c99", "mine.c"),
            ("cc", "c17", "mine.c"),
            ("c++", "c++11", "mine.cpp"),
            ("c++", "c++20", "mine.cpp"),
        ] {
            let source = folder.path().join(file);
            std::fs::write(&source, &text).expect("writing");
            compile(compiler, standard, &source, &["-fsyntax-only"]);
        }
    }
}

fn compile(compiler: &str, standard: &str, source: &Path, options: &[&str]) {
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-I", INCLUDE])
        .arg(format!("-std={standard}"))
        .args(options)
        .arg(source);
    let done = command.output().expect("a compiler");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{compiler} -std={standard}: {said}");
}
