//! Tests of buffers in device memory, with a fake CUDA driver whose memory the host cannot access.

#[path = "devices/calls.rs"]
mod calls;

use mpi_api_tables::Function;
use std::path::PathBuf;
use tests::{Job, compile_source, compile_with};

/// Compiles the fake driver, whose memory is mapped with PROT_NONE, so an access by the host kills the process.
fn fake_cuda() -> PathBuf {
    let options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"];
    compile_with("fake_cuda", "libcuda.so.1", &options)
}

fn devices(ranks: u32, when: &str) -> Job {
    Job::of("devices").ranks(ranks).arg(fake_cuda()).arg(when)
}

#[test]
fn every_function_with_buffers_takes_device_memory() {
    let table = mpi_api_tables::functions().expect("the table of functions");
    let all: Vec<&Function> = (table.functions.iter())
        .filter(|f| calls::has_buffers(f))
        .collect();
    assert!(all.len() > 250, "{} functions have buffers", all.len());
    let program = compile_source("device_calls", &calls::program(&all));
    let mpirun = tests::installation().join("bin/mpirun");
    let job = Job::command(&program).under(&mpirun).ranks(3);
    job.arg(fake_cuda()).holds();
}

#[test]
fn device_memory_is_recognised_whenever_the_library_was_loaded() {
    for when in ["early", "late"] {
        devices(3, when).holds();
    }
    // Runs the program without shared memory between the processes, and on a single process.
    devices(2, "early")
        .with(["--mca", "btl", "self,tcp"])
        .holds();
    devices(1, "late").holds();
}

#[test]
fn copies_that_fail_fail_the_call_and_nothing_else() {
    devices(2, "early").env("FAKE_CUDA_FAILS", "1").holds();
    // Forces slower copies: memory that cannot be pinned, and a pitch too large for one 2D copy.
    devices(2, "early").env("FAKE_CUDA", "unpinned").holds();
    devices(2, "early").env("FAKE_CUDA", "pitch").holds();
}

/// If the driver lacks a required function, a message names the function, and the library reports no CUDA support.
#[test]
fn a_library_that_lacks_a_function_is_named_and_not_used() {
    let options = ["-shared", "-fPIC", "-DWITHOUT", "-Wl,-soname,libcuda.so.1"];
    let lacking = compile_with("fake_cuda", "libcuda_lacking.so.1", &options);
    let outcome = Job::of("devices").arg(lacking).arg("early").run();
    let words = "libcuda.so.1 has no function cuCtxPopCurrent_v2";
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("support is 0"),
        "{}",
        outcome.stderr
    );
}

/// With device recognition disabled, the library asks the driver about no address.
/// So it reads the device memory on the host, which kills the program.
#[test]
fn without_accelerators_no_address_is_asked_about() {
    let job = devices(1, "early").with(["--mca", "accelerator", "^cuda,rocm,level_zero"]);
    let outcome = job.run();
    assert!(
        outcome.stderr.contains("support is 0"),
        "{}",
        outcome.stderr
    );
}

/// mpirun requests memory kinds; the job must report those of them that the library supports.
#[test]
fn kinds_of_memory_are_requested_by_mpirun() {
    let outcome = devices(1, "early")
        .with(["--memory-alloc-kinds", "system,cuda:managed,rocm"])
        .arg("kinds")
        .succeeds();
    let line = "kinds of the world: mpi,system,cuda:managed";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
}

fn between_devices(ranks: u32, expected: &str) -> Job {
    Job::of("device_ipc")
        .ranks(ranks)
        .arg(fake_cuda())
        .arg(expected)
}

/// The receiver opens the sender's memory handle once, copies from it,
/// and closes the handle before it opens new memory at the same address.
/// The fake driver ends a process that opens a handle twice, closes it too late
/// or copies from freed memory.
#[test]
fn long_messages_on_a_node_are_copied_between_devices() {
    between_devices(3, "between").holds();
}

/// Tests memory without a handle, a handle that cannot be opened,
/// and a transport that cannot copy between devices.
#[test]
fn where_devices_cannot_copy_pieces_are_copied_while_the_message_is_sent() {
    let job = || between_devices(2, "pieces");
    job().env("FAKE_CUDA", "handles").holds();
    job().env("FAKE_CUDA", "open").holds();
    job().with(["--mca", "btl", "self,tcp"]).holds();
}

/// Sends long messages from rank 0, whose data are on a device or on the host, to the device of rank 1.
/// The drivers of both ranks write their copies to one log, so the program can check their order.
fn in_pieces(data: &str, parameters: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let job = Job::of("device_pieces").ranks(2).arg(fake_cuda());
    let job = match data {
        "host" => job.arg("host"),
        _ => job,
    };
    job.with(parameters)
        .env("FAKE_CUDA", "handles")
        .env("FAKE_CUDA_LOG", folder.path().join("copies"))
        .limit(120)
        .holds();
}

#[test]
fn pieces_are_copied_to_the_device_while_later_ones_arrive() {
    // Short socket buffers: most of a message cannot be sent before its first pieces have been received.
    let tcp = "self,tcp --mca btl_tcp_links 1 --mca btl_tcp_sndbuf 1m --mca btl_tcp_rcvbuf 1m";
    for btl in [tcp, "self,sm"] {
        let parameters: Vec<&str> = ["--mca", "btl"].into_iter().chain(btl.split(' ')).collect();
        in_pieces("device", &parameters);
        in_pieces("host", &parameters);
    }
}

/// The test uses a fake Level Zero loader with two drivers, whose memory the host cannot access either.
#[test]
fn memory_of_level_zero_devices_is_recognised_and_copied() {
    let options = ["-shared", "-fPIC", "-Wl,-soname,libze_loader.so.1"];
    let fake = compile_with("fake_ze", "libze_loader.so.1", &options);
    Job::of("device_ze").ranks(3).arg(&fake).holds();
    let lacking: Vec<&str> = options.into_iter().chain(["-DWITHOUT"]).collect();
    let lacking = compile_with("fake_ze", "libze_lacking.so.1", &lacking);
    let outcome = Job::of("device_ze").arg(lacking).run();
    let words = "libze_loader.so.1 has no function zeCommandListAppendMemoryCopy";
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("support is 0"),
        "{}",
        outcome.stderr
    );
}
