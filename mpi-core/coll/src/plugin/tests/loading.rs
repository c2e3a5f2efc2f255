//! Tests of the search for plugins: which files become components, and the error texts of the other files.

use super::{Catalogue, Shelf, compile, guests};
use crate::plugin::{LoadError, ManifestError, Origin, TableError, Untrusted};
use mpi_base::param::Source;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

/// Returns the error text of the rejected file, which must be the only one.
fn sentence(catalogue: &Catalogue) -> String {
    assert!(catalogue.taken.is_empty() && catalogue.rejected.len() == 1);
    catalogue.rejected[0].reason.to_string()
}

#[test]
fn a_plugin_is_found_with_its_name_version_and_parameters() {
    let shelf = Shelf::new().with("coll_linear.so", &[]);
    let catalogue = shelf.gather();
    assert_eq!(catalogue.rejected, []);
    let taken = &catalogue.taken[0];
    assert_eq!(
        (
            taken.plugin.name,
            taken.plugin.version,
            taken.plugin.priority
        ),
        ("linear", "1.0", 90)
    );
    assert_eq!(
        taken.origin,
        Origin::File(shelf.path().join("coll_linear.so"))
    );
    let names: Vec<_> = taken.plugin.params.iter().map(|p| p.full_name()).collect();
    assert_eq!(
        names,
        [
            "coll_linear_priority",
            "coll_linear_hand_down",
            "coll_linear_refuse"
        ]
    );
    assert_eq!(taken.plugin.params[1].kind.to_string(), "unsigned_int");
}

#[test]
fn a_plugin_for_another_version_is_refused_with_both_versions() {
    let refused = |define| sentence(&Shelf::new().with("coll_linear.so", &[define]).gather());
    assert_eq!(
        refused("-DABI=3"),
        "it was built for version 3 of the plugin ABI, this library speaks version 2"
    );
    assert_eq!(
        refused("-DPORTCULLIS_NEEDS_MINOR=9"),
        "it needs version 2.9 of the plugin ABI, this library has 2.0; a newer Portcullis has it"
    );
    let old = refused("-DNO_MANIFEST");
    assert!(
        old.contains("so it is no plugin or one for version 1 of the plugin ABI"),
        "{old}"
    );
}

/// Compiler option that makes the C plugin call `abort()` when it is loaded.
const ABORTS: &str = "-DAT_OPEN=abort()";

#[test]
fn a_file_whose_manifest_is_refused_runs_no_code() {
    for (file, defines) in [
        ("coll_linear.so", ["-DPORTCULLIS_NEEDS_MINOR=9", ABORTS]),
        ("coll_linear.so", ["-DNO_MANIFEST", ABORTS]),
        ("coll_linear.so", ["-DM_FRAMEWORK=\"btl\"", ABORTS]),
        ("coll_other.so", ["-DNAME=\"linear\"", ABORTS]),
    ] {
        let catalogue = Shelf::new().with(file, &defines).gather();
        let reason = &catalogue.rejected[0].reason;
        assert!(matches!(reason, LoadError::Manifest(_)), "{reason}");
    }
    // The file is not newer than the selected component, so its code must not run either.
    let old = ["-DNAME=\"old\"", "-DVERSION=\"1.9\"", ABORTS];
    let catalogue = Shelf::new().with("coll_old.so", &old).gather_preferring("");
    assert_eq!(catalogue.taken[0].origin, Origin::BuiltIn);
}

#[test]
fn a_table_that_contradicts_the_manifest_is_refused_with_both() {
    let defines = ["-DVERSION=\"1.1\"", "-DM_VERSION=\"1.0\""];
    assert_eq!(
        sentence(&Shelf::new().with("coll_linear.so", &defines).gather()),
        "its table is that of the component linear 1.1, and its manifest says linear 1.0"
    );
}

