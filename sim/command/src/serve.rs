//! `hwbarr serve`: serves a board over TCP, with a log of the clients that connect and disconnect.

use crate::log::Log;
use crate::{Failure, say};
use barrier_board::served::{Address, Notice, Server};
use barrier_waveform::words::counted;
use clap::Args;
use std::net::SocketAddr;

/// Serve a board over TCP, for ranks on several hosts; ends by a signal, as Ctrl-C.
#[derive(Args)]
pub struct Serve {
    /// Number of nodes of the board, 1 to 64.
    #[arg(short, long, default_value_t = 60)]
    nodes: usize,
    // Brackets are a link in Markdown, and backticks that prevent this would appear in the help.
    #[allow(rustdoc::broken_intra_doc_links)]
    /// Where to listen; [::]:25175 is every address of this host, and port 0 any free one.
    ///
    /// No authentication: any process that can connect can occupy a node, so listen on trusted networks only.
    #[arg(
        short,
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:25175"
    )]
    listen: String,
    /// Serve a board of version 2, with five channels for communicators.
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

/// Formats the address for clients. They cannot connect to an unspecified address such as 0.0.0.0.
fn place(at: SocketAddr) -> String {
    match at.ip().is_unspecified() {
        true => format!("port {} of every address of this host", at.port()),
        false => Address::from(at).to_string(),
    }
}
