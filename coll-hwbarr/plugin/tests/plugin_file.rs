//! Test of the plugin file: a library without the built-in component uses this crate's shared object.

use mpi_base::param::{Params, Source};
use mpi_core::coll::suite::barrier::{self, Form};
use mpi_core::engine::testing::Job;
use mpi_core::plugin::{Catalogue, Origin};
use std::path::{Path, PathBuf};

/// Returns the path of the shared object, which cargo places beside the test executables.
fn made_by_cargo() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    test.with_file_name("libcoll_hwbarr_plugin.so")
}

fn params(directory: &Path) -> Params {
    let mut params = Params::default();
    params.set(
        "mca_component_path",
        directory.to_str().expect("UTF-8"),
        Source::Environment,
    );
    params.set("coll_hwbarr_port", "sim", Source::Environment);
    params
}

#[test]
fn copied_into_the_plugin_directory_the_file_serves_the_barrier() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("coll_hwbarr.so");
    std::fs::copy(made_by_cargo(), &file).expect("cargo has made the plugin");
    let wanted = params(directory.path());
    let gather = move || Catalogue::gather(&[], &[], &wanted, None);
    let catalogue = gather();
    assert_eq!(catalogue.rejected, []);
    assert_eq!(catalogue.taken[0].origin, Origin::File(file));

    let job = Job {
        params: params(directory.path()),
        coll: Box::new(move || {
            let mut components = mpi_core::coll::built_in();
            components.extend(gather().components());
            components
        }),
        ..Job::of(4)
    };
    barrier::no_rank_leaves_before_all_have_entered(&job, "hwbarr", Form::Mixed, 100);
}

#[test]
fn the_one_that_is_built_in_is_kept_when_the_file_is_not_newer() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::copy(made_by_cargo(), directory.path().join("coll_hwbarr.so"))
        .expect("cargo has made the plugin");
    let catalogue = Catalogue::gather(&[coll_hwbarr::TABLE], &[], &params(directory.path()), None);
    assert_eq!(catalogue.taken.len(), 1);
    assert_eq!(catalogue.taken[0].origin, Origin::BuiltIn);
    assert!(
        catalogue.rejected[0]
            .to_string()
            .contains("is not newer than"),
        "{}",
        catalogue.rejected[0]
    );
}
