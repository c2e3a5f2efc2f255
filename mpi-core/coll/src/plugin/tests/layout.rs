//! Layout tests: the header and the Rust tables are equal.

use super::compile;
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
            barrier_wire = "barrier_wire", failed_ranks = "failed_ranks"
        }
        ModuleTable is "portcullis_module" {
            size = "size", enable = "enable", barrier = "barrier", barrier_start = "barrier_start",
            barrier_test = "barrier_test", disable = "disable", free = "free", attend = "attend",
            eureka_begin = "eureka_begin", eureka_raise = "eureka_raise", eureka_test = "eureka_test", eureka_end = "eureka_end"
        }
        Param is "portcullis_param" { name = "name", default_value = "default_value", help = "help", kind = "type" }
        ComponentTable is "portcullis_component_table" {
            size = "size", abi_version = "abi_version", priority = "priority", framework = "framework", name = "name",
            version = "version", params = "params", param_count = "param_count", query = "query", asked_by = "asked_by"
        }
        Why is "portcullis_why" { text = "text" }
    };
    for (name, value) in [
        ("PORTCULLIS_ABI_VERSION", abi::ABI_VERSION as i32),
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
