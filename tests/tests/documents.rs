//! Tests that the commands in documents print the output that the documents show.

use std::fs;

use tests::document::Document;
use xtask::workspace;

#[test]
fn each_command_of_the_tutorial_prints_what_the_tutorial_shows() {
    let counts = Document::of("docs/tutorial.md").holds();
    assert!(counts.files >= 4 && counts.commands >= 8, "{counts:?}");
}

#[test]
fn the_job_of_the_document_on_checkpoints_is_taken_up_as_it_shows() {
    let counts = Document::of("docs/checkpoint.md").holds();
    assert!(counts.files >= 2 && counts.commands >= 3, "{counts:?}");
}

/// Clippy and other tests compile the packages in the repository.
#[test]
fn the_rust_plugins_of_the_document_are_the_packages_in_the_repository() {
    let document = Document::of("docs/plugins.md");
    has_source_of(&document, "star/src/lib.rs", "tests/star-plugin");
    has_source_of(&document, "udp/src/lib.rs", "tests/udp-plugin");
}

fn has_source_of(document: &Document, file: &str, package: &str) {
    let source = workspace::root().join(package).join("src/lib.rs");
    let source = fs::read_to_string(source).expect("the plugin's source");
    assert_eq!(document.file(file), source, "{file}");
}

/// This test is long, because it compiles two packages in release mode, for more than a minute.
/// The test files `plugin` and `privileged` test plugins in every run.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_plugins_of_the_document_serve_as_it_shows_built_outside_of_the_sources() {
    let counts = Document::of("docs/plugins.md").holds();
    assert!(counts.files >= 9 && counts.commands >= 20, "{counts:?}");
}
