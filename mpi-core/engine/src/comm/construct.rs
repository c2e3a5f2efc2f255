//! Creation of a communicator: its members receive the context id and agree on the components that they use.
//!
//! Rank 0 sends one message with its offers of components ([`Proposal::invite`]).
//! If the other members do not know the context id yet,
//! it is at the front of the message;
//! a special value reports that rank 0 has no context id left ([`context_id`]).

use super::collective_calls::CollectiveCalls;
use super::selected::Purpose;
use super::{Collectives, Comm, Context, ControlGroup, Proposal, context_id};
use crate::Error;
use crate::fault::is_about_deaths;

const NUMBER: usize = size_of::<u64>();

impl ControlGroup<'_> {
    /// Creates the communicator of the control group's members; its first member chooses the context id.
    pub(super) async fn found(&self, purpose: Purpose) -> Result<Comm, Error> {
        let engine = self.engine();
        let leader = self.group().proc(0).unwrap_or(engine.me());
        let make = |word| -> Result<(Comm, Box<dyn Proposal>), Error> {
            let context = Context::numbered(context_id::told(leader, word)?);
            let group = self.group().clone();
            let comm = Comm::assemble(engine, context, group, self.rank(), String::new());
            comm.collectives().set_purpose(purpose);
            comm.failures().is_being_created();
            let proposal = engine.process().coll()?.propose(&comm)?;
            Ok((comm, proposal))
        };
        let (made, words);
        if self.rank() == 0 {
            let word = engine
                .context_ids()
                .next(1, engine.place().is_mixed(self.group()));
            made = make(word);
            let mut own = word.to_le_bytes().to_vec();
            if let Ok((comm, proposal)) = &made {
                proposal.invite(comm, &mut own);
            }
            words = self.tell(own, 0).await?;
        } else {
            words = self.tell(Vec::new(), 0).await?;
            // Rank 0 uses the same library, so its message begins with the context id.
            let word = words.first_chunk().copied().unwrap_or_default();
            made = make(u64::from_le_bytes(word));
        }
        let (comm, proposal) = made?;
        let invitation = words.get(NUMBER..).unwrap_or_default();
        let whole = self.whole();
        if let Some(whole) = whole {
            whole.failures().takes_part(&comm);
        }
        let chosen = comm
            .collectives()
            .or_alone(proposal.agree(&comm, invitation).await);
        if let (Some(whole), Purpose::Program) = (whole, purpose) {
            whole.failures().lets_go(&comm);
        }
        comm.collectives().adopt(chosen?);
        comm.failures().is_created();
        Ok(comm)
    }
}

impl CollectiveCalls<'_> {
    /// Agrees with all members on the components for this communicator, whose context id all members know.
    pub(crate) async fn choose(self) -> Result<(), Error> {
        if self.comm().is_inter() {
            self.adopt(self.comm().engine().process().coll()?.between_groups());
            return Ok(());
        }
        let failures = self.comm().failures();
        failures.is_being_created();
        let proposal = self
            .comm()
            .engine()
            .process()
            .coll()?
            .propose(self.comm())?;
        let chosen = self.invite_and_agree(proposal).await;
        self.adopt(self.or_alone(chosen)?);
        failures.is_created();
        Ok(())
    }

    async fn invite_and_agree(
        self,
        proposal: Box<dyn Proposal>,
    ) -> Result<Box<dyn Collectives>, Error> {
        let mut invitation = Vec::new();
        if self.comm().rank() == 0 {
            proposal.invite(self.comm(), &mut invitation);
        }
        let conversation = self.comm().internal().conversation();
        let all = ControlGroup::of(&conversation, self.comm().group(), self.comm().rank());
        let invitation = all.tell(invitation, 0).await?;
        proposal.agree(self.comm(), &invitation).await
    }

    /// Returns the members' selection of components.
    /// With fault tolerance, selects components without communication if a death has prevented the agreement.
    /// So a death prevents neither the start of MPI nor the communication of the living members.
    /// But if the dead process is only a member of the parent communicator, returns the error:
    /// then all members of the new communicator are alive and must make the same selection.
    fn or_alone(
        self,
        chosen: Result<Box<dyn Collectives>, Error>,
    ) -> Result<Box<dyn Collectives>, Error> {
        match chosen {
            Err(error)
                if self.comm().engine().is_fault_tolerant()
                    && !self.comm().failures().is_broken_from_outside()
                    && is_about_deaths(&error) =>
            {
                Ok(self
                    .comm()
                    .engine()
                    .process()
                    .coll()?
                    .propose(self.comm())?
                    .choose_alone())
            }
            chosen => chosen,
        }
    }

    /// Stores the selected components of this communicator; prints them with `mpirun --explain`.
    fn adopt(self, table: Box<dyn Collectives>) {
        self.explain(&*table);
        self.install(table);
    }

    /// With `mpirun --explain`, prints the selected components.
    pub(super) fn explain(self, table: &dyn Collectives) {
        // `mpi-abi` prints the explanation of MPI_COMM_WORLD.
        // Only the job's rank 0 prints: communicators of other ranks would mostly repeat its lines.
        let (_, serial) = Context::chosen(self.comm().context().number());
        let (engine, is_seen) = (self.comm().engine(), serial > 1 && !self.is_spare());
        if is_seen && engine.me() == 0 && engine.place().explains() {
            for line in table.explain(&self.comm().label()) {
                printable::eprintln!("explain: {line}");
            }
        }
    }
}
