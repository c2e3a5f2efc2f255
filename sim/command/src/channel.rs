//! `hwbarr channel`: the channels of a version 2 board, from one node: list the channels, free the
//! channel of a node that has died, and run a heartbeat.
//!
//! Nodes that run `beat` have no network between them, so they synchronise through the board: the
//! lowest member takes the channel when all members' lines are idle, and begins to beat.
//! Each other member begins to beat when the board reports that the channel has these members.

use crate::command_failed::CommandFailed;
use crate::{Failure, say};
use barrier_board::served::{Address, ChannelLines, SCHEME};
use barrier_driver::channels::{
    ChannelBarrier, Heartbeat, Membership, ProgramError, Pulse, ReleaseLine, Rhythm, Status,
};
use barrier_driver::last_resort;
use barrier_driver::ports::{
    self, BoxedChannel, BoxedChannels, BoxedIn, BoxedOut, BoxedProgrammer, Lines,
};
use barrier_simulator::virtual_time::Time;
use barrier_waveform::words::counted;
use clap::{Args, Subcommand, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for an answer of a served board.
const ANSWER: Duration = Duration::from_secs(10);

/// Time between two polls of a heartbeat's release line.
const POLL: Duration = Duration::from_millis(1);

/// Time that the command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// The channels of a version 2 board: list them, free one, and a heartbeat of nodes.
///
/// PORT is a port with the lines of version 2, such as ppdev:/dev/parport0, or sim:tcp://HOST:PORT,node=NODE for a node of the board
/// that `hwbarr serve --channels` serves there. No other process may use the port.
#[derive(Args)]
pub struct Channel {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// The members of each channel, which of them have arrived or were late, and the counts.
    List {
        /// The port of a node.
        port: String,
    },
    /// Free a channel of this node, whose other members have died or ended.
    Free {
        /// The port of the node that is left.
        port: String,
        /// The channel, 0 to 4.
        channel: u8,
        /// The other members of the channel, such as 0-3+6; they are named so that no living node loses its channel by mistake.
        #[arg(long, value_name = "NODES", value_parser = mask)]
        dead: u64,
    },
    /// Beat with other nodes on a channel of its own; a node that does not beat is named, and the channel is freed.
    ///
    /// Every member runs this command. With a command after --, the heartbeat lasts as long as the command.
    Beat {
        /// The port of this node.
        port: String,
        /// The channel, 0 to 4; no other program uses it.
        channel: u8,
        /// All members, such as 0-3+6, including this node.
        #[arg(long, value_name = "NODES", value_parser = mask)]
        members: u64,
        /// Number of this node; a port of a served board names it already.
        #[arg(long, value_name = "NODE", value_parser = clap::value_parser!(u8).range(..64))]
        me: Option<u8>,
        /// Time between two beats.
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        every: Time,
        /// Time without a beat after which a node counts as dead; far more than a busy machine leaves a process waiting.
        #[arg(long, value_name = "TIME", default_value = "5s")]
        limit: Time,
        /// Time that all members have to start.
        #[arg(long, value_name = "TIME", default_value = "60s")]
        start: Time,
        /// End after this number of beats.
        #[arg(long, value_name = "BEATS")]
        beats: Option<u64>,
        /// What happens to the command when a node is silent.
        #[arg(long, value_name = "WHAT", value_enum, default_value_t = Silence::End)]
        on_silence: Silence,
        /// A command that runs meanwhile, and its arguments.
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Silence {
    /// It gets SIGTERM, and this command fails.
    End,
    /// It goes on, and this command ends as it does.
    GoOn,
}

/// Parses a set of nodes such as `0-3+6`.
fn mask(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is no list of nodes such as 0-3+6");
    text.split('+').try_fold(0, |all, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().ok().filter(|node| *node < 64);
        let (first, last) = number(first).zip(number(last)).ok_or_else(bad)?;
        match first <= last {
            true => Ok((first..=last).fold(all, |all, node| all | 1 << node)),
            false => Err(bad()),
        }
    })
}

/// Formats a set of nodes as on the command line, such as `0-3+6`.
fn named(nodes: u64) -> String {
    let names: Vec<_> = (0..64)
        .filter(|node| nodes >> node & 1 == 1)
        .map(|node: u32| node.to_string())
        .collect();
    match names.as_slice() {
        [] => "no node".to_owned(),
        [one] => format!("node {one}"),
        [most @ .., last] => format!("nodes {} and {last}", most.join(", ")),
    }
}

/// The lines of a node of a served board.
struct Remote(ChannelLines);

impl Lines for Remote {
    fn set(&self, out: usize, high: bool) -> Option<()> {
        self.0.set(out, high).ok()
    }

    fn get(&self, input: usize) -> Option<bool> {
        self.0.get(input).ok()
    }
}

fn open(port: &str) -> Result<BoxedChannels, Failure> {
    if !port.starts_with(SCHEME) {
        return Ok(ports::open_channels(port)?);
    }
    let (address, node) = port
        .rsplit_once(",node=")
        .ok_or_else(|| format!("{port} names no node: write {SCHEME}HOST:PORT,node=NODE"))?;
    let address: Address = address.parse()?;
    let node: usize = node
        .parse()
        .map_err(|_| format!("'{node}' after node= in {port} is no number of a node"))?;
    let lines = ChannelLines::connect(&address, node, ANSWER)?;
    Ok(ports::channels_over(Remote(lines), port)?)
}

/// Returns the lines of a channel, or an error if the board has no such channel.
fn line_of(channels: &BoxedChannels, channel: u8) -> Result<BoxedChannel, Failure> {
    let found = channels.channels.get(usize::from(channel)).cloned();
    Ok(found.ok_or_else(|| format!("there is no channel {channel}: a board has 0 to 4"))?)
}

fn alone() -> Result<(), Infallible> {
    Ok(())
}

impl Channel {
    pub fn execute(self) -> Result<(), Failure> {
        match self.step {
            Step::List { port } => list(&mut open(&port)?.programmer),
            Step::Free {
                port,
                channel,
                dead,
            } => free(open(&port)?, channel, dead),
            Step::Beat {
                port,
                channel,
                members,
                me,
                every,
                limit,
                start,
                beats,
                on_silence,
                command,
            } => {
                let time = |time: Time| Duration::from_nanos(time.ns());
                let rhythm = Rhythm {
                    period: time(every),
                    limit: time(limit),
                };
                let membership = Membership { channel, members };
                let named_by_port = port.rsplit_once(",node=");
                let named_by_port = named_by_port.and_then(|(_, node)| node.parse().ok());
                let me = me.or(named_by_port);
                let me = me.ok_or("--me is missing: the number of the node with this port")?;
                if me >= 64 || members >> me & 1 == 0 || members.count_ones() < 2 {
                    return Err(format!(
                        "--members are {}: this node, {me}, and at least one other have to be among them",
                        named(members)
                    )
                    .into());
                }
                let channels = open(&port)?;
                let watch = last_resort::watch(channels.resting.clone());
                let (barrier, programmer) = begin(channels, membership, me, time(start))?;
                let beaten = Beater {
                    heart: Heartbeat::new(barrier, rhythm),
                    programmer,
                    membership,
                    beats,
                    on_silence,
                    command: &command,
                }
                .run();
                drop(watch);
                beaten
            }
        }
    }
}

fn list(programmer: &mut BoxedProgrammer) -> Result<(), Failure> {
    let identity = programmer.identify()?;
    let mut text = format!(
        "a board of version {} with {} and {}\n",
        identity.version,
        counted(identity.nodes, "node"),
        counted(identity.channels, "channel")
    );
    for channel in 0..identity.channels {
        let members = programmer.members(channel)?;
        if members == 0 {
            writeln!(text, "channel {channel}: free")?;
            continue;
        }
        let counts = programmer.counts(channel)?;
        write!(text, "channel {channel}: {}", named(members))?;
        let marked = [
            ("arrived", programmer.arrived(channel)?),
            ("late at the limit", programmer.late(channel)?),
        ];
        for (what, nodes) in marked.into_iter().filter(|(_, nodes)| *nodes != 0) {
            write!(text, "; {what}: {}", named(nodes))?;
        }
        let expired = counted(counts.expired, "limit");
        writeln!(
            text,
            "; {expired} expired; {}",
            counted(counts.early, "early release")
        )?;
    }
    say(&text)
}

fn free(mut channels: BoxedChannels, channel: u8, dead: u64) -> Result<(), Failure> {
    let BoxedChannel { out, input } = line_of(&channels, channel)?;
    let programmer = &mut channels.programmer;
    let members = programmer.members(channel)?;
    if members == 0 {
        return say(&format!("channel {channel} is free already\n"));
    }
    // The board replies with `NotMember` if this node is not in the mask `dead`, as it must be.
    // Otherwise it replies that the channel is taken.
    let others = programmer.take(channel, dead);
    let is_other = matches!(
        others,
        Err(ProgramError::Refused {
            status: Status::NotMember,
            ..
        })
    );
    if !is_other || (members & !dead).count_ones() != 1 {
        return Err(format!(
            "channel {channel} has {} as members, and --dead names {}: all members but this node have to be named",
            named(members),
            named(dead)
        )
        .into());
    }
    // The earlier process of this node may have ended with an arrival on the line;
    // `open` withdraws this arrival.
    let membership = Membership { channel, members };
    let opened = ChannelBarrier::open(out, input, membership, NO_PROGRAMMER, alone)?;
    opened.free_without(dead, Some(programmer), alone)?;
    say(&format!(
        "channel {channel} of {} is free\n",
        named(members)
    ))
}

const NO_PROGRAMMER: Option<&mut BoxedProgrammer> = None;

type BoxedBarrier = ChannelBarrier<BoxedOut, ReleaseLine<BoxedIn>>;

/// Makes this node's line idle; returns when the channel has been taken for its members.
fn begin(
    channels: BoxedChannels,
    membership: Membership,
    me: u8,
    limit: Duration,
) -> Result<(BoxedBarrier, BoxedProgrammer), Failure> {
    let Membership { channel, members } = membership;
    let BoxedChannel { out, input } = line_of(&channels, channel)?;
    let mut programmer = channels.programmer;
    let barrier = ChannelBarrier::open(out, input, membership, NO_PROGRAMMER, alone)?;
    let takes = members.trailing_zeros() == u32::from(me);
    let since = Instant::now();
    loop {
        let waits_for = match takes {
            true => match programmer.take(channel, members) {
                Ok(()) => return Ok((barrier, programmer)),
                // A member that has not started yet may have
                // left its line at the level of an arrival.
                Err(ProgramError::Refused {
                    status: Status::NotIdle,
                    value,
                    ..
                }) => named(value),
                Err(other) => return Err(other.into()),
            },
            false if programmer.members(channel)? == members => {
                return Ok((barrier, programmer));
            }
            false => named(1 << members.trailing_zeros()),
        };
        if since.elapsed() >= limit {
            return Err(format!(
                "channel {channel} did not get the members {} within {limit:.1?}: {waits_for} has not started; --start gives more time",
                named(members)
            )
            .into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A heartbeat, and the command that runs at the same time.
struct Beater<'c> {
    heart: Heartbeat<BoxedOut, ReleaseLine<BoxedIn>>,
    programmer: BoxedProgrammer,
    membership: Membership,
    beats: Option<u64>,
    on_silence: Silence,
    command: &'c [OsString],
}

/// The reason why a heartbeat ended.
enum End {
    /// The command has ended, or the requested number of beats is done; the channel is free.
    Done(Option<ExitStatus>),
    /// The nodes in this mask did not beat within the limit; the channel is free.
    Silent(u64),
    /// Another node has freed the channel, so this node is no longer a member.
    Excluded,
}

impl Beater<'_> {
    fn run(self) -> Result<(), Failure> {
        let (channel, on_silence) = (self.membership.channel, self.on_silence);
        let mut child = match self.command {
            [] => None,
            [program, arguments @ ..] => Some(Running(
                Command::new(program)
                    .args(arguments)
                    .spawn()
                    .map_err(|e| format!("{} cannot be started: {e}", printable::name(program)))?,
            )),
        };
        let since = Instant::now();
        let (end, beats) = self.beat(&mut child)?;
        let sentence = match end {
            End::Done(status) => {
                say(&format!(
                    "{} on channel {channel} in {:.1?}; the channel is free\n",
                    counted(beats, "beat"),
                    since.elapsed()
                ))?;
                return succeeded(status);
            }
            End::Silent(nodes) => format!(
                "{} of channel {channel} has not beaten for longer than the limit: the process or its machine has died, or is stopped; after {} the channel is free for others",
                named(nodes),
                counted(beats, "beat")
            ),
            End::Excluded => format!(
                "another node has freed channel {channel} after {}: its command has ended, or this node was stopped for longer than the limit",
                counted(beats, "beat")
            ),
        };
        let ends = matches!(end, End::Silent(_)) && on_silence == Silence::End;
        match child {
            None if matches!(end, End::Excluded) => say(&format!("{sentence}\n")),
            None => Err(sentence.into()),
            Some(mut child) if ends => {
                child.terminate()?;
                Err(format!("{sentence}; the command was ended").into())
            }
            Some(mut child) => {
                printable::eprintln!("hwbarr: {sentence}; the command goes on");
                succeeded(Some(child.0.wait()?))
            }
        }
    }

    /// Beats until the command ends, the number of beats is reached, or a node is silent.
    /// Returns the reason for the end, and the number of beats.
    fn beat(mut self, child: &mut Option<Running>) -> Result<(End, u64), Failure> {
        let since = Instant::now();
        let mut beats = 0;
        let mut status = None;
        loop {
            if let Some(child) = child
                && status.is_none()
            {
                status = child.0.try_wait()?;
            }
            match self.heart.poll(since.elapsed(), &mut self.programmer)? {
                Pulse::Steady => thread::sleep(POLL),
                Pulse::Excluded { .. } => {
                    return Ok((status.map_or(End::Excluded, |s| End::Done(Some(s))), beats));
                }
                Pulse::Silent { nodes } => {
                    let barrier = self.heart.into_barrier();
                    barrier.free_without(nodes, Some(&mut self.programmer), alone)?;
                    return Ok((End::Silent(nodes), beats));
                }
                Pulse::Beat => {
                    beats += 1;
                    let done = self.beats.is_some_and(|most| beats >= most);
                    if (done || status.is_some()) && self.leaves() {
                        return Ok((End::Done(status), beats));
                    }
                }
            }
        }
    }

    /// Tries to free the channel after a beat.
    /// Returns false if a member has begun the next beat, which must then be completed first.
    fn leaves(&mut self) -> bool {
        let channel = self.membership.channel;
        // Another member that has ended may already have freed the channel.
        self.programmer.give_back(channel).is_ok() || self.programmer.members(channel) == Ok(0)
    }
}

fn succeeded(status: Option<ExitStatus>) -> Result<(), Failure> {
    status.map_or(Ok(()), |status| CommandFailed::check("the command", status))
}

/// The running command; it is killed when this value is dropped.
struct Running(Child);

impl Running {
    /// Sends SIGTERM to the command, and SIGKILL if it does not end in time.
    fn terminate(&mut self) -> Result<(), Failure> {
        // The call fails if the command has already ended.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let since = Instant::now();
        while self.0.try_wait()?.is_none() && since.elapsed() < GRACE {
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail only for a process that has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::{mask, named};

    #[test]
    fn nodes_are_written_as_ports_write_them() {
        assert_eq!(mask("0-3+6"), Ok(0b100_1111));
        assert_eq!(mask("5"), Ok(0b10_0000));
        for bad in ["", "64", "3-1", "1+", "a"] {
            assert!(mask(bad).is_err(), "{bad}");
        }
        let texts = [0, 0b10, 0b1011].map(named);
        assert_eq!(texts, ["no node", "node 1", "nodes 0, 1 and 3"]);
    }
}
