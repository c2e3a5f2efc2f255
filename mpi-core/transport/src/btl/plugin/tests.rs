//! Tests of transports from plugin files: a lossy one over UDP in Rust, and the layout of the tables.

use super::*;
use crate::btl::suite::{Net, cramped};
use crate::btl::{Btl, ProcId, Reach};
use crate::rte::TestModex;
use mpi_base::param::{Params, Source};
use portcullis_plugin::table;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
// Linked, so that cargo makes the plugin first.
use udp_plugin as _;

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../include");

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

/// Expands each field to its offset in Rust and a line of C that prints its offset there.
macro_rules! tables {
    ($($rust:ident is $c:literal { $($field:ident = $c_field:literal),* })*) => {{
        let (mut ours, mut program) = (String::new(), String::new());
        $(
            writeln!(ours, "{} {}", $c, size_of::<table::$rust>()).unwrap();
            writeln!(program, "printf(\"{} %zu\\n\", sizeof({}));", $c, $c).unwrap();
            $(
                writeln!(ours, "{}.{} {}", $c, $c_field, offset_of!(table::$rust, $field)).unwrap();
                writeln!(program, "printf(\"{}.{} %zu\\n\", offsetof({}, {}));", $c, $c_field, $c, $c_field).unwrap();
            )*
        )*
        (ours, program)
    }};
}

#[test]
fn the_header_and_the_rust_tables_have_one_layout() {
    let (mut ours, mut program) = tables! {
        Host is "portcullis_transport_host" {
            size = "size", abi_version = "abi_version", reserved = "reserved", library = "library", rank = "rank", ranks = "ranks",
            param = "param", log = "log", now_ns = "now_ns", arrived = "arrived", sent = "sent", failed = "failed"
        }
        Param is "portcullis_transport_param" { name = "name", default_value = "default_value", help = "help", kind = "type" }
        Transport is "portcullis_transport_table" {
            size = "size", abi_version = "abi_version", exclusivity = "exclusivity", name = "name", version = "version",
            params = "params", param_count = "param_count", eager = "eager", longest = "longest", poll_is_syscall = "poll_is_syscall",
            reserved = "reserved", open = "open", address = "address", connect = "connect", close = "close", send = "send",
            progress = "progress", is_quiet = "is_quiet", wait_on = "wait_on", free = "free"
        }
        Why is "portcullis_why" { text = "text" }
    };
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let layout = ours.bytes().fold(0x811c_9dc5, step);
    assert_eq!(
        table::INTERFACE.layout(),
        layout,
        "the tables have grown: raise the minor version, in table.rs and in the header, with the layout hash {layout:#x}"
    );
    for (name, value) in [
        ("PORTCULLIS_TRANSPORT_VERSION", table::VERSION as i32),
        (
            "PORTCULLIS_TRANSPORT_MINOR",
            table::INTERFACE.minor() as i32,
        ),
        ("PORTCULLIS_TRANSPORT_LAYOUT", layout as i32),
        ("PORTCULLIS_SENT", table::DONE),
        ("PORTCULLIS_SENDING", table::PENDING),
        ("PORTCULLIS_NO_SPACE", table::AGAIN),
    ] {
        writeln!(ours, "{name} {value}").unwrap();
        writeln!(program, "printf(\"{name} %d\\n\", (int){name});").unwrap();
    }
    let place = tempfile::tempdir().expect("a folder");
    let binary = place.path().join("layout");
    let program = format!(
        "#include <portcullis/transport.h>\n#include <stdio.h>\nPORTCULLIS_TRANSPORT(\"mine\", \"1.0\");\nint main(void) {{\n{program}return 0;\n}}\n"
    );
    compile(&place.path().join("layout.c"), &program, &binary);
    let theirs = Command::new(&binary).output().expect("running").stdout;
    assert_eq!(ours, String::from_utf8_lossy(&theirs));
}

fn compile(source: &PathBuf, text: &str, to: &Path) {
    std::fs::write(source, text).expect("writing");
    let mut cc = Command::new("cc");
    cc.args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-I",
        INCLUDE,
    ]);
    let done = cc
        .arg("-o")
        .arg(to)
        .arg(source)
        .output()
        .expect("a C compiler named cc");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}
