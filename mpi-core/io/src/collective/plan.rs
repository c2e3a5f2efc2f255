//! The plan of a collective access: the members exchange facts, and all make the same decisions.
//!
//! Protocol: a member with an empty access or one contiguous run performs it before the exchange.
//! In the exchange, such a member reports success or the class of its error.
//! A member that failed earlier in the call also reports the class of its error.
//! Each other member reports the extent of its access, which it has not performed yet.
//! If no member has an access left, the collective access is complete.
//! Otherwise the remaining accesses are performed, and then all members exchange their results.

use super::node_map::NodeMap;
use crate::Error;
use crate::comm::Comm;
use crate::error::{IoError, class_number};
use crate::hints::{Switch, Tuning};
use crate::view::View;

/// The mean run length in bytes from which individual accesses are as fast as aggregation.
pub(crate) const LONG: i64 = 256 << 10;

/// The mean run length in bytes
/// from which individual reads by members of one node are as fast as aggregated reads.
/// These members share the page cache, so an aggregator would only add a copy.
const LONG_READ: i64 = 4 << 10;

/// The plan of a collective access, which is equal on all members.
pub(crate) struct Plan {
    low: i64,
    high: i64,
    aggregators: u32,
    /// The number of bytes of the file that an aggregator handles in a round.
    part: i64,
}

/// The result of the exchange: how the access continues.
pub(crate) enum Decision {
    /// No member has an access left. For each rank: the class of its error, or 0.
    Over(Vec<u64>),
    /// Each rank that has an access left performs it individually.
    Each,
    Together(Plan),
}

/// The number of words that each rank contributes: state ([`state_of`]), file offsets of the
/// first byte and of the end, bytes, runs, and 1 if its file offsets only increase.
const FACTS: usize = 6;

/// The state of a rank that has an access left.
const TO_DO: u64 = 0;

/// Returns a rank's state: 1 plus its error class (0: success) if its access is done, else [`TO_DO`].
fn state_of(done: Option<&Result<i64, IoError>>) -> u64 {
    done.map_or(TO_DO, |done| 1 + class_number(done))
}

impl Plan {
    /// Exchanges the extent and the state of each member's access; collective.
    /// Returns a plan for the remaining accesses if aggregation is faster or a hint requires it.
    pub fn agree(
        comm: &Comm,
        (wanted, tuning, node_map, writes): (Switch, &Tuning, &NodeMap, bool),
        done: Option<&Result<i64, IoError>>,
        view: &View,
        (from, bytes): (i64, i64),
    ) -> Result<Decision, Error> {
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
        let mut facts = vec![state_of(done)];
        facts.extend(part.map(|fact| fact as u64));
        let all = comm.internal().share_now(&facts)?;
        let states = || all.chunks_exact(FACTS).map(|rank| rank[0]);
        if states().all(|state| state != TO_DO) {
            return Ok(Decision::Over(states().map(|state| state - 1).collect()));
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
        // If the ranks' spans do not overlap, their accesses do not interleave.
        let interleaved = spans > high - low;
        // If less than 1/16 of a file range is accessed, aggregation of the range is slower.
        let dense = bytes >= (high - low) / 16;
        let long = match writes || node_map.spans_nodes() {
            true => LONG,
            false => LONG_READ,
        };
        let pays = busy.len() > 1 && interleaved && dense && bytes / runs.max(1) < long;
        if !forward || busy.is_empty() || !(pays || wanted == Switch::Enable) {
            return Ok(Decision::Each);
        }
        let most = tuning.cb_nodes.clamp(1, node_map.aggregators(comm.size()));
        let part = node_map.part(most, tuning.cb_buffer_size);
        let parts = (high - low + part - 1) / part;
        let aggregators = parts.clamp(1, most.into()) as u32;
        Ok(Decision::Together(Plan {
            low,
            high,
            aggregators,
            part,
        }))
    }

    pub fn aggregators(&self) -> u32 {
        self.aggregators
    }

    /// Returns the number of bytes of the file that an aggregator handles in a round.
    pub fn part_bytes(&self) -> i64 {
        self.part
    }

    /// Returns the end of the file range that the members access, as a file offset.
    pub fn high(&self) -> i64 {
        self.high
    }

    pub fn rounds(&self) -> i64 {
        let window = i64::from(self.aggregators) * self.part;
        (self.high - self.low + window - 1) / window
    }

    /// Returns the file offset of an aggregator's part in a round.
    pub fn part(&self, round: i64, aggregator: i64) -> i64 {
        self.low + (round * i64::from(self.aggregators) + aggregator) * self.part
    }
}
