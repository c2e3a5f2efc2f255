//! `MPIX_Comm_agree`, over messages ([`Agreements`](crate::fault::Agreements)) or in the node's shared memory ([`NodeAgreement`]).
//!
//! Agreements are numbered when they are called or started, in the same order on all members.
//! They run one after another:
//! an agreement that is started while others are in progress waits until they have ended.

use super::Comm;
use super::failure_state::FailureState;
use crate::Error;
use crate::fault::{AgreementKey, Death, FaultError, Faults, NodeAgreement, Participants, Value};
use mpi_transport::btl::ProcId;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// The result of an agreement.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreed {
    /// All members' flags, combined bit by bit with AND.
    pub flag: u32,
    /// The maximum of the numbers that the members passed.
    pub(super) number: u64,
    /// An error if a member is dead and not every living member has acknowledged the death.
    pub error: Option<Error>,
}

/// The sequence number of one agreement on its communicator; dropping it lets the next agreement begin.
struct Turn<'a> {
    agreement: Agreement<'a>,
    number: u64,
}

impl<'a> Turn<'a> {
    fn take(agreement: Agreement<'a>) -> Turn<'a> {
        let number = agreement.state.agreements().begin();
        Turn { agreement, number }
    }

    fn has_come(&self) -> bool {
        self.agreement.state.agreements().is_up(self.number)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.agreement.state.agreements().end(self.number) {
            self.agreement.comm.engine().pml().requests().nudge();
        }
    }
}

/// The functions with which a communicator's living members agree on a value.
#[derive(Clone, Copy)]
pub struct Agreement<'a> {
    comm: &'a Comm,
    state: &'a FailureState,
}