#[test]
fn every_defect_of_a_table_has_its_own_sentence() {
    let error = |defines: &[&str]| {
        Shelf::new()
            .with("coll_linear.so", defines)
            .gather()
            .rejected
            .remove(0)
            .reason
    };
    assert_eq!(
        error(&["-DRETURN=(component.size ? NULL : &component)"]),
        LoadError::Table(TableError::Null)
    );
    assert_eq!(
        error(&["-DSIZE=40"]),
        LoadError::Table(TableError::Short {
            size: 40,
            needed: 64
        })
    );
    assert_eq!(
        error(&["-DFRAMEWORK=\"btl\""]),
        LoadError::Table(TableError::Framework {
            theirs: "btl".into()
        })
    );
    assert_eq!(
        error(&["-DNAME=\"Linear!\"", "-DM_NAME=\"linear\""]),
        LoadError::Table(TableError::Name {
            theirs: "Linear!".into()
        })
    );
    assert_eq!(
        error(&["-DPARAMS=4000000"]),
        LoadError::Table(TableError::Params { count: 4_000_000 })
    );
    assert_eq!(
        error(&["-DRETURN=(const void *)((const char *)&component + 1)"]),
        LoadError::Table(TableError::Misplaced)
    );
    assert_eq!(
        error(&["-DVERSION=NULL", "-DM_VERSION=\"1.0\""]),
        LoadError::Table(TableError::Text { field: "version" })
    );
}

#[test]
fn a_newer_and_larger_table_is_taken() {
    // A plugin that was built with a later header of the same ABI version has a larger table.
    // The library does not read the additional fields.
    let catalogue = Shelf::new()
        .with("coll_linear.so", &["-DSIZE=4096"])
        .gather();
    assert_eq!(catalogue.taken.len(), 1);
}

#[test]
fn a_file_that_the_selection_leaves_out_is_not_opened() {
    let shelf = Shelf::new().with("coll_aborts.so", &["-DNAME=\"aborts\"", ABORTS]);
    for selection in ["^aborts", "shm,basic"] {
        let mut params = shelf.params();
        params.set("coll", selection, Source::CommandLine);
        let catalogue = Catalogue::gather(&[], &[], &params, None);
        assert!(catalogue.taken.is_empty() && catalogue.rejected.is_empty());
        assert!(catalogue.passed.reads("coll_aborts_priority"));
    }
    // A file that is not named like a plugin is not opened either.
    let file = shelf.path().join("coll_aborts.so");
    fs::rename(&file, shelf.path().join("aborts.so")).expect("renaming");
    assert_eq!(
        sentence(&shelf.gather()),
        "its name is not coll_COMPONENT.so or btl_COMPONENT.so, so it is not opened; COMPONENT is the name in its table"
    );
}

#[test]
fn a_file_is_named_after_its_component() {
    let shelf = Shelf::new().with("coll_other.so", &[]);
    assert_eq!(
        sentence(&shelf.gather()),
        "its component is called linear, so the file must be called coll_linear.so"
    );
}

#[test]
fn what_every_user_can_write_is_not_opened() {
    let shelf = Shelf::new().with("coll_linear.so", &[]);
    let file = shelf.path().join("coll_linear.so");
    let set = |path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("rights");
    set(&file, 0o666);
    let all = |mode| LoadError::Untrusted(Untrusted::All { mode });
    assert_eq!(shelf.gather().rejected[0].reason, all(0o666));
    set(&file, 0o644);
    assert_eq!(shelf.gather().taken.len(), 1);
    let folder = shelf.path();
    set(&folder, 0o1777);
    let catalogue = shelf.gather();
    assert!(catalogue.taken.is_empty());
    assert_eq!(
        (&catalogue.rejected[0].file, &catalogue.rejected[0].reason),
        (&folder, &all(0o1777))
    );
}

#[test]
fn a_symbol_of_a_library_that_the_file_needs_does_not_make_it_a_plugin() {
    let shelf = Shelf::new().with("coll_linear.so", &[]);
    let elsewhere = Shelf::new();
    let source = elsewhere.path().join("nothing.c");
    let manifest = "PORTCULLIS_PLUGIN(\"coll\", \"nothing\", \"1.0\");";
    fs::write(
        &source,
        format!("#include <portcullis/plugin.h>\n{manifest}\n"),
    )
    .expect("writing");
    let needed = shelf.path().join("coll_linear.so");
    let needed = needed.to_str().expect("a path");
    compile(
        &source,
        &["-shared", "-fPIC", "-Wl,--no-as-needed", needed],
        &elsewhere.path().join("coll_nothing.so"),
    );
    let said = sentence(&elsewhere.gather());
    assert!(
        said.contains("coll_linear.so, which it needs, is not its own"),
        "{said}"
    );
}

