//! Estimates the mean time between failures (MTBF) of the synchronisers, from assumed constants of the flip-flops.
//!
//! MTBF = exp(S / tau) / (T0 f r w):
//! S is the settling time of a level, from the first stage to the first use; f is the clock
//! frequency, r the number of transitions of a wire per second, and w the number of wires.
//! No vendor of the boards' devices publishes tau and T0 of their flip-flops, so the table has a range of tau, and T0 is assumed.

/// The constant T0, assumed, in seconds.
/// The MTBF is proportional to 1 / T0, so an error of T0 by a factor of 10 changes an MTBF by the same factor.
pub const T0: f64 = 1e-9;
/// Number of input wires of the largest board.
pub const WIRES: f64 = 60.0;
/// Number of transitions of each wire per second: one barrier per 10 us.
pub const TRANSITIONS: f64 = 1e5;
/// Assumed values of tau, in seconds.
pub const TAUS: [f64; 4] = [50e-12, 100e-12, 200e-12, 500e-12];

/// A clock, and the (assumed) part of its period that is lost to clock-to-output delay, routing and set-up time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocked {
    /// The name of the board or device with this clock.
    pub name: &'static str,
    /// The clock frequency in MHz.
    pub mhz: f64,
    /// The lost part of the period, in seconds.
    pub lost: f64,
}

/// The clocks of two boards and two faster ones of chips.
pub const CLOCKS: [Clocked; 4] = [
    Clocked {
        name: "the boards, 25.175 MHz",
        mhz: 25.175,
        lost: 1.2e-9,
    },
    Clocked {
        name: "iCE40 UP5K, 48 MHz",
        mhz: 48.0,
        lost: 2.3e-9,
    },
    Clocked {
        name: "ECP5, 100 MHz",
        mhz: 100.0,
        lost: 1e-9,
    },
    Clocked {
        name: "Artix-7, 200 MHz",
        mhz: 200.0,
        lost: 0.7e-9,
    },
];

/// Returns the decimal logarithm of the MTBF in seconds.
pub fn log10_seconds(clock: Clocked, stages: u32, tau: f64) -> f64 {
    let hertz = clock.mhz * 1e6;
    let settles = f64::from(stages - 1) * (1.0 / hertz - clock.lost);
    (settles / tau - (T0 * hertz * TRANSITIONS * WIRES).ln()) / std::f64::consts::LN_10
}

/// Returns the MTBF table of README.md, as lines of Markdown.
pub fn table() -> Vec<String> {
    let taus = TAUS.map(|tau| format!(" tau {:.0} ps |", tau * 1e12));
    let mut lines = vec![
        format!("| clock | stages |{}", taus.concat()),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for clock in CLOCKS {
        for stages in [2, 3] {
            let cells = TAUS.map(|tau| format!(" {} |", words(log10_seconds(clock, stages, tau))));
            lines.push(format!("| {} | {stages} |{}", clock.name, cells.concat()));
        }
    }
    lines
}

fn words(log10: f64) -> String {
    let years = log10 - (365.25_f64 * 86400.0).log10();
    match () {
        () if years >= 3.0 => format!("10^{:.0} years", years.floor()),
        () if years >= 0.0 => format!("{:.0} years", 10_f64.powf(years)),
        () if log10 >= 0.0 => format!("{:.0} s", 10_f64.powf(log10)),
        () => "less than a second".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_stage_doubles_the_time_to_settle() {
        for clock in CLOCKS {
            let [two, three] = [2, 3].map(|stages| log10_seconds(clock, stages, 200e-12));
            let one_stage = (1.0 / (clock.mhz * 1e6) - clock.lost) / 200e-12;
            let more = (three - two) * std::f64::consts::LN_10;
            assert!((more - one_stage).abs() < 1e-6, "{clock:?}: {more}");
        }
    }

    #[test]
    fn two_stages_are_refused_where_they_can_fail_within_minutes() {
        let [slow, fast] = [CLOCKS[1], CLOCKS[2]].map(|clock| log10_seconds(clock, 2, 500e-12));
        assert!(slow > 9.0 && fast < 3.0, "{slow} {fast}");
    }

    #[test]
    fn the_document_has_the_computed_table() {
        let document = include_str!("../README.md");
        for line in table() {
            assert!(document.contains(&line), "hdl/README.md lacks: {line}");
        }
    }
}
