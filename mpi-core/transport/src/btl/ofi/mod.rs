//! `ofi`, the transport over libfabric: Slingshot, EFA, Omni-Path, and every other provider with reliable datagrams.
//!
//! `libfabric.so.1` is loaded only if the user names `ofi` in the parameter `btl`, or if `/sys/class` contains a device that the library supports:
//! loading Debian's library takes 200 ms, and listing its providers takes more than 100 ms.
//! Messages are sent between reliable datagram endpoints. All other functions are in [`super::fabric`].
//! libfabric's own environment variables (`FI_PROVIDER` and those of the providers) have their usual effect.

mod abi;
mod endpoint;
mod params;
mod provider;
#[cfg(test)]
mod tests;

use super::fabric::library::{LibraryError, Named};
use super::fabric::open::Fabrics;
use super::fabric::{seen, settings::Settings};
use super::{Component, OpenContext};
use endpoint::Endpoint;

static LIBRARY: Named = Named {
    title: "libfabric",
    soname: "libfabric.so.1",
    package: "libfabric1",
    oldest: "1.9",
    variables: &[
        // Debian's libfabric loads the libraries of Omni-Path and True Scale, which would otherwise replace the program's signal handlers.
        ("HFI_NO_BACKTRACE", "1"),
        ("IPATH_NO_BACKTRACE", "1"),
    ],
};

static FABRICS: Fabrics<Endpoint> = Fabrics {
    name: "ofi",
    kind: 2,
    card_key: "btl-ofi",
    exclusivity: 500,
    knobs: &params::KNOBS,
    seen: seen::of_libfabric,
    devices: "Slingshot, EFA or Omni-Path device",
    open,
};

pub(super) const COMPONENT: Component = Component {
    name: "ofi",
    params: params::PARAMS,
    open: |context| FABRICS.transports(context),
    posts: |context| context.needs_network().unwrap_or(true),
};

fn open(
    context: &OpenContext<'_>,
    settings: &Settings,
) -> Result<(Endpoint, String), LibraryError> {
    let provider = context.params.get(&params::PROVIDER).unwrap_or_default();
    Endpoint::open(settings, context.size, &provider)
}