#[test]
fn a_file_that_cannot_be_loaded_keeps_the_linkers_reason() {
    let calls = "-DAT_OPEN=extern void missing(void); missing()";
    let said = sentence(&Shelf::new().with("coll_linear.so", &[calls]).gather());
    assert!(
        said.starts_with("it cannot be loaded: ") && said.contains("undefined symbol: missing"),
        "{said}"
    );
    let garbage = Shelf::new();
    fs::write(garbage.path().join("coll_garbage.so"), "no library").expect("writing");
    fs::write(garbage.path().join("README"), "no plugin at all").expect("writing");
    let refused = garbage.gather().rejected.remove(0).reason;
    assert_eq!(refused, LoadError::Manifest(ManifestError::Machine));
}

#[test]
fn a_library_that_is_no_plugin_is_told_apart() {
    let shelf = Shelf::new().with("coll_linear.so", &["-Dportcullis_component=something_else"]);
    assert_eq!(
        sentence(&shelf.gather()),
        "it does not export portcullis_component, so it is not a plugin"
    );
}

#[test]
fn the_library_to_preload_that_an_installation_has_beside_its_plugins_is_no_plugin_that_failed() {
    let shelf = Shelf::new();
    let file = shelf.path().join(mpi_base::installation::PRELOAD);
    std::fs::write(file, "not even opened").expect("writing");
    let catalogue = shelf.gather();
    assert!(catalogue.rejected.is_empty(), "{:?}", catalogue.rejected);
}

#[test]
fn a_directory_that_the_user_named_must_exist() {
    let mut params = Shelf::new().params();
    let nowhere = "/nonexistent/plugins";
    params.set(
        "mca_component_path",
        nowhere,
        mpi_base::param::Source::CommandLine,
    );
    let catalogue = Catalogue::gather(&[], &[], &params, None);
    assert!(
        catalogue.rejected[0]
            .to_string()
            .starts_with("/nonexistent/plugins: the directory cannot be read: ")
    );
    let unnamed = Catalogue::gather(&[], &[], &Default::default(), Some(nowhere.as_ref()));
    assert_eq!(unnamed.rejected, []);
}

#[test]
fn files_of_the_usual_directory_are_passed_over_where_another_is_named() {
    let (usual, named) = (Shelf::new().with("coll_linear.so", &[]), Shelf::new());
    let passed = |params| Catalogue::gather(&[], &[], &params, Some(&usual.path())).passed;
    assert!(passed(named.params()).reads("coll_linear_size"));
    assert!(!passed(Default::default()).reads("coll_linear_size"));
}

#[test]
fn the_newer_of_two_wins_and_a_preferred_file_always() {
    let as_old = ["-DNAME=\"old\"", "-DVERSION=\"1.9.0\""];
    let origin = |shelf: &Shelf, prefer| shelf.gather_preferring(prefer).taken[0].origin.clone();
    let older = Shelf::new().with("coll_old.so", &as_old);
    assert_eq!(origin(&older, ""), Origin::BuiltIn);
    let reason = older.gather_preferring("").rejected[0].reason.to_string();
    assert!(
        reason.contains("old 1.9.0 is not newer than old 1.9 from the library itself"),
        "{reason}"
    );
    assert_eq!(
        origin(&older, "x, old"),
        Origin::File(older.path().join("coll_old.so"))
    );
    // The parameters of the skipped plugin are not reported as unknown.
    for prefer in ["", "old"] {
        let passed = older.gather_preferring(prefer).passed;
        assert!(passed.reads("coll_old_priority"), "{prefer}");
    }
    let newer = Shelf::new().with("coll_old.so", &["-DNAME=\"old\"", "-DVERSION=\"1.10\""]);
    let file = newer.path().join("coll_old.so");
    let both = std::env::join_paths([older.path(), newer.path()]).expect("paths");
    let mut params = newer.params();
    params.set(
        "mca_component_path",
        &both.to_string_lossy(),
        Source::Environment,
    );
    let taken = Catalogue::gather(&[guests::OLD], &[], &params, None).taken;
    assert_eq!((taken.len(), &taken[0].origin), (1, &Origin::File(file)));
}

#[test]
fn names_of_the_engine_are_not_for_files() {
    let shelf = Shelf::new().with("coll_basic.so", &["-DNAME=\"basic\""]);
    let catalogue = Catalogue::gather(&[], &["basic", "shm"], &shelf.params(), None);
    assert_eq!(
        catalogue.rejected[0].reason,
        LoadError::Reserved {
            name: "basic".into()
        }
    );
}
