//! Broadcast and MIN-reduction in a group that has no communicator yet.
//!
//! The members communicate in a conversation of a communicator to which all of them belong.
//! Data are broadcast down a tree, nearly always in one message.
//! Numbers are reduced up the same tree, and the result is broadcast.
//! The tree is flat: on an oversubscribed node,
//! nearly all members are leaves and reply to the broadcast immediately.
//! A leaf is scheduled two times: to receive and reply, and to receive the result.
//! Recursive doubling would need one context switch per round.

use super::{Comm, Conversation};
use crate::Error;
use crate::datatype::{Scratch, SendBuf};
use crate::engine::Engine;
use crate::group::Group;
use crate::topo::tree::{Child, Knomial};

/// The header of the first message: the length of the data in bytes.
const HEAD: usize = size_of::<u32>();

/// Maximum number of data bytes in the first message.
pub const FIRST: usize = 508;

/// The tree's radix: a member sends to at most `RADIX - 1` members per level, one after another.
const RADIX: u32 = 8;

/// A group that communicates in a conversation of a communicator to which all its members belong.
pub struct ControlGroup<'a> {
    conversation: &'a Conversation,
    group: &'a Group,
    rank: u32,
}

impl<'a> ControlGroup<'a> {
    /// Creates the control group of the members of `group`, all of which must take part in the conversation.
    pub fn of(conversation: &'a Conversation, group: &'a Group, rank: u32) -> ControlGroup<'a> {
        ControlGroup {
            conversation,
            group,
            rank,
        }
    }

    pub(super) fn engine(&self) -> &Engine {
        self.conversation.engine()
    }

    /// Returns the conversation's communicator if all of its members take part.
    pub(super) fn whole(&self) -> Option<&Comm> {
        self.conversation
            .is_of_all()
            .then(|| self.conversation.comm())
    }

    pub(super) fn group(&self) -> &Group {
        self.group
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// Broadcasts the data `own` of the member `from` and returns them; other members' `own` is ignored.
    pub async fn tell(&self, own: Vec<u8>, from: u32) -> Result<Vec<u8>, Error> {
        let size = self.group.size();
        if size == 1 {
            return Ok(own);
        }
        let tree = self.tree(from);
        let message = Scratch::bytes((HEAD + FIRST) as i64)?;
        let mut first = message.all();
        let mut head = [0; HEAD];
        match tree.parent() {
            Some(parent) => {
                // The first message may be shorter than its buffer.
                let parent = self.called(parent);
                self.conversation.irecv(first.clone(), parent).await?;
                first.as_send().pack_at(0, &mut head);
            }
            None => {
                // The data are shorter than 2^32 bytes.
                head = (own.len() as u32).to_le_bytes();
                first.unpack_at(0, &head);
                first.unpack_at(HEAD as i64, &own[..own.len().min(FIRST)]);
            }
        }
        let len = u32::from_le_bytes(head) as usize;
        let here = len.min(FIRST);
        self.pass_on(&tree, message.send(0..(HEAD + here) as i64))
            .await?;
        let rest = match len - here {
            0 => None,
            more => {
                let rest = Scratch::bytes(more as i64)?;
                match tree.parent() {
                    Some(parent) => {
                        self.conversation
                            .recv(rest.all(), self.called(parent))
                            .await?
                    }
                    None => {
                        rest.all().unpack_at(0, &own[here..]);
                    }
                }
                self.pass_on(&tree, rest.all().as_send()).await?;
                Some(rest)
            }
        };
        if self.rank == from {
            return Ok(own);
        }
        let mut told = vec![0; len];
        let (start, end) = told.split_at_mut(here);
        first.as_send().pack_at(HEAD as i64, start);
        if let Some(rest) = rest {
            rest.all().as_send().pack_at(0, end);
        }
        Ok(told)
    }

    /// Element-wise MIN-allreduce of `numbers`.
    ///
    /// When this function returns on any member, all members have called it.
    pub async fn lowest(&self, numbers: &mut [u32]) -> Result<(), Error> {
        const NUMBER: usize = size_of::<u32>();
        if self.group.size() == 1 {
            return Ok(());
        }
        let tree = self.tree(0);
        let len = (numbers.len() * NUMBER) as i64;
        let children: Vec<Child> = tree.children().collect();
        // One block for each child's numbers, then one for this member's numbers.
        let own = children.len() as i64;
        let memory = Scratch::bytes(len * (own + 1))?;
        let place = |at: i64| at * len..(at + 1) * len;
        let heard = (0..).zip(&children).map(|(at, child)| {
            let target = memory.recv(place(at));
            self.conversation.irecv(target, self.called(child.rank))
        });
        self.conversation.all(heard.collect()).await?;
        let mut bytes = [0; NUMBER];
        for at in 0..own {
            let theirs = memory.send(place(at));
            for (i, number) in (0..).step_by(NUMBER).zip(numbers.iter_mut()) {
                theirs.pack_at(i, &mut bytes);
                *number = (*number).min(u32::from_le_bytes(bytes));
            }
        }
        let mut ours = memory.recv(place(own));
        for (i, number) in (0..).step_by(NUMBER).zip(numbers.iter()) {
            ours.unpack_at(i, &number.to_le_bytes());
        }
        if let Some(parent) = tree.parent() {
            let parent = self.called(parent);
            self.conversation.send(ours.as_send(), parent).await?;
            self.conversation.recv(ours.clone(), parent).await?;
        }
        self.pass_on(&tree, ours.as_send()).await?;
        for (i, number) in (0..).step_by(NUMBER).zip(numbers) {
            ours.as_send().pack_at(i, &mut bytes);
            *number = u32::from_le_bytes(bytes);
        }
        Ok(())
    }

    fn tree(&self, root: u32) -> Knomial {
        Knomial::new(self.rank, root, self.group.size(), RADIX)
    }

    async fn pass_on(&self, tree: &Knomial, data: SendBuf) -> Result<(), Error> {
        let send = |child: Child| {
            self.conversation
                .isend(data.clone(), self.called(child.rank))
        };
        self.conversation
            .all(tree.children().map(send).collect())
            .await
    }

    /// Returns a member's rank in the conversation's communicator.
    fn called(&self, rank: u32) -> u32 {
        let all = self.conversation.comm().group();
        let proc = self.group.proc(rank);
        proc.and_then(|proc| all.rank_of(proc)).unwrap_or(0)
    }
}
