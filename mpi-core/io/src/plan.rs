//! What the members of a collective access decide together, from facts that all share.

use super::error::{IoError, class_number};
use super::hints::{Switch, Tuning};
use super::seating::Seating;
use super::view::View;
use crate::Error;
use crate::comm::Comm;

/// Where the mean piece is longer, each rank may as well go by itself.
pub(super) const LONG: i64 = 256 << 10;

/// The same of reads by members of one node, whose system keeps the file in memory for all of them:
/// an aggregator would copy once more what each can have straight from there.
const LONG_READ: i64 = 4 << 10;

/// What every member knows of a collective access.
pub(super) struct Plan {
    low: i64,
    high: i64,
    aggregators: u32,
    /// The bytes of the file that an aggregator handles in a round.
    part: i64,
}

/// What the members are to do after they have told each other what each has.
pub(super) enum Course {
    /// All parts are done; how each rank's ended, as the class of its error or 0.
    Over(Vec<u64>),
    /// Each rank whose part is still to do goes by itself.
    Each,
    Together(Plan),
}

/// What a rank says of its part: how far it is ([`said`]), first byte in the file, the one behind the last, bytes, runs,
/// and whether its runs go forward only.
const FACTS: usize = 6;

/// A part that is still to do.
const TO_DO: u64 = 0;

/// A part that is done says 1 more than the class of its error.
fn said(done: Option<&Result<i64, IoError>>) -> u64 {
    done.map_or(TO_DO, |done| 1 + class_number(done))
}

impl Plan {
    /// Shares what each member has, and whether its part is done already; a plan for what is left if aggregating pays.
    /// Every member calls.
    pub fn agree(
        comm: &Comm,
        (wanted, tuning, seating, writes): (Switch, &Tuning, &Seating, bool),
        done: Option<&Result<i64, IoError>>,
        view: &View,
        (from, bytes): (i64, i64),
    ) -> Result<Course, Error> {
        let part = match bytes {
            1.. if done.is_none() => [
                view.byte_offset(from),
                view.byte_offset(from + bytes - 1) + 1,
                bytes,
                view.run_estimate(bytes),
                i64::from(view.goes_forward()),
            ],
            _ => [0, 0, 0, 0, 1],
        };
        let mut facts = vec![said(done)];
        facts.extend(part.map(|fact| fact as u64));
        let all = comm.engine().block_on(comm.share(&facts))?;
        let states = || all.chunks_exact(FACTS).map(|rank| rank[0]);
        if states().all(|state| state != TO_DO) {
            return Ok(Course::Over(states().map(|state| state - 1).collect()));
        }
        let all = all.chunks_exact(FACTS);
        let all = all.map(|rank| -> [i64; FACTS - 1] {
            std::array::from_fn(|which| rank[1 + which] as i64)
        });
        let busy: Vec<_> = all.filter(|rank| rank[2] > 0).collect();
        let forward = busy.iter().all(|rank| rank[4] == 1);
        let low = busy.iter().map(|rank| rank[0]).min().unwrap_or(0);
        let high = busy.iter().map(|rank| rank[1]).max().unwrap_or(0);
        let spans: i64 = busy.iter().map(|rank| rank[1] - rank[0]).sum();
        let [bytes, runs] = [2, 3].map(|which| busy.iter().map(|rank| rank[which]).sum::<i64>());
        // Ranks whose spans do not overlap do not interleave.
        let interleaved = spans > high - low;
        // A stretch that is nearly empty is not worth reading or assembling.
        let dense = bytes >= (high - low) / 16;
        let long = match writes || seating.spans_nodes() {
            true => LONG,
            false => LONG_READ,
        };
        let pays = busy.len() > 1 && interleaved && dense && bytes / runs.max(1) < long;
        if !forward || busy.is_empty() || !(pays || wanted == Switch::Enable) {
            return Ok(Course::Each);
        }
        let most = tuning.cb_nodes.clamp(1, seating.aggregators(comm.size()));
        let part = seating.part(most, tuning.cb_buffer_size);
        let parts = (high - low + part - 1) / part;
        let aggregators = parts.clamp(1, most.into()) as u32;
        Ok(Course::Together(Plan {
            low,
            high,
            aggregators,
            part,
        }))
    }

    pub fn aggregators(&self) -> u32 {
        self.aggregators
    }

    /// The bytes of the file that an aggregator handles in a round.
    pub fn part_bytes(&self) -> i64 {
        self.part
    }

    /// The first byte of the file behind what all members touch.
    pub fn high(&self) -> i64 {
        self.high
    }

    pub fn rounds(&self) -> i64 {
        let window = i64::from(self.aggregators) * self.part;
        (self.high - self.low + window - 1) / window
    }

    /// Where the part of an aggregator begins in a round.
    pub fn part(&self, round: i64, aggregator: i64) -> i64 {
        self.low + (round * i64::from(self.aggregators) + aggregator) * self.part
    }
}
