//! Tests that a fast call of each collective has the result of the same general call.

use crate::comm::Comm;
use crate::datatype::{Named, RecvBuf, RecvBytes, Scratch, SendBuf};
use crate::op::{DenseOp, Op, Predefined};
use crate::testing::Job;
use crate::{Call, CallId, FastCall};
use std::rc::Rc;

struct Both<'a> {
    fast: FastCall<'a>,
    call: Call,
}

const BLOCK: i64 = 3;

/// Returns, for each collective, a fast call and the same general call, with blocks of three words:
/// from `sent` (a block per rank) to `target` and `recv` (the same memory).
fn both_forms<'a>(
    world: &Comm,
    sent: &'a [u8],
    send: &SendBuf,
    target: RecvBytes,
    recv: &RecvBuf,
    root: u32,
) -> Vec<Both<'a>> {
    let (op, here) = (Op::from(Predefined::Sum), world.rank() == root);
    let dense = DenseOp::new(&op, &Named::UINT64.into()).expect("a loop");
    let len = BLOCK as usize * 8;
    let (one, all) = (&sent[..len], sent);
    let (one_target, all_target) = (target.part(0, len), target);
    let (send_one, recv_one) = (Some(send.slice(0..BLOCK)), recv.slice(0..BLOCK));
    let blocks =
        (0..i64::from(world.size())).map(|rank| recv.slice(rank * BLOCK..(rank + 1) * BLOCK));
    let blocks: Rc<[RecvBuf]> = blocks.collect();
    let both = |fast, call| Both { fast, call };
    let reduction = |of: fn(&'a [u8], RecvBytes, DenseOp) -> FastCall<'a>,
                     as_call: fn(Option<SendBuf>, RecvBuf, Op) -> Call| {
        let call = as_call(send_one.clone(), recv_one.clone(), op.clone());
        both(of(one, one_target, dense), call)
    };
    vec![
        both(
            FastCall::Bcast {
                data: one_target,
                root,
            },
            Call::Bcast {
                buf: recv_one.clone(),
                root,
            },
        ),
        both(
            FastCall::Gather {
                send: one,
                recv: here.then_some(all_target),
                root,
            },
            Call::Gather {
                send: send_one.clone(),
                recv: here.then(|| recv_one.clone()),
                root,
            },
        ),
        both(
            FastCall::Scatter {
                send: here.then_some(all),
                recv: one_target,
                root,
            },
            Call::Scatter {
                send: send_one.clone().filter(|_| here),
                recv: Some(recv_one.clone()),
                root,
            },
        ),
        both(
            FastCall::Allgather {
                send: one,
                recv: all_target,
            },
            Call::Allgather {
                send: send_one.clone(),
                recv: recv_one.clone(),
            },
        ),
        both(
            FastCall::Allgatherv {
                send: one,
                recv: all_target,
            },
            Call::Allgatherv {
                send: send_one.clone(),
                recv: blocks.clone(),
            },
        ),
        both(
            FastCall::Alltoall {
                send: all,
                recv: all_target,
                block: len,
            },
            Call::Alltoall {
                send: send_one.clone(),
                recv: recv_one.clone(),
            },
        ),
        both(
            FastCall::Reduce {
                send: one,
                recv: here.then_some(one_target),
                op: dense,
                root,
            },
            Call::Reduce {
                send: send_one.clone(),
                recv: here.then(|| recv_one.clone()),
                op: op.clone(),
                root,
            },
        ),
        both(
            FastCall::ReduceScatterBlock {
                send: all,
                recv: one_target,
                op: dense,
            },
            Call::ReduceScatterBlock {
                send: Some(send.clone()),
                recv: recv_one.clone(),
                op: op.clone(),
            },
        ),
        reduction(
            |send, recv, op| FastCall::Allreduce { send, recv, op },
            |send, recv, op| Call::Allreduce { send, recv, op },
        ),
        reduction(
            |send, recv, op| FastCall::Scan { send, recv, op },
            |send, recv, op| Call::Scan { send, recv, op },
        ),
        reduction(
            |send, recv, op| FastCall::Exscan { send, recv, op },
            |send, recv, op| Call::Exscan { send, recv, op },
        ),
    ]
}

/// The function by which a rank makes a call.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Fast,
    General,
    /// As a request, by a fast call
    FastRequest,
    /// As a request, by the general call
    GeneralRequest,
}

/// Checks fast calls with each root; `form` returns the form of a rank's call in a round. All members make a request, or none.
#[allow(unsafe_code)]
pub(crate) fn have_the_results_of_the_general_form(
    job: &Job,
    ranks: u32,
    form: impl Fn(u32, u32, CallId) -> Form + Sync,
) {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let (me, count) = (u64::from(world.rank()), i64::from(ranks) * BLOCK);
        let scratch = || Scratch::new(count, &Named::UINT64.into()).expect("room");
        let (from, to) = (scratch(), scratch());
        let words = |word: &dyn Fn(u64) -> u64| -> Vec<u8> {
            (0..count as u64)
                .flat_map(|i| word(i).to_ne_bytes())
                .collect()
        };
        let sent = words(&|i| 100 * me + i);
        from.all().unpack_at(0, &sent);
        // SAFETY: `to` has `count * 8` bytes and outlives the calls, and the fast and the general call do not write to it at the same time.
        let target = unsafe { RecvBytes::new(to.all().ptr(), count as usize * 8) };
        let send = from.all().as_send();
        for round in 0..12 {
            let root = round % ranks;
            let forms = || both_forms(&world, &sent, &send, target, &to.all(), root);
            for (i, asked) in forms().into_iter().enumerate() {
                let call = asked.call.id();
                let fresh = words(&|i| 7000 + 100 * me + i);
                to.all().unpack_at(0, &fresh);
                world
                    .collectives()
                    .carry_out(asked.call)
                    .expect("a collective");
                let expected = to.all().as_send().to_vec();
                to.all().unpack_at(0, &fresh);
                let collectives = world.collectives();
                let again = || forms().swap_remove(i).call;
                let request = match form(world.rank(), round, call) {
                    Form::Fast => {
                        let taken = collectives.try_fast_call(&asked.fast);
                        taken.expect("a fast call").expect("a collective");
                        None
                    }
                    Form::General => {
                        collectives.carry_out(again()).expect("a collective");
                        None
                    }
                    Form::FastRequest => {
                        // SAFETY: the rank waits for the request below, while the buffers live.
                        let fast = unsafe {
                            std::mem::transmute::<FastCall<'_>, FastCall<'static>>(asked.fast)
                        };
                        let taken = collectives.try_fast_request(fast);
                        taken.expect("a fast call").expect("a request")
                    }
                    Form::GeneralRequest => Some(collectives.begin(again()).expect("a request")),
                };
                if let Some(request) = request {
                    engine.wait(&request).expect("a collective");
                }
                assert!(to.all().as_send().to_vec() == expected, "{call}");
            }
        }
    });
}
