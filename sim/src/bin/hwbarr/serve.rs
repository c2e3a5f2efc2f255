//! `hwbarr serve`: a board over TCP, with a log of the clients that connect and disconnect.

use crate::log::Log;
use crate::{Failure, say};
use clap::Args;
use sim::served::{Address, Notice, Server};
use sim::words::counted;
use std::net::SocketAddr;

/// Serve a board over TCP, for ranks on several hosts; ends by a signal, as Ctrl-C.
#[derive(Args)]
pub struct Serve {
    /// How many nodes the board has, 1 to 64.
    #[arg(short, long, default_value_t = 60)]
    nodes: usize,
    /// Where to listen; [::]:25175 is every address of this host, and port 0 any free one.
    ///
    /// Whoever reaches the port may take a node, so listen only where friends are.
    #[arg(
        short,
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:25175"
    )]
    listen: String,
    /// Serve a board of version 2: five channels, which communicators take while they last.
    #[arg(long)]
    channels: bool,
    /// End when every node that has joined and every observer has disconnected.
    #[arg(long)]
    once: bool,
}

impl Serve {
    pub fn execute(self) -> Result<(), Failure> {
        let (mut server, kind) = match self.channels {
            false => (Server::bind(self.nodes, &self.listen)?, ""),
            true => {
                let server = Server::bind_channels(self.nodes, &self.listen)?;
                (server, " with five channels")
            }
        };
        say(&format!(
            "a board of {}{kind} is served at {}\n",
            counted(self.nodes, "node"),
            place(server.address())
        ))?;
        let mut log = Log::new()?;
        let mut joined = false;
        loop {
            for notice in server.turn()? {
                joined |= matches!(notice, Notice::Joined { .. });
                log.say(&notice.to_string());
            }
            if self.once && joined && !server.is_attended() {
                let releases = server.releases();
                log.finish();
                return say(&format!(
                    "{} counted by the machine\n",
                    counted(releases, "release")
                ));
            }
        }
    }
}

/// What clients are told; an address that stands for all of this host's is none that they can use.
fn place(at: SocketAddr) -> String {
    match at.ip().is_unspecified() {
        true => format!("port {} of every address of this host", at.port()),
        false => Address::from(at).to_string(),
    }
}
