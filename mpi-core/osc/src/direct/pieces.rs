//! Accumulates on directly accessible memory, split into pieces.
//! The split avoids a packed copy of all elements of a noncontiguous buffer.
#![allow(unsafe_code)]

use crate::datatype::{RecvBuf, SendBuf};
use crate::direct::apply::{Combine, Memory, Reach};
use crate::op::Predefined;
use crate::runs;
use crate::state::exclusion::{BLOCK, Exclusion};
use crate::target_args::TargetArgs;
use mpi_base::cma::CmaError;

/// The origin's buffers; `result` is the result buffer of a get-accumulate.
pub(crate) struct Buffers<'a> {
    pub origin: &'a SendBuf,
    pub result: Option<&'a mut RecvBuf>,
}

/// Updates the first `bytes` packed bytes of the target's elements.
///
/// # Safety
/// If the memory is mapped in this process, all elements of the target are inside the mapping.
pub(crate) unsafe fn update(
    combine: &Combine,
    memory: &Memory<'_>,
    target: &TargetArgs<'_>,
    buffers: Buffers<'_>,
    bytes: i64,
) -> Result<(), CmaError> {
    let Buffers { origin, mut result } = buffers;
    let size = combine.size() as i64;
    let reads_nothing = combine.op() == Predefined::NoOp;
    let whole_origin = match reads_nothing {
        true => Some(&[][..]),
        false => origin.contiguous(),
    };
    let has_gaps = result.as_ref().is_some_and(|result| {
        let is_whole = result.datatype().contiguous_bytes(result.count()).is_some();
        !is_whole || result.bytes() < bytes
    });
    let mut there = gathering(combine, memory, target);
    // Accesses that need stripe locks are not split:
    // elements in one stripe must be updated as a unit (a structure that is sent as `MPI_BYTE`).
    let splits = combine.is_native() && (whole_origin.is_none() || has_gaps || there.is_some());
    let piece = match splits {
        true => BLOCK as i64 / size * size,
        false => bytes,
    };
    let [mut packed, mut fetched, mut scratch] = [const { Vec::new() }; 3];
    let mut at = 0;
    while at < bytes {
        let range = at..bytes.min(at + piece);
        let len = (range.end - range.start) as usize;
        let input = match whole_origin {
            Some(_) if reads_nothing => &[],
            Some(all) => all.get(at as usize..).unwrap_or(&[]),
            None => {
                packed.resize(len, 0);
                let filled = origin.pack_at(at, &mut packed);
                &packed[..filled]
            }
        };
        let input = &input[..input.len().min(len)];
        let mut old = match &mut result {
            None => None,
            Some(_) if has_gaps => {
                fetched.resize(len, 0);
                Some(&mut fetched[..])
            }
            Some(result) => {
                let all = result.contiguous().unwrap_or(&mut []);
                all.get_mut(range.start as usize..range.end as usize)
            }
        };
        // SAFETY: the elements of the target are inside the memory by this function's contract, and `gathering` has checked their alignment.
        unsafe {
            match &mut there {
                Some(there) => {
                    let old = old.as_deref_mut();
                    combine.gathered(memory, there, range.clone(), input, old, &mut scratch);
                }
                None => {
                    let runs = runs::of_range(target.datatype, target.count, range.clone());
                    combine.run(memory, runs, input, old)?;
                }
            }
        }
        if let Some(result) = &mut result
            && has_gaps
        {
            result.unpack_at(at, &fetched);
        }
        at = range.end;
    }
    Ok(())
}

/// Returns the target's elements as a buffer, if they have gaps and a pass can update them all.
fn gathering(combine: &Combine, memory: &Memory<'_>, target: &TargetArgs<'_>) -> Option<RecvBuf> {
    let Reach::Here(base) = memory.reach else {
        return None;
    };
    let has_gaps = target.datatype.contiguous_bytes(target.count).is_none();
    let passes = !matches!(memory.exclusion, Exclusion::Atomics);
    let fits = has_gaps
        && passes
        && combine.is_native()
        && combine.is_atomic(memory.locked, memory.address)
        && target.datatype.is_in_units_of(combine.size() as i64);
    fits.then(|| {
        // SAFETY: the elements are inside the mapped memory by the contract of `update`, the only caller.
        // The stripe locks exclude other updates.
        unsafe { RecvBuf::new(base, target.count, target.datatype.clone()) }
    })
}
