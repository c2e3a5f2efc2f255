//! How the members of a group hear what one of them has to say, and what is the least that any of them says.
//!
//! The group need not be a communicator yet: its members talk in a conversation of one to which they all belong.
//! Words go down a tree, in one message if they are few, as they nearly always are; numbers go up the same tree and down again.
//! The tree is flat, so that where ranks share cores nearly all have no member below them and answer at once what they have heard:
//! each must be switched in twice to hear, to answer and to hear the result, where pairs that exchange would take turns for every doubling.

use super::{Comm, Conversation};
use crate::Error;
use crate::datatype::{Scratch, SendBuf};
use crate::engine::Engine;
use crate::group::Group;
use crate::topo::tree::{Child, Knomial};

/// In front of the words in the first message: how many bytes there are in all.
const HEAD: usize = size_of::<u32>();

/// So many bytes of them go with it.
pub const FIRST: usize = 508;

/// The tree's radix: so many members hear from the first itself, as fast as one message follows another.
const RADIX: u32 = 8;

/// A group and the conversation in which its members tell each other something.
pub struct ControlGroup<'a> {
    cx: &'a Conversation,
    group: &'a Group,
    /// This process's rank in the group.
    rank: u32,
}

impl<'a> ControlGroup<'a> {
    /// The members of `group`, all of which are in the conversation.
    pub fn of(cx: &'a Conversation, group: &'a Group, rank: u32) -> ControlGroup<'a> {
        ControlGroup { cx, group, rank }
    }

    pub(super) fn engine(&self) -> &Engine {
        self.cx.engine()
    }

    /// The communicator of the conversation, if all its members take part in what the group does.
    pub(super) fn whole(&self) -> Option<&Comm> {
        self.cx.is_of_all().then(|| self.cx.comm())
    }

    pub(super) fn group(&self) -> &Group {
        self.group
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// The words of the member `from`, at every member; what the others give is not looked at.
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
                // Few words are a short message.
                let parent = self.called(parent);
                self.cx.irecv(first.clone(), parent).await?;
                first.as_send().pack_at(0, &mut head);
            }
            None => {
                // No member has so much to say that it could not be counted.
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
                    Some(parent) => self.cx.recv(rest.all(), self.called(parent)).await?,
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

    /// For each place the lowest number that any member has there, at every member.
    ///
    /// When it returns, at whichever member, all members have called it.
    pub async fn lowest(&self, numbers: &mut [u32]) -> Result<(), Error> {
        const NUMBER: usize = size_of::<u32>();
        if self.group.size() == 1 {
            return Ok(());
        }
        let tree = self.tree(0);
        let len = (numbers.len() * NUMBER) as i64;
        let children: Vec<Child> = tree.children().collect();
        // A place for each child's numbers, and behind them one for ours.
        let own = children.len() as i64;
        let memory = Scratch::bytes(len * (own + 1))?;
        let place = |at: i64| at * len..(at + 1) * len;
        let heard = (0..).zip(&children).map(|(at, child)| {
            let room = memory.recv(place(at));
            self.cx.irecv(room, self.called(child.rank))
        });
        self.cx.all(heard.collect()).await?;
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
            self.cx.send(ours.as_send(), parent).await?;
            self.cx.recv(ours.clone(), parent).await?;
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
        let send = |child: Child| self.cx.isend(data.clone(), self.called(child.rank));
        self.cx.all(tree.children().map(send).collect()).await
    }

    /// A member's rank in the conversation.
    fn called(&self, rank: u32) -> u32 {
        let all = self.cx.comm().group();
        let proc = self.group.proc(rank);
        proc.and_then(|proc| all.rank_of(proc)).unwrap_or(0)
    }
}
