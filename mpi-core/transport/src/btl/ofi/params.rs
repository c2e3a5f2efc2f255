//! MCA parameters of the transport `ofi`.

use crate::btl::fabric::settings::{Defaults, Knobs};
use mpi_base::param::{About, Level, Param};

pub(super) static KNOBS: Knobs = Knobs::of(
    "ofi",
    &Defaults {
        eager: "32k",
        // Above 128 KiB the provider `ofi_rxm` uses its own rendezvous, so messages are shorter.
        max_send: "64k",
    },
);

pub(super) static PROVIDER: Param<String> = Param::new(
    "btl",
    "ofi",
    "provider",
    "",
    Level::USER,
    "Provider of libfabric, or the first part of its name: verbs, tcp;ofi_rxm; empty: the first that serves between hosts",
);

pub(super) static PARAMS: &[&About] = &[
    PROVIDER.about(),
    KNOBS.about()[0],
    KNOBS.about()[1],
    KNOBS.about()[2],
    KNOBS.about()[3],
    KNOBS.about()[4],
    KNOBS.about()[5],
    KNOBS.about()[6],
];
