//! `ucx`, the transport over UCX: InfiniBand, RoCE, and all other networks that UCX supports.
//!
//! `libucp.so.0` is loaded only if the user names `ucx` in the parameter `btl`, or if `/sys/class/infiniband` contains a device with an active port.
//! Messages are sent as UCX's active messages, eagerly so that they keep their order; long ones are delivered in place ([`rendezvous`]). [`super::fabric`] checks the order and contains all other functions.
//! UCX's own environment variables (`UCX_TLS`, `UCX_NET_DEVICES`) have their usual effect; [`LIBRARY`] contains the variables that this transport sets.

mod abi;
mod callbacks;
mod memory;
mod params;
mod rendezvous;
mod sleep;
#[cfg(test)]
mod tests;
mod worker;

use super::fabric::library::{LibraryError, Named};
use super::fabric::open::Fabrics;
use super::fabric::variables::{Temporary, Variables};
use super::fabric::{seen, settings::Settings};
use super::{Component, OpenContext};
use worker::Worker;

static LIBRARY: Named = Named {
    title: "UCX",
    soname: "libucp.so.0",
    package: "libucx0",
    oldest: "1.11",
    variables: &[
        // By default, UCX would replace the program's signal handlers.
        ("UCX_ERROR_SIGNALS", ""),
        // UCX intercepts munmap and other functions for its registration cache, which this transport does not use.
        ("UCX_MEM_EVENTS", "n"),
        ("UCX_WARN_UNUSED_ENV_VARS", "n"),
        // By default, UCX would print to the program's standard output, even errors that this transport reports or handles.
        ("UCX_LOG_LEVEL", "fatal"),
        ("UCX_LOG_FILE", "stderr"),
        // In blocking mode, UCX would block the process until the peer accepts a connection.
        ("UCX_TCP_CONN_NB", "y"),
        // The part of a long message that UCX receives from a socket at once. UCX's default of 64 KiB halves the bandwidth
        // (docs/measured/notes/networks.md).
        ("UCX_TCP_RX_SEG_SIZE", "512k"),
    ],
};

/// Variables for jobs on one node, whose sockets are those of the loopback device.
///
/// With the system's send buffer of up to 4 MiB, the data between the processes do not fit into the caches.
/// Between nodes, a short send buffer would limit the bandwidth, so programs that a rank starts do not inherit the variables.
const ON_ONE_NODE: Variables = &[("UCX_TCP_SNDBUF", "384k")];

static FABRICS: Fabrics<Worker> = Fabrics {
    name: "ucx",
    kind: 1,
    card_key: "btl-ucx",
    exclusivity: 600,
    knobs: &params::KNOBS,
    seen: seen::infiniband,
    devices: "InfiniBand or RoCE device with an active port",
    open,
};

pub(super) const COMPONENT: Component = Component {
    name: "ucx",
    params: params::PARAMS,
    open: |context| FABRICS.transports(context),
    posts: |context| context.needs_network().unwrap_or(true),
};

fn open(context: &OpenContext<'_>, settings: &Settings) -> Result<(Worker, String), LibraryError> {
    let choice = |param| context.params.get(param).unwrap_or_default();
    let choices = [
        (c"TLS", choice(&params::TRANSPORTS)),
        (c"NET_DEVICES", choice(&params::DEVICES)),
    ];
    let in_place_min = context
        .params
        .get(&params::IN_PLACE_MIN)
        .unwrap_or(usize::MAX);
    let variables = match context.is_one_node() {
        true => ON_ONE_NODE,
        false => &[],
    };
    // UCX reads the variables when it creates the worker.
    let _variables = Temporary::set(variables);
    Worker::open(settings, context.size, &choices, in_place_min)
}
