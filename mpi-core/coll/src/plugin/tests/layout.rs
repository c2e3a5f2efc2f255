//! Layout tests: the header and the Rust tables are equal.

use super::compile;
use crate::CallId;
use crate::plugin::abi;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

/// Expands each field to its offset in Rust and a line of C that prints its offset there.
macro_rules! tables {
    ($($rust:ident is $c:literal { $($field:ident = $c_field:literal),* })*) => {{
        let (mut ours, mut program) = (String::new(), String::new());
        $(
            writeln!(ours, "{} {}", $c, size_of::<abi::$rust>()).unwrap();
            writeln!(program, "printf(\"{} %zu\\n\", sizeof({}));", $c, $c).unwrap();
            $(
                writeln!(ours, "{}.{} {}", $c, $c_field, offset_of!(abi::$rust, $field)).unwrap();
                writeln!(program, "printf(\"{}.{} %zu\\n\", offsetof({}, {}));", $c, $c_field, $c, $c_field).unwrap();
            )*
        )*
        (ours, program)
    }};
}

/// The FNV-1a hash of a text.
fn fnv(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

#[test]
fn the_header_and_the_rust_tables_have_one_layout() {
    let (mut ours, mut program) = tables! {
        Host is "portcullis_host" {
            size = "size", abi_version = "abi_version", reserved = "reserved", library = "library",
            comm_rank = "comm_rank", comm_size = "comm_size", comm_name = "comm_name", comm_is_world = "comm_is_world",
            comm_node_ranks = "comm_node_ranks", send = "send", recv = "recv", fence = "fence", start_send = "start_send", start_recv = "start_recv", test_message = "test_message",
            progress = "progress",
            wait = "wait", ring = "ring", shared_memory = "shared_memory", param = "param", log = "log",
            now_ns = "now_ns", call_next = "call_next", component_data = "component_data",
            barrier_wire = "barrier_wire", failed_ranks = "failed_ranks", fail = "fail", topology = "topology",
            named_type = "named_type", type_info = "type_info", op_info = "op_info", pack = "pack", unpack = "unpack", copy = "copy",
            reduce = "reduce", combine = "combine", temporary = "temporary", call_send = "call_send", call_recv = "call_recv",
            call_test = "call_test", call_wait = "call_wait"
        }
        ModuleTable is "portcullis_module" {
            size = "size", enable = "enable", barrier = "barrier", barrier_start = "barrier_start",
            barrier_test = "barrier_test", disable = "disable", free = "free", attend = "attend",
            eureka_begin = "eureka_begin", eureka_raise = "eureka_raise", eureka_test = "eureka_test", eureka_end = "eureka_end",
            operations = "operations", operation_count = "operation_count", operation_size = "operation_size"
        }
        Operation is "portcullis_operation" {
            operation = "operation", flags = "flags", limit = "limit", run = "run", start = "start", test = "test", forget = "forget",
            dense = "dense"
        }
        Args is "portcullis_args" {
            size = "size", operation = "operation", root = "root", op = "op", send = "send", recv = "recv", send_count = "send_count",
            recv_count = "recv_count", counts = "counts", sources = "sources", destinations = "destinations", bytes = "bytes", plan = "plan",
            source_count = "source_count", destination_count = "destination_count", arrivals = "arrivals", arrival_count = "arrival_count"
        }
        Buffer is "portcullis_buffer" { address = "address", count = "count", datatype = "type" }
        TypeInfo is "portcullis_type_info" {
            size = "size", bytes = "bytes", lb = "lb", extent = "extent", true_lb = "true_lb", true_extent = "true_extent", handle = "handle"
        }
        OpInfo is "portcullis_op_info" { size = "size", handle = "handle", commutes = "commutes" }
        Topology is "portcullis_topology" { size = "size", host = "host", cores = "cores", ranks_here = "ranks_here" }
        Param is "portcullis_param" { name = "name", default_value = "default_value", help = "help", kind = "type" }
        ComponentTable is "portcullis_component_table" {
            size = "size", abi_version = "abi_version", priority = "priority", framework = "framework", name = "name",
            version = "version", params = "params", param_count = "param_count", query = "query", asked_by = "asked_by"
        }
        Why is "portcullis_why" { text = "text" }
    };
    let (minor, layout) = (abi::INTERFACE.minor(), fnv(&ours));
    assert_eq!(
        (abi::INTERFACE.layout(), layout),
        (layout, layout),
        "the tables have grown: raise the minor version, in abi.rs and in the header, with the layout hash {layout:#x}"
    );
    for (name, value) in [
        ("PORTCULLIS_ABI_VERSION", abi::ABI_VERSION as i32),
        ("PORTCULLIS_ABI_MINOR", minor as i32),
        ("PORTCULLIS_NEEDS_MINOR", minor as i32),
        ("PORTCULLIS_ABI_LAYOUT", layout as i32),
        ("PORTCULLIS_NO_RANK", abi::NO_RANK as i32),
        ("PORTCULLIS_PREDEFINED", abi::PREDEFINED as i32),
        ("PORTCULLIS_COMMUTATIVE", abi::COMMUTATIVE as i32),
        ("PORTCULLIS_FAILED", abi::FAILED),
        ("PORTCULLIS_DONE", abi::DONE),
        ("PORTCULLIS_PENDING", abi::PENDING),
        ("PORTCULLIS_NEXT", abi::NEXT),
        ("PORTCULLIS_INFO", abi::INFO),
        ("PORTCULLIS_WARNING", abi::WARNING),
    ] {
        writeln!(ours, "{name} {value}").unwrap();
        writeln!(program, "printf(\"{name} %d\\n\", (int){name});").unwrap();
    }
    for call in CallId::ALL {
        let name = format!("PORTCULLIS_{}", call.name().to_uppercase());
        writeln!(ours, "{name} {}", call as i32).unwrap();
        writeln!(program, "printf(\"{name} %d\\n\", (int){name});").unwrap();
    }
    let place = tempfile::tempdir().expect("a directory");
    let (source, binary) = (place.path().join("layout.c"), place.path().join("layout"));
    let program = format!(
        "#include <portcullis/plugin.h>\n#include <stdio.h>\nint main(void) {{\n{program}return 0;\n}}\n"
    );
    std::fs::write(&source, program).expect("writing");
    compile(&source, &[], &binary);
    let theirs = Command::new(&binary).output().expect("running").stdout;
    assert_eq!(ours, String::from_utf8_lossy(&theirs));
}

#[test]
fn the_header_is_c99_and_cpp() {
    let place = tempfile::tempdir().expect("a directory");
    let source =
        "#include <portcullis/plugin.h>\nPORTCULLIS_PLUGIN(\"coll\", \"mine\", \"1.0\");\n";
    for (compiler, standard, file) in [
        ("cc", "c99", "mine.c"),
        ("cc", "c11", "mine.c"),
        ("c++", "c++11", "mine.cpp"),
        ("c++", "c++20", "mine.cpp"),
    ] {
        let path = place.path().join(file);
        std::fs::write(&path, source).expect("writing");
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]);
        command
            .args(["-I", super::INCLUDE])
            .arg(format!("-std={standard}"));
        let done = command.arg(&path).output().expect("a compiler");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{compiler} -std={standard}: {said}");
    }
}
