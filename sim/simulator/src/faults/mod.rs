//! Fault campaigns: every kind of fault, at every place, at every moment of the protocol, against the real driver.
//!
//! * [`disturbances`]: functions that change the level of a wire;
//! * [`catalogue`]: every kind of fault, as changes to a world before power-on;
//! * [`moments`]: the times at which a fault begins, taken from a run without faults;
//! * [`node_program`]: the program of each node, with the driver's open, self-test, enter, wait and close;
//! * [`judge`]: the check that no node left before all had entered;
//! * [`campaign`]: all cases, classified;
//! * [`cures`]: countermeasures against the unsafe cases, and their cost;
//! * [`known`]: the documented list of unsafe outcomes, a data file with a reason for each.
//!
//! "Detected" means that the driver reported an error; the case contains the driver's message.

pub mod campaign;
pub mod catalogue;
pub mod cures;
pub mod disturbances;
pub mod judge;
pub mod known;
pub mod moments;
pub mod node_program;

#[cfg(test)]
mod tests;
