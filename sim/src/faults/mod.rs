//! Fault campaigns: every kind of fault, at every place, at every moment of the protocol, against the real driver.
//!
//! * [`disturbances`]: what can be wrong with a wire, as decorators of it;
//! * [`catalogue`]: every kind of fault, as changes to a world before its power comes on;
//! * [`moments`]: when it strikes, taken from a run without faults;
//! * [`life`]: what each node does, with the driver's open, self-test, enter, wait and close;
//! * [`judge`]: whether any node left before all had entered;
//! * [`campaign`]: all cases, classified;
//! * [`cures`]: what can be done about the unsafe ones, and what it costs;
//! * [`known`]: the documented list of unsafe outcomes, a data file with a reason for each.
//!
//! "Detected" means that the driver said a sentence, and a case shows it.

pub mod campaign;
pub mod catalogue;
pub mod cures;
pub mod disturbances;
pub mod judge;
pub mod known;
pub mod life;
pub mod moments;

#[cfg(test)]
mod tests;