impl<'a> Agreement<'a> {
    pub(super) fn new(comm: &'a Comm, state: &'a FailureState) -> Agreement<'a> {
        Agreement { comm, state }
    }

    pub(super) fn comm(self) -> &'a Comm {
        self.comm
    }

    /// `MPIX_Comm_agree`, also for a revoked communicator and after the death of any member.
    /// All living members get the same outcome.
    /// Afterwards each of them knows that all members that did not contribute are dead.
    pub fn agree_now(self, flag: u32) -> Result<Agreed, Error> {
        let agreements = self.state.agreements();
        let engine = self.comm.engine();
        match agreements.memory().ready() {
            Some(memory) if agreements.is_idle() => {
                let turn = Turn::take(self);
                memory.begin(turn.number, &self.contribution(flag, 0));
                let mut settled = 0;
                let mut is_over = || {
                    let wrong = !self.comm.is_sound();
                    settled = memory.settled(turn.number, settled, wrong);
                    memory.is_over(settled)
                };
                if !engine.waiting().briefly(&mut is_over) {
                    engine.wait_until(is_over);
                }
                let value = memory.outcome(turn.number, &agreements.left_out());
                Ok(self.conclude(value)?.0)
            }
            _ => engine.block_on(self.agree(flag)),
        }
    }

    /// Nonblocking form of [`Agreement::agree_now`] (`MPIX_Comm_iagree`).
    pub async fn agree(self, flag: u32) -> Result<Agreed, Error> {
        self.agree_on(flag, 0).await.map(|(agreed, _)| agreed)
    }

    /// Returns the maximum of the numbers that the living members pass; all of them get the same result.
    /// `MPI_File_close` uses this to select the member that deletes the file.
    pub async fn highest_of_living(self, number: u64) -> Result<u64, Error> {
        let (agreed, _) = self.agree_on(0, number).await?;
        Ok(agreed.number)
    }

    /// Same as [`Agreement::agree`]; the result also has the maximum of the members' `number`.
    /// Also returns the processes of `Comm::all_procs` that the members agree are dead.
    pub(super) async fn agree_on(
        self,
        flag: u32,
        number: u64,
    ) -> Result<(Agreed, Vec<ProcId>), Error> {
        let Some(faults) = self.comm.engine().faults() else {
            return Err(FaultError::failed(
                &self.comm.label(),
                &["MPI is not running in this process".into()],
                0,
            )
            .into());
        };
        let turn = Turn::take(self);
        poll_fn(|_| match turn.has_come() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        let value = self.contribution(flag, number);
        let value = match self.state.agreements().memory().ready() {
            Some(memory) => self.decide_in(memory, turn.number, value).await,
            None => self.decide_in_messages(faults, turn.number, value).await?,
        };
        self.conclude(value)
    }

    /// Returns this process's contribution to the agreement;
    /// without failures, the lists of dead and acknowledged members are empty.
    fn contribution(self, flag: u32, number: u64) -> Value {
        let plain = Value {
            flag,
            number,
            ..Value::default()
        };
        if self.comm.is_sound() {
            return plain;
        }
        let failures = self.comm.failures().deaths();
        let first = self.state.acknowledged().min(failures.len());
        let procs = self.comm.all_procs();
        let among = |failures: &[Death]| -> Vec<bool> {
            let is_there = |proc: &ProcId| failures.iter().any(|(dead, _)| dead == proc);
            procs.iter().map(is_there).collect()
        };
        // A member that left before all others had reached this agreement does not take part, so it counts as dead.
        let gone: Vec<_> = (failures.iter().cloned())
            .chain(self.comm.failures().departures())
            .collect();
        Value {
            dead: among(&gone),
            acknowledged: among(&failures[..first]),
            ..plain
        }
    }

    async fn decide_in(self, memory: &NodeAgreement, number: u64, value: Value) -> Value {
        memory.begin(number, &value);
        let _awake = self.comm.engine().operations().poll_always();
        let agreements = self.state.agreements();
        let mut settled = 0;
        poll_fn(|_| {
            let wrong = !self.comm.is_sound();
            settled = memory.settled(number, settled, wrong);
            match memory.is_over(settled) {
                true => Poll::Ready(memory.outcome(number, &agreements.left_out())),
                false => Poll::Pending,
            }
        })
        .await
    }

    async fn decide_in_messages(
        self,
        faults: &Faults,
        number: u64,
        mut value: Value,
    ) -> Result<Value, Error> {
        let engine = self.comm.engine();
        let agreements = self.state.agreements();
        let key = AgreementKey {
            comm: self.comm.context().number(),
            number,
        };
        let procs = self.comm.all_procs();
        let participants = self.participants(&procs)?;
        value.memory = (agreements.memory()).word(engine, &procs, number, participants.me == 0);
        // In agreements over messages both lists always have one entry per member.
        value.dead.resize(procs.len(), false);
        value.acknowledged.resize(procs.len(), false);
        let running = faults.agreements();
        running.begin(key, participants, value);
        let decision = poll_fn(|_| match running.decision(key) {
            Some(decision) if faults.has_said_all() => Poll::Ready(decision),
            _ => Poll::Pending,
        });
        let decision = decision.await;
        (agreements.memory()).decided(engine, &procs, decision.memory);
        Ok(decision)
    }

    /// Records the dead members of a decision, and returns them with the result.
    fn conclude(self, decision: Value) -> Result<(Agreed, Vec<ProcId>), Error> {
        let dead: Vec<ProcId> = match decision.dead.contains(&true) {
            false => Vec::new(),
            true => {
                let members = self.comm.all_procs().into_iter().zip(&decision.dead);
                let dead = members.filter(|(_, dead)| **dead);
                dead.map(|(proc, _)| proc).collect()
            }
        };
        if dead.contains(&self.comm.engine().me()) {
            return Err(self.held_for_dead());
        }
        for proc in &dead {
            self.comm.engine().peers().found_dead(*proc);
        }
        let error = decision.has_news().then(|| {
            let error = self.comm.failures().failed(|_| true);
            let unknown =
                || FaultError::failed(&self.comm.label(), &["a member has failed".into()], 0);
            Error::from(error.unwrap_or_else(unknown))
        });
        if !dead.is_empty() {
            self.state.agreements().leave_out(dead.clone());
        }
        let agreed = Agreed {
            flag: decision.flag,
            number: decision.number,
            error,
        };
        Ok((agreed, dead))
    }

    #[cold]
    fn held_for_dead(self) -> Error {
        let why = "the other members hold this process for dead".to_string();
        FaultError::failed(&self.comm.label(), &[why], 0).into()
    }

    /// Returns when every living member has called it; used before the end of `MPI_COMM_WORLD`.
    ///
    /// With fault tolerance the fence is two agreements.
    /// When the second ends on any member, all members know the result of the first,
    /// so no member will request that result from a process that has left.
    /// The wait for the second agreement has a time limit, since processes that have left do not take part.
    pub async fn fence_of_living(self) -> Result<(), Error> {
        const MOMENT: Duration = Duration::from_millis(500);
        if !self.comm.engine().is_fault_tolerant() {
            return self.comm.internal().fence().await;
        }
        self.agree(0).await?;
        let _awake = self.comm.engine().operations().poll_always();
        let until = Instant::now() + MOMENT;
        let mut second = pin!(self.agree(0));
        poll_fn(|cx| match second.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending if Instant::now() > until => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        })
        .await;
        Ok(())
    }

    /// Returns the members that take part in the next agreement: all except those that earlier agreements have found dead.
    fn participants(self, procs: &[ProcId]) -> Result<Participants, Error> {
        let left_out = self.state.agreements().left_out();
        let part = (0..).zip(procs);
        let part = part.filter(|(_, proc)| !left_out.contains(proc));
        let (members, places): (Vec<u32>, Vec<ProcId>) = part.map(|(m, p)| (m, *p)).unzip();
        let me = self.comm.engine().me();
        let Some(me) = (0..).zip(&places).find(|(_, proc)| **proc == me) else {
            return Err(self.held_for_dead());
        };
        Ok(Participants {
            me: me.0,
            members,
            places,
        })
    }
}
