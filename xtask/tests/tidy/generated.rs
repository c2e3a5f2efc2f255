//! Tests that generated regions and files equal the present output of `cargo xtask gen`.

use super::{read, root};
use xtask::{c_interface, frames, plugin_tables, regions, registers, testplan};

#[test]
fn the_serial_frames_are_everywhere_as_their_description_says() {
    let format = frames::format().expect("a description");
    for file in frames::FILES {
        let text = read(&root().join(file));
        let fresh = frames::regenerated(&format, file, &text).expect("regions");
        is_current(frames::TABLE, file, &text, &fresh);
    }
}

#[test]
fn the_registers_are_everywhere_as_their_description_says() {
    let map = registers::map().expect("a description");
    for file in registers::FILES {
        let text = read(&root().join(file));
        let fresh = registers::regenerated(&map, file, &text).expect("regions");
        is_current(registers::TABLE, file, &text, &fresh);
    }
    for (file, fresh) in registers::whole_files(&map) {
        let text = read(&root().join(file));
        is_current(registers::TABLE, file, &text, &fresh);
    }
}

#[test]
fn the_register_block_is_joined_with_each_front_as_the_heads_of_both_say() {
    for joined in registers::buses::joined().expect("heads") {
        let text = read(&root().join(&joined.file));
        let fresh = joined.regenerated(&text).expect("a region");
        is_current(&joined.front, &joined.file, &text, &fresh);
    }
}

#[test]
fn the_header_of_libhwbarr_is_that_of_its_functions() {
    let text = read(&root().join(c_interface::HEADER));
    let fresh = c_interface::header().expect("a header");
    is_current(c_interface::SOURCE, c_interface::HEADER, &text, &fresh);
}

#[test]
fn the_tables_of_plugins_in_rust_are_those_of_the_headers() {
    for tables in plugin_tables::ALL {
        let text = read(&root().join(tables.file));
        let fresh = tables.regenerated(tables.file, &text).expect("a header");
        is_current(tables.header, tables.file, &text, &fresh);
    }
}

#[test]
fn the_test_plan_of_the_hardware_has_every_claim_and_every_test() {
    let text = read(&root().join(testplan::FILE));
    let fresh = testplan::regenerated(&text).expect("regions, and files that are there");
    is_current(testplan::TABLE, testplan::FILE, &text, &fresh);
}

fn is_current(table: &str, file: &str, text: &str, fresh: &str) {
    let mark = regions::begin(table);
    assert!(
        text.contains(mark.trim_end_matches(": ")),
        "{file} has no generated text"
    );
    let differs = |(_, (old, new)): &(usize, (&str, &str))| old != new;
    let first = (1..).zip(text.lines().zip(fresh.lines())).find(differs);
    assert!(
        fresh == text,
        "{file} is not what {table} describes, first at {first:?}; `cargo xtask gen` writes it"
    );
}
