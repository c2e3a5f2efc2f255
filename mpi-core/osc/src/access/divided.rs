//! Put, get and accumulates on [`Parts`].
//!
//! Each region is reached by the method that an access to this region alone would use.
//! So accumulates of all origins exclude each other, and accesses of one origin stay in order.
#![allow(unsafe_code)]

use crate::Error;
use crate::access::accumulate::Accumulates;
use crate::access::location::Accesses;
use crate::access::parts::{Parts, check_elements};
use crate::datatype::{RecvBuf, SendBuf};
use crate::direct::apply::Combine;
use crate::direct::pieces::Buffers;
use crate::op::Predefined;
use crate::request::Req;
use crate::runs;
use crate::state::target::Target;
use crate::target_args::TargetArgs;

impl Accesses<'_> {
    /// `MPI_Put` to the parts.
    pub(super) fn put_parts(
        self,
        target: &Target,
        parts: &Parts<'_>,
        origin: &SendBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<(), Error> {
        // The origin buffer may overlap the target's memory, which may be this process's.
        let data = origin.to_vec();
        let bytes = data.len() as i64;
        for part in &parts.parts {
            let range = part.up_to(bytes);
            let Some(memory) = &part.memory else {
                let at = (parts.address, range);
                self.win().messages().put(target, at, origin, target_args)?;
                continue;
            };
            let mut rest = &data[range.start as usize..];
            for run in runs::of_range(target_args.datatype, target_args.count, range) {
                let (now, later) = rest.split_at(run.len as usize);
                rest = later;
                // SAFETY: the run belongs to the packed bytes of this part, whose memory holds them.
                let done = unsafe { memory.write(run.offset, now) };
                done.map_err(|why| self.unreachable(target, "write to", bytes, why))?;
            }
        }
        Ok(())
    }

    /// `MPI_Get` from the parts. Returns a request if data have not arrived yet.
    pub(super) fn get_parts(
        self,
        target: &Target,
        parts: &Parts<'_>,
        origin: &mut RecvBuf,
        target_args: &TargetArgs<'_>,
    ) -> Result<Option<Req>, Error> {
        let bytes = target_args.datatype.bytes(target_args.count);
        let mut last = None;
        for part in &parts.parts {
            let range = part.up_to(bytes);
            let Some(memory) = &part.memory else {
                // The target replies in the order of the requests, so the last request suffices.
                self.win().accumulates().give_up(last.take());
                let at = (parts.address, range);
                last = self.win().messages().get(target, at, origin, target_args)?;
                continue;
            };
            let mut data = vec![0; (range.end - range.start) as usize];
            let mut rest = &mut data[..];
            for run in runs::of_range(target_args.datatype, target_args.count, range.clone()) {
                let (now, later) = rest.split_at_mut(run.len as usize);
                rest = later;
                // SAFETY: the run belongs to the packed bytes of this part, whose memory holds them.
                let done = unsafe { memory.read(run.offset, now) };
                done.map_err(|why| self.unreachable(target, "read from", bytes, why))?;
            }
            origin.unpack_at(range.start, &data);
        }
        Ok(last)
    }
}

impl Accumulates<'_> {
    /// Updates the first `bytes` packed bytes of the target's elements, in all parts.
    /// Returns a request if old elements have not arrived yet.
    pub(super) fn update_parts(
        self,
        (target, parts): (&Target, &Parts<'_>),
        combine: &Combine,
        target_args: &TargetArgs<'_>,
        buffers: Buffers<'_>,
        bytes: i64,
    ) -> Result<Option<Req>, Error> {
        check_elements(self.win(), &parts.parts, target.rank, combine.size())?;
        let Buffers { origin, mut result } = buffers;
        let reads_nothing = combine.op() == Predefined::NoOp;
        let input = match reads_nothing {
            true => Vec::new(),
            false => origin.to_vec(),
        };
        let mut last = None;
        for part in &parts.parts {
            let range = part.up_to(bytes);
            let Some(memory) = &part.memory else {
                // The target replies in the order of the requests, so the last request suffices.
                self.give_up(last.take());
                let at = (parts.address, range);
                let result = result.as_deref();
                let messages = self.win().messages();
                last = messages.accumulate(target, at, combine, &input, target_args, result)?;
                continue;
            };
            let given = match reads_nothing {
                true => &[],
                false => &input[range.start as usize..range.end as usize],
            };
            let wanted = result.as_ref().map(|_| (range.end - range.start) as usize);
            let mut old = vec![0; wanted.unwrap_or(0)];
            let runs = runs::of_range(target_args.datatype, target_args.count, range.clone());
            // SAFETY: the runs are the packed bytes of this part, whose memory holds them.
            let done = unsafe {
                let old = wanted.map(|_| &mut old[..]);
                combine.run(memory, runs, given, old)
            };
            done.map_err(|why| {
                self.win()
                    .accesses()
                    .unreachable(target, "update", bytes, why)
            })?;
            if let Some(result) = &mut result {
                result.unpack_at(range.start, &old);
            }
        }
        Ok(last)
    }
}
