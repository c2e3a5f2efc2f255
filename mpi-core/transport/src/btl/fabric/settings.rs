//! MCA parameters that all fabric transports share.

use crate::btl::Limits;
use mpi_base::param::{self, About, Level, Param, ParamError, Params, Value};
use std::path::PathBuf;
use std::time::Duration;

/// The MCA parameters of one component.
pub struct Knobs {
    pub library: Param<PathBuf>,
    pub eager: Param<usize>,
    pub max_send: Param<usize>,
    pub buffers: Param<usize>,
    pub read: Param<Reading>,
    pub read_min: Param<usize>,
    pub connect: Param<Duration>,
}

/// The defaults that differ between the components.
pub struct Defaults {
    pub eager: &'static str,
    pub max_send: &'static str,
}

impl Knobs {
    pub const fn of(component: &'static str, defaults: &Defaults) -> Knobs {
        Knobs {
            library: Param::new(
                "btl",
                component,
                "library",
                "",
                Level::USER,
                "File of the library; empty: the system's",
            ),
            eager: Param::new(
                "btl",
                component,
                "eager_limit",
                defaults.eager,
                Level::TUNER,
                "Maximum size of a message that is sent eagerly",
            ),
            max_send: Param::new(
                "btl",
                component,
                "max_send_size",
                defaults.max_send,
                Level::TUNER,
                "Maximum size of a message of the transport; longer ones are sent in fragments",
            ),
            buffers: Param::new(
                "btl",
                component,
                "buffers",
                "64",
                Level::TUNER,
                "Maximum number of long messages that wait in this process for the library; further ones wait in their senders",
            ),
            read: Param::new(
                "btl",
                component,
                "read",
                "auto",
                Level::TUNER,
                "Whether long messages are read by the network from registered memory (auto: if the library has a device), or sent in fragments",
            ),
            read_min: Param::new(
                "btl",
                component,
                "read_min",
                "256k",
                Level::TUNER,
                "Minimum size of a message that the network reads from registered memory",
            ),
            connect: Param::new(
                "btl",
                component,
                "connect_timeout",
                "0",
                Level::TUNER,
                "Time after which a peer is lost that has not answered the first message; 0: no limit but that of the library, since a peer answers only in an MPI call",
            ),
        }
    }

    pub const fn about(&self) -> [&About; 7] {
        [
            self.library.about(),
            self.eager.about(),
            self.max_send.about(),
            self.buffers.about(),
            self.read.about(),
            self.read_min.about(),
            self.connect.about(),
        ]
    }

    pub fn read(&self, params: &Params) -> Result<Settings, ParamError> {
        let max_send = params.get(&self.max_send)?.clamp(1 << 10, 1 << 30);
        Ok(Settings {
            library: params.get(&self.library)?,
            limits: Limits {
                eager: params.get(&self.eager)?.min(max_send),
                max_send,
            },
            buffers: params.get(&self.buffers)?.clamp(1, 1 << 16),
            read: params.get(&self.read)?,
            read_min: params.get(&self.read_min)?,
            connect: params.get(&self.connect)?,
        })
    }
}

/// The values of [`Knobs`].
pub struct Settings {
    pub library: PathBuf,
    pub limits: Limits,
    pub buffers: usize,
    pub read: Reading,
    pub read_min: usize,
    pub connect: Duration,
}

impl Settings {
    /// Changes [`Reading::Auto`] to `Yes` if the machine has a device.
    /// Without a device, long messages are not read, because a library's remote read then copies the data as often as messages do.
    pub fn look_at(&mut self, devices: &[String]) {
        if self.read == Reading::Auto && !devices.is_empty() {
            self.read = Reading::Yes;
        }
    }

    /// Returns true if the library must support reads of remote memory.
    pub fn reads(&self) -> bool {
        self.read == Reading::Yes
    }
}

/// The setting whether long messages are read from registered memory of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Long messages are read if this machine has a device that the library supports.
    Auto,
    Yes,
    No,
}

impl Value for Reading {
    const KIND: param::Kind = param::Kind::OneOf(&["auto", "yes", "no"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Reading::Auto),
            "yes" => Ok(Reading::Yes),
            "no" => Ok(Reading::No),
            _ => Err("auto, yes or no".into()),
        }
    }
}
