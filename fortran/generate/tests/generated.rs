//! Tests that checked-in files equal the generated text, and that the tables agree with those of C.

use mpi_fortran_generate::{files, signatures, table};
use std::path::{Path, PathBuf};

fn fortran() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn tables() -> table::Tables {
    table::read(&fortran().join("api")).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_checked_in_files_are_what_the_tables_give() {
    for (name, text) in files(&tables()) {
        let path = fortran().join(name);
        let there =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(
            there == text,
            "fortran/{name} is not what the tables give; run `cargo xtask gen`"
        );
    }
}

#[test]
fn mpif_h_compiles_in_fixed_and_in_free_form() {
    let tables = tables();
    let all = files(&tables);
    let (_, text) = all
        .iter()
        .find(|(n, _)| n.ends_with("mpif.h"))
        .expect("mpif.h");
    for line in text.lines() {
        assert!(
            line.len() <= 72,
            "a compiler cuts this line in fixed form: {line}"
        );
        assert!(
            line.starts_with('!') || line.starts_with("      "),
            "this is no statement in fixed form: {line}"
        );
        assert!(!line.ends_with('&'), "a statement of several lines: {line}");
    }
}

#[test]
fn no_line_of_the_modules_is_longer_than_the_fortran_standard_allows() {
    for (name, text) in files(&tables()) {
        for line in text.lines() {
            assert!(line.len() <= 132, "{name}: {line}");
        }
    }
}

#[test]
fn every_procedure_has_a_symbol_under_both_names() {
    let tables = tables();
    let symbols = signatures::symbols(&tables);
    for procedure in tables.calls() {
        let name = procedure.name.to_lowercase();
        if procedure.in_mpi {
            assert!(symbols.contains(&format!("{name}_")), "{name}_");
            assert!(symbols.contains(&format!("p{name}_")), "p{name}_");
        }
        if procedure.in_f08 {
            for width in procedure.widths() {
                let name = procedure.specific(*width).to_lowercase();
                assert!(symbols.contains(&format!("{name}_")), "{name}_");
                assert!(symbols.contains(&format!("p{name}_")), "p{name}_");
            }
        }
    }
}
