//! Currents into unpowered parts: when a powered part drives an unpowered one, current flows through its protection diodes.

use std::fmt::Write as _;

use crate::tables::Design;

/// Forward voltage of a protection diode to a supply that is off, in V.
const DIODE: f64 = 0.7;
/// Smallest pull-up resistor of a parallel port's inputs, in ohms, as in a printer port of 1990.
const PULL_UP_OF_A_PORT: f64 = 1000.0;

/// A case in which a powered device drives an unpowered one.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Which devices are powered and which are off.
    pub state: &'static str,
    /// The path of the current, as text.
    pub way: &'static str,
    /// Supply voltage of the powered device, in V.
    pub volts: f64,
    /// Voltage drop at the protection diode of the unpowered device, in V.
    pub diode: f64,
    /// Resistance of the path, in ohms.
    pub ohms: f64,
    /// Maximum permitted current in mA, of the weaker of the two parts.
    pub limit: f64,
    /// The data sheet or rule from which the limit is taken.
    pub of: &'static str,
}

impl Case {
    /// Returns the current into the unpowered device, in mA.
    pub fn milliamperes(&self) -> f64 {
        (self.volts - self.diode) / self.ohms * 1000.0
    }
}

/// Returns the cases of the kit, computed with the values of its resistors.
///
/// # Errors
///
/// The error names the resistor whose value is not a number.
pub fn cases(design: &Design) -> Result<Vec<Case>, String> {
    let [back, fan, pico, pull_up] =
        ["R6", "R10", "R15", "R1"].map(|reference| ohms(design, reference));
    let (back, fan, pico, pull_up) = (back?, fan?, pico?, pull_up?);
    let of_buffer = "an output of a 74HCT244, absolute maximum 35 mA";
    let of_input = "a clamp of a 74HCT244, absolute maximum 20 mA";
    let case = |state, way, volts, diode, ohms, limit, of| Case {
        state,
        way,
        volts,
        diode,
        ohms,
        limit,
        of,
    };
    Ok(vec![
        case(
            "kit on, a PC off",
            "U3 through R6 into the dead port",
            5.0,
            DIODE,
            back,
            35.0,
            of_buffer,
        ),
        case(
            "kit on, the wire to a PC shorted to ground",
            "U3 through R6",
            5.0,
            0.0,
            back,
            35.0,
            of_buffer,
        ),
        case(
            "kit off, a PC on",
            "the port's pull-up through R6 into U3",
            5.0,
            DIODE,
            back + PULL_UP_OF_A_PORT,
            20.0,
            of_input,
        ),
        case(
            "kit off, a PC on, its D0 high",
            "D0 through R1 into the dead 3.3 V",
            5.0,
            0.0,
            pull_up,
            1.0,
            "what a dead board may be fed, here 1 mA for each node",
        ),
        case(
            "FPGA on, the 5 V supply off",
            "the FPGA's pin through R10 into U3",
            3.3,
            DIODE,
            fan,
            8.0,
            "a pin of an iCE40, 8 mA",
        ),
        case(
            "kit on, a Pico off",
            "U2 through R15 into the Pico",
            3.3,
            DIODE,
            pico,
            24.0,
            "an output of a 74LVC14A, 24 mA",
        ),
    ])
}

fn ohms(design: &Design, reference: &str) -> Result<f64, String> {
    let part = design.parts.iter().find(|p| p.reference == reference);
    let value = part.map_or("", |part| part.value.as_str());
    let (digits, factor) = match value.strip_suffix('k') {
        Some(digits) => (digits, 1000.0),
        None => (value, 1.0),
    };
    let number: Result<f64, _> = digits.parse();
    number
        .map(|number| number * factor)
        .map_err(|_| format!("boards/kit/parts.csv: {reference} has the value {value:?}, not ohms"))
}

/// Returns the rows of a Markdown table, one for each case.
pub fn table(cases: &[Case]) -> String {
    let mut text = String::new();
    for case in cases {
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} mA | {} |",
            case.state,
            case.way,
            case.milliamperes(),
            case.of
        );
    }
    text
}
