//! Tests of libfabric over its providers that need no hardware; they are skipped, with a sentence, where libfabric is not installed.
//!
//! The provider `shm` is not among them: it uses the memory of a peer in the same process after that peer has closed it.

use super::*;
use crate::btl::suite::{Net, cramped};
use crate::btl::{Btl, ProcId};
use crate::rte::TestModex;
use mpi_base::param::{Params, Source};

/// Opens the transports of a job of `size` processes over a provider; `None` if libfabric or the provider is missing.
fn job(size: u32, provider: &str, pairs: &[(&str, &str)]) -> Option<Vec<Box<dyn Btl + Send>>> {
    let modex = TestModex::default();
    let mut params: Params = cramped(pairs);
    params.set("btl_ofi_provider", provider, Source::CommandLine);
    let mut settings = params::KNOBS.read(&params).expect("they are right");
    // Pretend that the machine has a fabric device.
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

/// The higher rank sends.
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
