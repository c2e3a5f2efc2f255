//! Tests of `libhwbarr` from C and from Python, on an emulated register block.
#![cfg(target_os = "linux")]

use barrier_driver::registers::{RegisterBlock, StartPulse};
use barrier_emulation::registers::RegisterDevice;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xtask::package::{Compression, hwbarr_wheel};
use xtask::venv;

/// C program in which two processes pass barriers; the second process is a child of the first.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hwbarr.h"

static int pass(const char *file, int node)
{
    char port[4096];
    hwbarr *barrier;
    snprintf(port, sizeof port, "mem:%s,node=%d,members=0-1", file, node);
    if (hwbarr_open(port, &barrier) != 0) {
        fprintf(stderr, "%s\n", hwbarr_error());
        return 1;
    }
    uint32_t cycle = 1, hertz = 0;
    if (node == 0 && (hwbarr_start_time(barrier, &cycle, &hertz) != 0 || cycle != 0))
        return 6;
    if (node == 0 && (hwbarr_set_start_pulse(barrier, 65536, 0) != -1 || !strstr(hwbarr_error(), "at most 65535 cycles")))
        return 7;
    if (node == 0 && hwbarr_set_start_pulse(barrier, 25, 1) != 0)
        return 8;
    for (int round = 0; round < 50; round++)
        if (hwbarr_barrier(barrier, 30000000000u) != 0)
            return 2;
    if (hwbarr_start_time(barrier, &cycle, &hertz) != 0 || cycle == 0 || hertz != 1000000)
        return 9;
    return hwbarr_close(barrier) == 0 ? 0 : 3;
}

int main(int count, char **arguments)
{
    const char *file = arguments[count - 1];
    hwbarr *none;
    if (hwbarr_open("nothing:", &none) != -1 || none || !strstr(hwbarr_error(), "there is no port \"nothing\""))
        return 4;
    if (hwbarr_enter(0) != -1 || hwbarr_close(0) != -1 || hwbarr_set_start_pulse(0, 1, 0) != -1 || hwbarr_start_time(0, 0, 0) != -1)
        return 5;
    pid_t child = fork();
    if (child == 0)
        _exit(pass(file, 1));
    int mine = pass(file, 0), status = 0;
    waitpid(child, &status, 0);
    return mine ? mine : WEXITSTATUS(status);
}
"#;

const SCRIPT: &str = r#"
import _thread, os, signal, sys, threading
import hwbarr

# A shell ignores SIGINT in what it starts in the background, and Python then raises nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

def port(node):
    return f"mem:{sys.argv[1]},node={node},members=0-1"

def alone():
    with hwbarr.Node(port(0)) as node:
        node.enter()
        assert not node.poll()
        try:
            node.wait(0.01)
        except hwbarr.TimedOut:
            return
        raise AssertionError("released alone")

def interrupted():
    with hwbarr.Node(port(0)) as node:
        threading.Timer(0.2, _thread.interrupt_main).start()
        try:
            node.barrier(60)
        except KeyboardInterrupt:
            return
    raise AssertionError("released alone")

def refuses(kind, sentence, act):
    try:
        act()
    except kind as error:
        assert sentence in str(error), error
        return
    raise AssertionError(sentence)

alone()
interrupted()
node = hwbarr.Node(port(0))
node.close()
refuses(hwbarr.Error, "the node is closed", node.enter)
refuses(TypeError, "a port is a str", lambda: hwbarr.Node(3))
refuses(hwbarr.Error, "the node is closed", lambda: node.set_start_pulse(1))
with hwbarr.Node(port(0)) as node:
    refuses(ValueError, "0 to 65535 cycles, not 65536", lambda: node.set_start_pulse(65536))
    assert node.start_time() == (0, 1000000), node.start_time()
    node.set_start_pulse(25, low=True)
