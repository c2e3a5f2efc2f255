//! Test of the numbers of cells of the toggle barrier: for each filter length they agree with `toggle/filter-cells.txt`.

mod common;

use common::or_skip;
use hdl::RTL;
use hdl::fpga;

#[test]
fn yosys_counts_the_cells_of_the_first_two_lines() {
    compare(2);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn yosys_counts_the_cells_of_the_table() {
    compare(usize::MAX);
}

/// Compares the first lines of the table.
fn compare(first: usize) {
    let table = include_str!("../toggle/filter-cells.txt");
    let lines: Vec<Vec<u32>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let words = line.split_whitespace().map(str::parse);
            words.collect::<Result<_, _>>().expect("numbers")
        })
        .collect();
    assert!(lines.len() > 2, "{table}");
    common::each(&lines[..first.min(lines.len())], |line| {
        let &[samples, luts, flip_flops] = line.as_slice() else {
            panic!("three numbers: {line:?}");
        };
        let folder = tempfile::tempdir().expect("a folder");
        let parameters = [("N", 60), ("FILTER", samples as usize)];
        let cells = fpga::cells(hdl::TOP, &RTL, &parameters, folder.path());
        let Some(cells) = or_skip("cells", cells) else {
            return;
        };
        println!("{samples} samples: {cells:?}");
        // Versions of yosys differ by a few look-up tables,
        // so the number in the file may differ by 5 %.
        let near = |told: u32, now: u32| told.abs_diff(now) * 20 <= told;
        assert!(near(luts, cells.luts), "{line:?}: {cells:?}");
        assert_eq!(flip_flops, cells.flip_flops, "{line:?}");
    });
}
