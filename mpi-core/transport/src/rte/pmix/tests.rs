//! Tests of the choice of a libpmix file and of the evaluation of results; these tests need no libpmix.

use super::super::{Env, open};
use super::abi;
use super::library::{Library, candidates};
use mpi_base::param::{Params, Source};
use std::path::PathBuf;

fn env(pairs: &[(&str, &str)]) -> Env {
    pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
}

#[test]
fn a_library_named_by_the_user_is_the_only_candidate() {
    assert_eq!(
        candidates("/a/libpmix.so".as_ref(), &["/p".into()]),
        [PathBuf::from("/a/libpmix.so")]
    );
}

#[test]
fn the_launchers_own_library_comes_before_the_systems() {
    let prefix = tempfile::tempdir().unwrap();
    let folder = prefix.path().join("lib/openmpi");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("libpmix.so.2"), "").unwrap();
    let found = candidates("".as_ref(), &[prefix.path().into()]);
    assert_eq!(found, [folder.join("libpmix.so.2"), "libpmix.so.2".into()]);
    assert_eq!(
        candidates("".as_ref(), &[]),
        [PathBuf::from("libpmix.so.2")]
    );
}

#[test]
fn a_launcher_without_its_library_is_an_error_that_names_every_file_tried() {
    let mut params = Params::default();
    params.set(
        "rte_pmix_library",
        "/nowhere/libpmix.so.2",
        Source::CommandLine,
    );
    let launched = env(&[("PMIX_NAMESPACE", "job@1"), ("PMIX_RANK", "3")]);
    let error = open(&launched, &params).err().unwrap().to_string();
    assert!(
        error.starts_with("this is rank 3 of the job job@1"),
        "{error}"
    );
    assert!(error.contains("/nowhere/libpmix.so.2"), "{error}");
}

#[test]
fn a_library_that_is_no_pmix_is_refused_by_the_name_that_is_missing() {
    let reasons = Library::open(&["libc.so.6".into()]).err().unwrap();
    assert!(reasons[0].contains("PMIx_Init"), "{reasons:?}");
}

#[test]
fn a_field_holds_what_fits_and_ends_with_zero() {
    assert_eq!(abi::text(&abi::field::<4>(b"abc").unwrap()), "abc");
    assert!(abi::field::<4>(b"abcd").is_none());
    assert!(abi::field::<4>(b"a\0c").is_none());
}

#[test]
fn a_number_is_read_in_whatever_type_it_comes() {
    let mut value = abi::Value::EMPTY;
    for (kind, whole, expected) in [
        (abi::kind::UINT16, 0xffff_0007, Some(7)),
        (abi::kind::UINT32, 0xffff_0000_0007, Some(7)),
        (abi::kind::UINT64, 1 << 40, Some(1 << 40)),
        (abi::kind::INT, 5, Some(5)),
        (abi::kind::INT, 0xffff_ffff, None),
        (abi::kind::STRING, 7, None),
    ] {
        value.kind = kind;
        value.data.whole = [whole, 0, 0];
        assert_eq!(value.number(), expected, "type {kind}");
    }
}

#[test]
fn a_child_of_a_rank_is_not_the_rank() {
    let parent = std::process::id() + 1;
    let child = env(&[
        ("PMIX_NAMESPACE", "job@1"),
        ("PMIX_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("PORTCULLIS_PMIX_RANK", &format!("job@1 3 {parent}")),
    ]);
    let opened = open(&child, &Params::default()).unwrap();
    assert_eq!(opened.rte.component(), "singleton");
    let reason = format!("process {parent}, which started this one, is the rank");
    assert!(opened.rejected.contains(&("pmix", reason)));
}
