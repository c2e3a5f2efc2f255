//! Tests of `ofi` over libfabric's providers that need no hardware. If libfabric is not installed, they are skipped with a message.
//!
//! The provider `shm` is not tested: if two peers are in one process, it accesses a peer's memory after the peer has closed it.

use super::*;
use crate::btl::suite::{Net, cramped};
use crate::btl::{Btl, ProcId};
use crate::rte::TestModex;
use mpi_base::param::{Params, Source};

/// Opens the transports of a job of `size` processes over a provider. Returns `None` if libfabric or the provider is missing.
fn job(size: u32, provider: &str, pairs: &[(&str, &str)]) -> Option<Vec<Box<dyn Btl + Send>>> {
    let modex = TestModex::default();
    let mut params: Params = cramped(pairs);
    params.set("btl_ofi_provider", provider, Source::CommandLine);
    let mut settings = params::KNOBS.read(&params).expect("they are right");
    // Sets the parameters as for a machine with a fabric device.
    settings.look_at(&["a device".into()]);
    let mut all: Vec<Box<dyn Btl + Send>> = Vec::new();
    for me in 0..size {
        let context = OpenContext {
            me,
            size,
            node: None,
            params: &params,
            modex: Some(modex.of(me)),
        };
        match FABRICS.fabric(&context, &settings, &[]) {
            Ok(fabric) => all.push(Box::new(fabric)),
            Err(why) => {
                eprintln!("skipped: {why}");
                return None;
            }
        }
    }
    Some(all)
}

/// Opens a job in reverse order of ranks, so the higher rank is the sender.
fn net(size: u32, provider: &str, pairs: &[(&str, &str)]) -> Option<Net> {
    Some(Net {
        btls: job(size, provider, pairs)?.into_iter().rev().collect(),
        procs: (0..size).rev().collect::<Vec<ProcId>>(),
        pair: (0, 1),
    })
}

mod over_rxm {
    crate::btl_suite!(|| super::net(3, "tcp;ofi_rxm", &[]));
}

mod over_net {
    crate::btl_suite!(long || super::net(2, "net", &[("btl_ofi_max_send_size", "300k")]));
}
