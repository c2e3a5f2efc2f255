//! MCA parameters of the transport `ucx`.

use crate::btl::fabric::settings::{Defaults, Knobs};
use mpi_base::param::{About, Level, Param};

pub(super) static KNOBS: Knobs = Knobs::of(
    "ucx",
    &Defaults {
        eager: "32k",
        // UCX assembles longer messages in memory that it maps and unmaps for each message, so messages are shorter.
        max_send: "64k",
    },
);

pub(super) static TRANSPORTS: Param<String> = Param::new(
    "btl",
    "ucx",
    "transports",
    "",
    Level::USER,
    "Transports that UCX may use, as in UCX_TLS: tcp,self; empty: UCX_TLS or all",
);

pub(super) static DEVICES: Param<String> = Param::new(
    "btl",
    "ucx",
    "devices",
    "",
    Level::USER,
    "Network devices that UCX may use, as in UCX_NET_DEVICES: mlx5_0:1; empty: UCX_NET_DEVICES or all",
);

pub(super) static IN_PLACE_MIN: Param<usize> = Param::new(
    "btl",
    "ucx",
    "in_place_min",
    "256k",
    Level::TUNER,
    "Minimum size of a contiguous message that UCX moves from the sender's memory to the receive buffer (its rendezvous), if no device reads it; shorter ones are sent in fragments",
);

pub(super) static PARAMS: &[&About] = &[
    TRANSPORTS.about(),
    DEVICES.about(),
    IN_PLACE_MIN.about(),
    KNOBS.about()[0],
    KNOBS.about()[1],
    KNOBS.about()[2],
    KNOBS.about()[3],
    KNOBS.about()[4],
    KNOBS.about()[5],
    KNOBS.about()[6],
];
