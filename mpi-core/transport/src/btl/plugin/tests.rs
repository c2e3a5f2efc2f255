//! Tests of transports from plugin files: a lossy one over UDP in Rust.

use super::*;
use crate::btl::suite::{Net, cramped};
use crate::btl::{Btl, ProcId, Reach};
use crate::rte::TestModex;
use mpi_base::param::{Params, Source};
use std::path::Path;
use tempfile::TempDir;
// Linked, so that cargo makes the plugin first.
use udp_plugin as _;

/// A folder with the plugin that cargo has put beside the test executables.
fn shelf() -> TempDir {
    let made = std::env::current_exe().expect("this test has a path");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("btl_udp.so");
    std::fs::copy(made.with_file_name("libudp_plugin.so"), file).expect("cargo has made it");
    folder
}

fn params(folder: &Path, pairs: &[(&str, &str)]) -> Params {
    let mut params = cramped(pairs);
    let path = folder.to_string_lossy();
    params.set("mca_component_path", &path, Source::CommandLine);
    params
}

fn open(
    me: ProcId,
    size: u32,
    params: &Params,
    modex: &TestModex,
) -> Result<Vec<Transport>, String> {
    let context = OpenContext {
        me,
        size,
        node: None,
        params,
        modex: Some(modex.of(me)),
    };
    let component = Component::load("udp", &context).map_err(|error| error.to_string())?;
    component.open(&context).map_err(|error| error.to_string())
}

fn net(size: u32, pairs: &[(&str, &str)]) -> Net {
    let (folder, modex) = (shelf(), TestModex::default());
    let params = params(folder.path(), pairs);
    let all = (0..size).flat_map(|me| open(me, size, &params, &modex).expect("a transport"));
    // The higher rank sends.
    let btls: Vec<Box<dyn Btl + Send>> = all.collect();
    Net {
        btls: btls.into_iter().rev().collect(),
        procs: (0..size).rev().collect(),
        pair: (0, 1),
    }
}

mod over_udp {
    crate::btl_suite!(|| super::net(3, &[]));
}

mod over_lossy_udp {
    crate::btl_suite!(long || super::net(2, &[("btl_udp_loss", "9")]));
}

#[test]
fn a_transport_that_loses_datagrams_loses_no_message() {
    crate::btl::suite::messages_of_all_sizes_arrive_once_each_in_order(net(
        2,
        &[("btl_udp_loss", "20")],
    ));
}

#[test]
fn a_listing_reads_manifests_only() {
    let folder = shelf();
    let odd = folder.path().join("btl_odd.so");
    std::fs::write(&odd, "no library").expect("a file");
    let found = list(&params(folder.path(), &[]));
    let names: Vec<_> = found
        .iter()
        .map(|found| (&*found.name, found.version.clone().ok()))
        .collect();
    assert_eq!(names, [("odd", None), ("udp", Some("1.0".into()))]);
}

#[test]
fn a_peer_with_another_version_is_not_reached_for_a_reason_with_both() {
    let (folder, modex) = (shelf(), TestModex::default());
    let params = params(folder.path(), &[]);
    let ours = open(0, 2, &params, &modex).expect("a transport").remove(0);
    let _theirs = open(1, 2, &params, &modex).expect("a transport");
    let card = modex.of(0).get(1, "btl-udp").expect("a card");
    let mut other = super::super::fabric::card::Card::decode(&card).expect("whole");
    other.address[3] = b'9';
    modex.put(1, "btl-udp", &other.encode());
    let Reach::No(why) = ours.reach(1) else {
        panic!("it is reached");
    };
    assert!(
        why.starts_with(
            "it has version 1.9 of the transport udp, and this process version 1.0 from "
        ) && why.ends_with("btl_udp.so"),
        "{why}"
    );
}

#[test]
fn a_transport_that_declines_and_a_file_that_is_none_have_their_sentences() {
    let (folder, modex) = (shelf(), TestModex::default());
    let odd = params(folder.path(), &[("btl_udp_address", "203.0.113.77")]);
    let declined = open(0, 2, &odd, &modex).err().expect("it declines");
    assert!(
        declined.starts_with("the transport udp: no socket on 203.0.113.77"),
        "{declined}"
    );
    // A new file: this process has mapped the old one.
    let file = folder.path().join("btl_udp.so");
    std::fs::remove_file(&file).expect("removing");
    std::fs::write(&file, "no library").expect("a file");
    let refused = open(0, 2, &odd, &modex).err().expect("it is none");
    assert!(
        refused.contains("btl_udp.so: it is no shared object for this machine"),
        "{refused}"
    );
}
