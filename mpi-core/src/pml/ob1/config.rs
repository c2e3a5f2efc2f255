//! The sizes that choose a protocol, as parameters.

use mpi_base::param::{About, Level, Param, ParamError, Params};

static SINGLE_COPY_MIN: Param<usize> = Param::new(
    "pml",
    "ob1",
    "single_copy_min",
    "16k",
    Level::TUNER,
    "Messages of at least this size are read from the sender's memory in one copy where the system allows it",
);

static SINGLE_COPY_MAX: Param<usize> = Param::new(
    "pml",
    "ob1",
    "single_copy_max",
    "2m",
    Level::TUNER,
    "Messages from this size on travel in fragments if every rank has a core, because sender and receiver then copy at the same time",
);

/// Everything `mpi-info` lists for ob1.
pub static PARAMS: &[&About] = &[SINGLE_COPY_MIN.about(), SINGLE_COPY_MAX.about()];

/// Sizes, in bytes, that choose how the data of a rendezvous travel: in one copy from `single_copy_min` up to `single_copy_max`, else in fragments.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub single_copy_min: u64,
    pub single_copy_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            single_copy_min: 0,
            single_copy_max: u64::MAX,
        }
    }
}

impl Config {
    /// What the user set; `roomy` says whether every rank of the node has a core of its own.
    pub fn from_params(params: &Params, roomy: bool) -> Result<Config, ParamError> {
        Ok(Config {
            single_copy_min: params.get(&SINGLE_COPY_MIN)? as u64,
            // Where ranks share cores two copies at the same time are two copies one after the other.
            single_copy_max: match roomy {
                true => params.get(&SINGLE_COPY_MAX)? as u64,
                false => u64::MAX,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_share_a_core_never_copy_twice() {
        let params = Params::default();
        let config = Config::from_params(&params, false).expect("the defaults are well formed");
        assert_eq!(config.single_copy_max, u64::MAX);
        let config = Config::from_params(&params, true).expect("the defaults are well formed");
        assert_eq!(config.single_copy_max, 2 << 20);
    }
}