forgotten = hwbarr.Node(port(0))
del forgotten
kept = os.environ.get("HWBARR_LIBRARY")
os.environ["HWBARR_LIBRARY"] = "/nowhere/libhwbarr.so"
refuses(hwbarr.Error, "HWBARR_LIBRARY names another", lambda: hwbarr.Node(port(0)))
os.environ["HWBARR_LIBRARY"] = "libc.so.6"
refuses(hwbarr.Error, "is of another version than this module", lambda: hwbarr.Node(port(0)))
del os.environ["HWBARR_LIBRARY"]
if kept:
    os.environ["HWBARR_LIBRARY"] = kept
both = threading.Barrier(2)
def passes(number):
    with hwbarr.Node(port(number)) as node:
        both.wait()
        for _ in range(50):
            node.barrier(30)
        assert node.start_time()[0] > 0
threads = [threading.Thread(target=passes, args=(n,)) for n in (0, 1)]
for thread in threads: thread.start()
for thread in threads: thread.join()
try:
    hwbarr.Node(port(7))
except hwbarr.Error as error:
    print(error)
"#;

/// The shared library's path: cargo builds it beside the tests.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the test's path");
    let beside = program.with_file_name("libhwbarr.so");
    assert!(beside.is_file(), "{} is missing", beside.display());
    beside
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn device() -> (tempfile::TempDir, RegisterDevice, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("registers");
    let device = RegisterDevice::create(&file, 2, 1).expect("a device");
    (folder, device, file)
}

fn succeeds(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
}

#[test]
fn a_c_program_passes_barriers_and_learns_why_a_port_fails() {
    let (folder, device, file) = device();
    let (source, program) = (folder.path().join("pass.c"), folder.path().join("pass"));
    std::fs::write(&source, PROGRAM).expect("a file");
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here("include"))
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .arg(library())
        .output()
        .expect("a C compiler");
    succeeds(&compiled);
    let folder = library().parent().expect("a folder").to_owned();
    let output = Command::new(&program)
        .arg(&file)
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .expect("it starts");
    succeeds(&output);
    assert_eq!(device.releases(), 50);
    assert_eq!(start_pulse_of(&file), Some(SET));
}

/// Returns the settings of the start pulse in the register block after a program has ended.
fn start_pulse_of(file: &Path) -> Option<StartPulse> {
    let opened = std::fs::File::options().read(true).write(true).open(file);
    let block = RegisterBlock::map(&opened.expect("the device's file"), 0, "the block");
    block.expect("a block").start_pulse()
}

/// The start pulse that the C program and the Python program set.
const SET: StartPulse = StartPulse {
    groups: 1,
    cycles: 25,
    is_inverted: true,
};

#[test]
fn python_passes_barriers_and_learns_why_a_port_fails() {
    let (_folder, device, file) = device();
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .arg(&file)
        .env("HWBARR_LIBRARY", library())
        .env("PYTHONPATH", here("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3");
    succeeds(&output);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("has 2 nodes and 1 groups, counted from 0"),
        "{said}"
    );
    assert_eq!(device.releases(), 50);
    assert_eq!(start_pulse_of(&file), Some(SET));
}

/// The wheel contains the shared library, so the test sets no environment variable with a path to it.
#[test]
fn the_wheel_installs_into_a_new_environment_and_passes_barriers() {
    let (folder, device, file) = device();
    let wheel = hwbarr_wheel::pack(&library(), folder.path(), Compression::Quick);
    let wheel = wheel.unwrap_or_else(|reason| panic!("{reason}"));
    let place = folder.path().join("venv");
    let made = Command::new("python3")
        .args(["-m", "venv"])
        .arg(&place)
        .output();
    succeeds(&made.expect("python3"));
    let python = place.join("bin/python");
    let mut pip = venv::pip(&python, "install");
    succeeds(
        &pip.args(["--no-index", "--no-deps"])
            .arg(&wheel)
            .output()
            .expect("pip"),
    );
    let output = Command::new(&python)
        .args(["-c", SCRIPT])
        .arg(&file)
        .env_remove("HWBARR_LIBRARY")
        .env_remove("PYTHONPATH")
        .current_dir(folder.path())
        .output()
        .expect("the environment's Python");
    succeeds(&output);
    assert_eq!(device.releases(), 50);
    assert_eq!(start_pulse_of(&file), Some(SET));
}
