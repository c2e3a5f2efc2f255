//! Tests that the examples of the page docs/soc.md work:
//! the Verilog elaborates, and the C passes barriers on the Verilated block.

mod common;

use common::{cache, or_skip};
use hdl::elaboration::Elaborator;
use hdl::formal::Design;
use hdl::register_claims::BUSES;
use hdl::register_device::Playing;
use hdl::tool::{Tool, ToolError};
use std::process::Command;
use std::time::Duration;

const PAGE: &str = include_str!("../../docs/soc.md");
const HEADER: &str = include_str!("../registers/barrier_regs.h");

/// A C program: four threads act as cores. Each counts its entries, and compares all counts when it leaves.
/// The threads yield between two loads, because the process of the device also needs a processor.
const CORES: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include "barrier.h"
#include "start.h"

enum { CORES = 4, ROUNDS = 100 };
static volatile uint32_t *regs;
static int entered[CORES], early;

static void *core(void *number)
{
    int me = (int)(long)number;
    struct barrier barrier = barrier_of(regs, me);
    for (int round = 1; round <= ROUNDS; round++) {
        __atomic_store_n(&entered[me], round, __ATOMIC_SEQ_CST);
        barrier_wait(&barrier);
        for (int other = 0; other < CORES; other++)
            if (__atomic_load_n(&entered[other], __ATOMIC_SEQ_CST) < round)
                __atomic_fetch_add(&early, 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

int main(int count, char **arguments)
{
    int file = open(arguments[count - 1], O_RDWR);
    regs = mmap(0, 0x1100, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!barrier_set_up(regs, 0xf))
        return 1;
    /* One cycle, because a release during a pulse starts none, and the device releases every five edges. */
    start_set_up(regs, 1);
    pthread_t threads[CORES];
    for (long n = 0; n < CORES; n++)
        pthread_create(&threads[n], 0, core, (void *)n);
    for (int n = 0; n < CORES; n++)
        pthread_join(threads[n], 0);
    /* The device shows its registers one after the other. */
    uint32_t volatile *last = &regs[(BARRIER_GROUP_BASE + BARRIER_GROUP_LAST) / 4];
    for (long polls = 0; polls < 100000 && (*last == 0 || start_time(regs) != *last); polls++)
        sched_yield();
    printf("%d early, %s\n", early, *last != 0 && start_time(regs) == *last ? "started" : "not started");
    return 0;
}
"#;

/// Returns the page's code block whose first line is `head`.
fn fence(head: &str) -> String {
    let (_, rest) = PAGE.split_once(&format!("```{head}\n")).expect("a fence");
    let (text, _) = rest.split_once("```").expect("its end");
    text.to_owned()
}

#[test]
fn its_verilog_elaborates_in_every_tool() {
    let verilog = fence("verilog soc.v");
    let mut design = Design {
        top: "soc",
        ..BUSES[0].design()
    };
    design.verilog.insert(0, ("soc.v", verilog));
    for tool in [Elaborator::Verilator, Elaborator::Icarus, Elaborator::Yosys] {
        let folder = tempfile::tempdir().expect("a folder");
        let outcome = tool
            .prepare(&design, folder.path())
            .and_then(|()| tool.elaborate(&design, &[], folder.path()));
        if let Some(outcome) = or_skip("the page's Verilog", outcome) {
            assert!(outcome.success, "{tool:?}: {}", outcome.log);
        }
    }
}

#[test]
fn its_files_are_those_that_the_bus_needs() {
    for source in BUSES[0].rtl {
        assert!(PAGE.contains(source.file), "{}", source.file);
    }
}

#[test]
fn its_c_passes_barriers_on_the_verilated_block() {
    let device = Playing::start(&[("N", 4)], &cache());
    let Some(device) = or_skip("the page's C", device) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write("barrier.h", &fence("c barrier.h"));
    write("start.h", &fence("c start.h"));
    write("barrier_regs.h", HEADER);
    write("cores.c", CORES);
    let options = "-x c -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -include sched.h -DBARRIER_PAUSE=sched_yield -o cores cores.c";
    let compiled = Tool::CXX.run(
        "the page's C",
        options.split(' '),
        folder.path(),
        Duration::from_secs(300),
    );
    let compiled: Result<String, ToolError> = compiled;
    if or_skip("the page's C", compiled).is_none() {
        return;
    }
    let output = Command::new(folder.path().join("cores"))
        .arg(device.file())
        .output()
        .expect("it starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "0 early, started\n"
    );
    assert_eq!(device.releases(), 100);
}
