//! The parameters of ob1: the message sizes that choose a protocol.

use mpi_base::param::{About, Level, Param, ParamError, Params};
use mpi_base::valgrind;

static SINGLE_COPY_MIN: Param<usize> = Param::new(
    "pml",
    "ob1",
    "single_copy_min",
    "16k",
    Level::TUNER,
    "Minimum size of messages that the receiver reads from the sender's memory in a single copy, if the system allows it",
);

static SINGLE_COPY_MAX: Param<usize> = Param::new(
    "pml",
    "ob1",
    "single_copy_max",
    "1t",
    Level::TUNER,
    "Size from which messages travel in fragments if each rank has a core, because sender and receiver then copy at the same time",
);

static MEASURE: Param<bool> = Param::new(
    "pml",
    "ob1",
    "measure",
    "true",
    Level::TUNER,
    "Measure single copy against fragments for each peer and size, and use the faster one; false goes by the sizes alone",
);

static ASSIST_MIN: Param<usize> = Param::new(
    "pml",
    "ob1",
    "assist_min",
    "64k",
    Level::TUNER,
    "Minimum size of single-copy messages that sender and receiver copy together, if each rank has a core and neither has messages for the other",
);

static UNEXPECTED_MAX: Param<usize> = Param::new(
    "pml",
    "ob1",
    "unexpected_max",
    "64m",
    Level::USER,
    "Maximum memory for messages that arrive before their receives are posted; above it, senders wait for the receive",
);

static COPIED_MAX: Param<usize> = Param::new(
    "pml",
    "ob1",
    "copied_max",
    "256m",
    Level::USER,
    "Maximum memory for copies of short messages whose receiver has too many unexpected ones; above it, a send waits for its receive",
);

/// If true, the type signatures of messages and receives are compared.
/// The engine then sets an observer ([`crate::observer::Observer`]), because only the code paths
/// that notify an observer compare signatures.
pub static CHECK_TYPES: Param<bool> = Param::new(
    "pml",
    "ob1",
    "check_types",
    "false",
    Level::USER,
    "Compare the type signature of each message with that of its receive; a difference is an error of the receive that names both",
);

/// If true, standard sends of the program are synchronous.
/// The engine then sets an observer, because only the code path of sends that notifies an observer
/// tests this parameter.
pub static CHECK_BUFFERING: Param<bool> = Param::new(
    "pml",
    "ob1",
    "check_buffering",
    "false",
    Level::USER,
    "Complete each standard send only after its receive has started, as the standard allows: a program that relies on buffering hangs, and mpirun reports it",
);

/// The parameters that `mpi-info` lists for ob1.
pub static PARAMS: &[&About] = &[
    SINGLE_COPY_MIN.about(),
    SINGLE_COPY_MAX.about(),
    MEASURE.about(),
    ASSIST_MIN.about(),
    UNEXPECTED_MAX.about(),
    COPIED_MAX.about(),
    CHECK_TYPES.about(),
    CHECK_BUFFERING.about(),
];

/// The message sizes, in bytes, that choose how the data of a rendezvous are transferred:
/// by single copy from `single_copy_min` up to `single_copy_max`, otherwise in fragments.
///
/// Medians of single copies between two ranks on two cores.
/// Either the receiver copies alone, or both sides copy a part:
///
/// | bytes | latency, us: alone | both | stream, MB/s: alone | both | bidirectional, MB/s: alone | both |
/// |---|---|---|---|---|---|---|
/// | 64 Ki | 4.9 | 4.2 | 15,600 | 19,000 | 28,100 | 22,500 |
/// | 128 Ki | 8.1 | 5.7 | 18,000 | 24,700 | 32,200 | 27,100 |
/// | 256 Ki | 14.3 | 10.5 | 19,900 | 28,300 | 37,000 | 30,700 |
/// | 512 Ki | 26.7 | 17.1 | 18,900 | 33,800 | - | - |
/// | 1 Mi | 86 | 41 | 15,000 | 38,400 | 28,100 | 27,300 |
/// | 4 Mi | 436 | 235 | 9,650 | 20,800 | 18,400 | 17,900 |
///
/// With copies in fragments, a stream of 4 MiB messages reached 9,000 MB/s.
/// In bidirectional transfers, each receiver copies alone.
/// If the two cores share a cache, this stream of 4 MiB messages reached 27,000 MB/s by single copies
/// of both sides and 46,000 MB/s in fragments.
/// So the protocol is chosen by measurements at run time (`super::protocol_choice`).
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub single_copy_min: u64,
    pub single_copy_max: u64,
    /// If true, messages in the range of the single copy are sent in fragments if this is measured to
    /// be faster (`super::protocol_choice`).
    pub measure: bool,
    /// Number of ranks per core of the node, rounded up; ranks on one core do not run in parallel.
    pub sharing: u32,
    /// The message size in bytes from which sender and receiver each copy a part of the message,
    /// unless both processes have messages for each other.
    pub assist_min: u64,
    /// The limit in bytes for buffered unexpected messages of other processes.
    /// Beyond the limit, the senders must use rendezvous.
    pub unexpected_max: u64,
    /// The limit in bytes for copies of short messages at a sender
    /// whose receiver holds too many unexpected messages.
    pub copied_max: u64,
    /// If true, type signatures are compared (`super::types`).
    pub check_types: bool,
    /// If true, standard sends of the program are synchronous.
    pub check_buffering: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            single_copy_min: 0,
            single_copy_max: u64::MAX,
            measure: false,
            sharing: 1,
            assist_min: u64::MAX,
            unexpected_max: 64 << 20,
            copied_max: 256 << 20,
            check_types: false,
            check_buffering: false,
        }
    }
}

impl Config {
    /// Reads the user's parameters; the node has `sharing` ranks per core.
    pub fn from_params(params: &Params, sharing: u32) -> Result<Config, ParamError> {
        let roomy = sharing <= 1;
        Ok(Config {
            single_copy_min: params.get(&SINGLE_COPY_MIN)? as u64,
            // On an oversubscribed node, single copies have no upper limit: the sender's copy and the receiver's copy of a fragment
            // would run one after the other on one core.
            single_copy_max: match roomy {
                true => params.get(&SINGLE_COPY_MAX)? as u64,
                false => u64::MAX,
            },
            measure: params.get(&MEASURE)?,
            sharing,
            // On an oversubscribed node, the help of a sleeping sender does not justify waking it.
            // Valgrind does not see the sender's writes and would report the memory as uninitialised.
            assist_min: match roomy && !valgrind::is_running() {
                true => params.get(&ASSIST_MIN)? as u64,
                false => u64::MAX,
            },
            unexpected_max: params.get(&UNEXPECTED_MAX)? as u64,
            copied_max: params.get(&COPIED_MAX)? as u64,
            check_types: params.get(&CHECK_TYPES)?,
            check_buffering: params.get(&CHECK_BUFFERING)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_share_a_core_never_copy_together() {
        let params = Params::default();
        let config = Config::from_params(&params, 2).expect("the defaults are well formed");
        assert_eq!(config.single_copy_max, u64::MAX);
        assert!(config.measure);
        assert_eq!(config.assist_min, u64::MAX);
        let config = Config::from_params(&params, 1).expect("the defaults are well formed");
        assert!(config.measure);
        assert_eq!(config.assist_min, 64 << 10);
    }
}
