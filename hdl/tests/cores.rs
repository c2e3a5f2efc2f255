//! Tests with several RISC-V cores of one chip that run a C program with barriers over the register block.

mod common;

use common::{each, or_skip};
use hdl::cores::{self, Seen};
use hdl::formal::{Design, Mutant};
use hdl::register_claims::BUSES;
use std::path::{Path, PathBuf};

/// Returns the path of the core's source in the testbenches' Python environment; `None` if missing.
fn core() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../venvs/cocotb");
    or_skip("cores on one chip", cores::core_in(&environment))
}

fn play(core: &Path, design: &Design, number: usize, sleeps: bool) -> Option<Seen> {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = cores::play(core, design, number, sleeps, folder.path());
    let seen = or_skip("cores on one chip", seen)?;
    println!("{number} cores, sleep: {sleeps}: {seen:?}");
    Some(seen)
}

fn pass_barriers(cases: &[(usize, bool)]) {
    let Some(core) = core() else {
        return;
    };
    let wishbone = BUSES[1].design();
    each(cases, |&(number, sleeps)| {
        let Some(seen) = play(&core, &wishbone, number, sleeps) else {
            return;
        };
        assert_eq!((seen.barriers, seen.early, seen.errors), (10, 0, 0));
        if sleeps {
            assert_eq!(seen.to_wake, (2, 2), "{seen:?}");
            // Two cycles after the wake line:
            // waitirq samples the interrupt, then the core fetches the next instruction.
            assert_eq!(seen.to_run.0, 4, "{seen:?}");
        }
        // A core executes at least a load of LEVEL, a branch, and the store.
        assert!(seen.to_leave.0 >= 10, "{seen:?}");
    });
}

#[test]
fn four_cores_pass_barriers_and_a_sleeper_fetches_four_cycles_after_the_last_arrival() {
    pass_barriers(&[(4, true), (4, false)]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn eight_cores_pass_barriers_too() {
    pass_barriers(&[(8, true), (8, false), (2, true)]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_cores_notice_a_barrier_that_releases_them_early() {
    let any_arrival = Mutant {
        fault: "one member's arrival is enough",
        file: "channel_machine.v",
        from: "arrived == mask_q",
        to: "(|arrived)",
    };
    let broken = BUSES[1].design().mutated(any_arrival).expect("one place");
    let Some(core) = core() else {
        return;
    };
    if let Some(seen) = play(&core, &broken, 4, false) {
        assert!(seen.early > 0, "{seen:?}");
    }
}

/// With `CORES_UPDATE=1` the test rewrites the checked-in machine words of the program
/// instead of comparing them.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_words_of_the_cores_program_are_those_of_its_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(words) = or_skip("the cores' program", cores::compiled(folder.path())) else {
        return;
    };
    if std::env::var_os("CORES_UPDATE").is_some() {
        std::fs::write(cores::WORDS.path(), words).expect("written");
        return;
    }
    assert_eq!(cores::WORDS.text, words, "CORES_UPDATE=1 writes them");
}
