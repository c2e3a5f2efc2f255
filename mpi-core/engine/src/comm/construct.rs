//! Creation of a communicator: its members receive its context id and agree on the components that serve it.
//!
//! Rank 0 sends one message, the invitation ([`Proposal::invite`]).
//! If the other members do not know the communicator's number yet,
//! the number is at the front of the invitation;
//! a special value reports that rank 0 has no number left ([`context_id`]).

use super::collective_calls::{CollectiveCalls, Purpose};
use super::{Collectives, Comm, Context, ControlGroup, Proposal, context_id};
use crate::Error;
use crate::fault::is_about_deaths;

const NUMBER: usize = size_of::<u64>();

impl ControlGroup<'_> {
    /// Creates the communicator of the control group's members; its first member chooses the number.
    pub(super) async fn found(&self, purpose: Purpose) -> Result<Comm, Error> {
        let engine = self.engine();
        let leader = self.group().proc(0).unwrap_or(engine.me());
        let make = |word| -> Result<(Comm, Box<dyn Proposal>), Error> {
            let context = Context::numbered(context_id::told(leader, word)?);
            let group = self.group().clone();
            let comm = Comm::assemble(engine, context, group, self.rank(), String::new());
            comm.collectives().set_purpose(purpose);
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
            // Rank 0 runs the same library, so its message contains the number.
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
        Ok(comm)
    }
}

impl CollectiveCalls<'_> {
    /// Agrees with all members on the components that serve this communicator, whose number all of them know.
    pub(crate) async fn choose(self) -> Result<(), Error> {
        if self.comm().is_inter() {
            self.adopt(self.comm().engine().process().coll()?.between_groups());
            return Ok(());
        }
        let proposal = self
            .comm()
            .engine()
            .process()
            .coll()?
            .propose(self.comm())?;
        let chosen = self.invite_and_agree(proposal).await;
        self.adopt(self.or_alone(chosen)?);
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

    /// Returns the choice of the members.
    /// With fault tolerance, chooses without communication if a death prevented the agreement.
    /// So a death neither keeps MPI from starting nor keeps the living members from communicating.
    /// If the dead process is a member of the parent communicator only, returns the error:
    /// all members of the new communicator are alive then and need the same choice.
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

    /// Installs the collectives of this communicator.
    fn adopt(self, table: Box<dyn Collectives>) {
        // The layer above prints the explanation of MPI_COMM_WORLD, so this code does not.
        // Only rank 0 prints; private communicators of other ranks would give the same lines.
        let (_, serial) = Context::chosen(self.comm().context().number());
        if serial > 1 && self.comm().engine().me() == 0 && self.comm().engine().place().explains() {
            for line in table.explain(&self.comm().label()) {
                printable::eprintln!("explain: {line}");
            }
        }
        self.install(table);
    }
}
