//! Checks that the commands of documents print what the documents show.

use std::fs;
use std::path::PathBuf;

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

/// Returns the plugin in Rust, which cargo puts beside the test executables.
fn made_by_cargo() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    test.with_file_name("libstar_plugin.so")
}

#[test]
fn the_components_of_the_document_on_plugins_serve_barriers_as_it_shows() {
    let document = Document::of("docs/plugins.md");
    let source = workspace::root().join("tests/star-plugin/src/lib.rs");
    let source = fs::read_to_string(source).expect("the plugin's source");
    assert_eq!(document.file("star/src/lib.rs"), source);
    // The document builds it in a package of its own.
    let made = document.folder().join("star/target/release");
    fs::create_dir_all(&made).expect("the package's folder");
    fs::copy(made_by_cargo(), made.join("libstar.so")).expect("cargo has made the plugin");
    let counts = document.holds();
    assert!(counts.files >= 4 && counts.commands >= 8, "{counts:?}");
}
