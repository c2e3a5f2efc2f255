//! Tests of limits for large types (`docs/adr/0038-*`): few methods per type, private state,
//! and in `mpi-abi`, objects and errors must not import tables.

use std::path::Path;

use super::{circles, crate_roots, name, read, root};

/// Maximum number of methods of a type, summed over all files.
const MOST_METHODS: usize = 40;

/// The structs that contain the state of the engine, a communicator, a window and the process:
/// their fields must be private.
const STATES: &[(&str, &[&str])] = &[
    ("mpi-core/engine/src/engine/mod.rs", &["Engine", "Inner"]),
    ("mpi-core/engine/src/engine/place.rs", &["Place"]),
    ("mpi-core/engine/src/engine/waiting.rs", &["Waiting"]),
    (
        "mpi-core/engine/src/engine/active_operations.rs",
        &["ActiveOperations"],
    ),
    ("mpi-core/engine/src/comm/mod.rs", &["Comm", "Inner"]),
    ("mpi-core/osc/src/win.rs", &["Win", "WinState"]),
    ("mpi-abi/src/state/mod.rs", &["State"]),
    ("mpi-abi/src/state/tables.rs", &["Tables"]),
];

/// Restricted imports, as (package, importing files, files that they must not import).
const BELOW: &[(&str, &str, &[&str])] = &[
    (
        "mpi-abi",
        "mpi-abi/src/object/",
        &[
            "mpi-abi/src/state/",
            "mpi-abi/src/registry/",
            "mpi-abi/src/api/",
        ],
    ),
    (
        "mpi-abi",
        "mpi-abi/src/error/",
        &[
            "mpi-abi/src/state/",
            "mpi-abi/src/registry/",
            "mpi-abi/src/api/",
            "mpi-abi/src/raise.rs",
        ],
    ),
    (
        "mpi-abi",
        "mpi-abi/src/state/",
        &[
            "mpi-abi/src/registry/",
            "mpi-abi/src/api/",
            "mpi-abi/src/raise.rs",
        ],
    ),
    (
        "mpi-core/osc",
        "mpi-core/osc/src/state/",
        &[
            "mpi-core/osc/src/access/",
            "mpi-core/osc/src/am/",
            "mpi-core/osc/src/sync/",
            "mpi-core/osc/src/make.rs",
            "mpi-core/osc/src/win.rs",
        ],
    ),
];

#[test]
fn no_type_has_more_methods_than_a_reader_can_hold() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for root in crate_roots() {
        for ((file, of), methods) in circles::methods(&root) {
            seen += 1;
            if methods.len() > MOST_METHODS {
                let (file, count) = (name(&file), methods.len());
                wrong.push(format!(
                    "{file}: {of} has {count} methods, at most {MOST_METHODS}"
                ));
            }
        }
    }
    assert!(seen > 500, "only {seen} types were found");
    assert!(
        wrong.is_empty(),
        "divide these types:\n{}",
        wrong.join("\n")
    );
}

/// Returns the names of the public fields of the struct `of` in a source text.
fn public_fields(source: &str, of: &str) -> Option<Vec<String>> {
    let parsed = syn::parse_file(source).expect("a source");
    let found = parsed.items.into_iter().find_map(|item| match item {
        syn::Item::Struct(item) if item.ident == of => Some(item),
        _ => None,
    })?;
    let public = found
        .fields
        .iter()
        .filter(|field| !matches!(field.vis, syn::Visibility::Inherited));
    let name = |field: &syn::Field| match &field.ident {
        Some(ident) => ident.to_string(),
        None => "0".into(),
    };
    Some(public.map(name).collect())
}

#[test]
fn the_state_of_the_engine_communicators_windows_and_the_process_is_private() {
    let mut wrong = Vec::new();
    for (file, structs) in STATES {
        let source = read(&root().join(file));
        for of in *structs {
            match public_fields(&source, of) {
                None => wrong.push(format!("{file}: {of} is elsewhere now")),
                Some(fields) => wrong.extend(
                    fields
                        .into_iter()
                        .map(|field| format!("{file}: {of}::{field} is public")),
                ),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_public_field_is_found() {
    let source = "struct State { pub tables: u8, lock: u8 } struct Win(pub(crate) u8);";
    assert_eq!(public_fields(source, "State"), Some(vec!["tables".into()]));
    assert_eq!(public_fields(source, "Win"), Some(vec!["0".into()]));
    assert_eq!(public_fields(source, "Comm"), None);
}

#[test]
fn objects_and_errors_know_no_tables_and_state_no_operations() {
    let mut wrong = Vec::new();
    for (package, from, never) in BELOW {
        let imports = circles::imports(&root().join(package).join("src/lib.rs"));
        let is_below = |path: &Path, folder: &str| name(path).starts_with(folder);
        let files = imports.iter().filter(|(file, _, _)| is_below(file, from));
        let files: Vec<_> = files.collect();
        assert!(!files.is_empty(), "{from} has moved");
        for (file, to, what) in files {
            if never.iter().any(|never| is_below(to, never)) {
                wrong.push(format!("{} imports {what} of {}", name(file), name(to)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
