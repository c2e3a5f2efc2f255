//! Vote round: every member votes on each offer, and all members get the same verdict on each.

use crate::Error;
use crate::Refusal;
use crate::comm::{Comm, ControlGroup, Conversation};

/// Combines the members' votes on each offer: `Ok` if all members agree, otherwise `Err` with the reason of the lowest rank that refused.
///
/// When this function returns, every member has voted.
pub async fn vote(
    comm: &Comm,
    mine: Vec<Result<(), Refusal>>,
) -> Result<Vec<Result<(), Refusal>>, Error> {
    const NO_MEMBER: u32 = u32::MAX;
    if comm.size() == 1 || mine.is_empty() {
        return Ok(mine);
    }
    let ballot = |vote: &Result<(), Refusal>| match vote {
        Ok(()) => NO_MEMBER,
        Err(_) => comm.rank(),
    };
    let mut refusers: Vec<u32> = mine.iter().map(ballot).collect();
    let invocation = comm.internal().conversation();
    let all = ControlGroup::of(&invocation, comm.group(), comm.rank());
    all.lowest(&mut refusers).await?;

    let mut verdicts = Vec::with_capacity(mine.len());
    for (refuser, own) in refusers.into_iter().zip(mine) {
        verdicts.push(if refuser == NO_MEMBER {
            Ok(())
        } else {
            let reason = own.err().map(|r| r.0).unwrap_or_default();
            let reason = receive_reason(&comm.internal().conversation(), reason, refuser).await?;
            Err(Refusal(format!("rank {refuser}: {reason}")))
        });
    }
    Ok(verdicts)
}

/// Broadcasts the reason of the member `from`, and returns it on every member.
async fn receive_reason(
    invocation: &Conversation,
    reason: String,
    from: u32,
) -> Result<String, Error> {
    let all = ControlGroup::of(
        invocation,
        invocation.comm().group(),
        invocation.comm().rank(),
    );
    let text = all.tell(reason.into_bytes(), from).await?;
    Ok(String::from_utf8(text)
        .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
}
