//! Measures the CPU time of a test program, which depends less on the machine's load than the duration does.

use std::fs;

use rustix::process::Pid;

/// Returns the CPU time in seconds of a child process that has exited and is not reaped yet,
/// including the descendants that the child has reaped.
pub fn processor_seconds(child: Pid) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())).ok()?;
    let ticks = ticks(&stat)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Returns the sum of `utime`, `stime`, `cutime` and `cstime`: fields 14 to 17 of `stat` in proc(5).
fn ticks(stat: &str) -> Option<u64> {
    // Field 2 is the program's name in parentheses and may contain any characters; field 3 follows it.
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
