//! Tests of UCX over its transports that need no hardware; they are skipped, with a sentence, where UCX is not installed.

use super::*;
use crate::btl::suite::{Net, cramped};
use crate::btl::{Btl, ProcId};
use crate::rte::TestModex;
use mpi_base::param::{Params, Source};

/// Opens the transports of a job of `size` processes over UCX's transports `by`; `None` if UCX is not installed.
fn job(size: u32, by: &str, pairs: &[(&str, &str)]) -> Option<Vec<Box<dyn Btl + Send>>> {
    let modex = TestModex::default();
    let mut params: Params = cramped(pairs);
    params.set("btl_ucx_transports", by, Source::CommandLine);
    let settings = params::KNOBS.read(&params).expect("they are right");
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
fn net(size: u32, by: &str, pairs: &[(&str, &str)]) -> Option<Net> {
    Some(Net {
        btls: job(size, by, pairs)?.into_iter().rev().collect(),
        procs: (0..size).rev().collect::<Vec<ProcId>>(),
        pair: (0, 1),
    })
}

mod over_tcp {
    crate::btl_suite!(|| super::net(3, "tcp,self", &[]));
}

mod over_sysv {
    crate::btl_suite!(|| super::net(2, "sysv,self", &[]));
}

mod over_posix {
    crate::btl_suite!(|| super::net(2, "posix,self", &[("btl_ucx_max_send_size", "300k")]));
}
