//! Tests of transports from plugin files: one in Rust over UDP that loses messages, and one in C that reads and writes peers' memory.

use super::*;
use crate::btl::suite::{Net, cramped};
use crate::btl::{Btl, ProcId, Reach};
use crate::rte::TestModex;
use mpi_base::param::{Params, Source};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
// Linked, so that cargo builds the plugin before this test.
use udp_plugin as _;

/// Returns a folder with a copy of the Rust plugin, which cargo has built next to the test executable.
fn shelf() -> TempDir {
    let made = std::env::current_exe().expect("this test has a path");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("btl_udp.so");
    std::fs::copy(made.with_file_name("libudp_plugin.so"), file).expect("cargo has made it");
    folder
}

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../include");
const DATAGRAMS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/btl/plugin/testdata/datagrams.c"
);

/// Compiles the plugin in C with the options `defines`, and returns a folder with the plugin.
fn shelf_in_c(defines: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    cc.args(["-shared", "-fPIC", "-I", INCLUDE]).args(defines);
    let file = folder.path().join("btl_datagrams.so");
    let done = cc.arg("-o").arg(file).arg(DATAGRAMS).output();
    let done = done.expect("a C compiler named cc");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "cc: {said}");
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
    open_named("udp", me, size, params, modex)
}

fn open_named(
    name: &str,
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
    let component = Component::load(name, &context).map_err(|error| error.to_string())?;
    component.open(&context).map_err(|error| error.to_string())
}

fn net(size: u32, pairs: &[(&str, &str)]) -> Net {
    net_of("udp", &shelf(), size, pairs)
}

fn net_of(name: &str, folder: &TempDir, size: u32, pairs: &[(&str, &str)]) -> Net {
    let modex = TestModex::default();
    let params = params(folder.path(), pairs);
    let opened = |me| open_named(name, me, size, &params, &modex).expect("a transport");
    let all = (0..size).flat_map(opened);
    // The transports are in reverse order of ranks, so the process with the higher rank sends.
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

mod over_datagrams_in_c {
    crate::btl_suite!(|| super::net_of("datagrams", &super::shelf_in_c(&[]), 3, &[]));
}

mod over_the_built_in_one {
    fn net() -> super::Net {
        let empty = tempfile::tempdir().expect("a folder");
        super::net_of("dgram", &empty, 3, &[])
    }

    crate::btl_suite!(net);

    #[test]
    fn it_offers_accesses_to_memory() {
        let net = net();
        let mut all = net.btls.iter();
        assert!(all.all(|btl| btl.capabilities().remote_memory.is_some()));
    }
}

/// Returns true if the transports of both processes of a pair support access to peers' memory.
fn has_memory(defines: &[&str], pairs: &[(&str, &str)]) -> bool {
    let net = net_of("datagrams", &shelf_in_c(defines), 2, pairs);
    let mut all = net.btls.iter();
    all.all(|btl| btl.capabilities().remote_memory.is_some())
}

#[test]
fn a_transport_offers_accesses_to_memory_if_its_table_has_them_and_the_user_allows_them() {
    assert!(has_memory(&[], &[]));
    assert!(!has_memory(&[], &[("btl_datagrams_read", "no")]));
    assert!(!has_memory(&["-DNO_MEMORY"], &[]));
    let (folder, modex) = (shelf_in_c(&["-DNO_ACCESS"]), TestModex::default());
    let params = params(folder.path(), &[]);
    let refused = open_named("datagrams", 0, 2, &params, &modex).err();
    let refused = refused.expect("two of three functions");
    assert!(
        refused.ends_with("its table has some of expose, withdraw and access, and not all three"),
        "{refused}"
    );
}

/// Tests a plugin that was compiled with the first version of the header, whose table ends with `free`.
#[test]
fn a_table_of_the_first_version_is_used_without_the_functions_that_it_lacks() {
    let old = [
        "-DRETURN=(old=transport,old.size=offsetof(portcullis_transport_table,expose),&old)",
        "-DOLD",
    ];
    assert!(!has_memory(&old, &[]));
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
    // The file is removed first, because this process has mapped the old file.
    let file = folder.path().join("btl_udp.so");
    std::fs::remove_file(&file).expect("removing");
    std::fs::write(&file, "no library").expect("a file");
    let refused = open(0, 2, &odd, &modex).err().expect("it is none");
    assert!(
        refused.contains("btl_udp.so: it is no shared object for this machine"),
        "{refused}"
    );
}
