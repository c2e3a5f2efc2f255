//! The processor time of a test program, which tells what it costs; its duration also depends on what else the machine runs.

use std::fs;

use rustix::process::Pid;

/// Returns the seconds of processor time of an ended child that was not yet reaped, and of the descendants that it has reaped.
pub fn processor_seconds(child: Pid) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())).ok()?;
    let ticks = ticks(&stat)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Returns the sum of `utime`, `stime`, `cutime` and `cstime`, the fields 14 to 17 of proc(5)'s `stat`.
fn ticks(stat: &str) -> Option<u64> {
    // The name before the parenthesis is a program's, with any characters in it; field 3 follows.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(4);
    times.map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_process_and_of_its_children_are_added() {
        let stat = "4711 (a name) 1) Z 1 2 3 0 -1 4 5 6 7 8 10 200 3000 40000 20 0 1 0 99 0";
        assert_eq!(ticks(stat), Some(43_210));
        assert_eq!(ticks("4711 (cut) Z 1 2 3"), Some(0));
        assert_eq!(ticks(""), None);
    }
}
