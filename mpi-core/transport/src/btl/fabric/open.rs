//! Constructor of a fabric transport:
//! checks whether the transport is needed, is selected and has hardware, opens the port, and publishes its card.

use super::card::{Card, MOST_ADDRESS};
use super::library::LibraryError;
use super::operations::Operations;
use super::pool::Pool;
use super::port::Port;
use super::settings::{Knobs, Settings};
use super::transfers::Transfers;
use super::{Fabric, seen};
use crate::btl::{Info, Modex, OpenContext, OpenError, SELECTION, Transport};
use mpi_base::fdpass::Key;
use mpi_base::param::Selection;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

/// A function that opens a port of a network library. It also returns the name and version of the library.
pub type OpenPort<P> = fn(&OpenContext<'_>, &Settings) -> Result<(P, String), LibraryError>;

/// A component for transports over one network library.
pub struct Fabrics<P: Port> {
    pub name: &'static str,
    /// The number that identifies the component's library in cards.
    pub kind: u8,
    /// The modex key of the component's cards.
    pub card_key: &'static str,
    pub exclusivity: u32,
    pub knobs: &'static Knobs,
    /// Returns the devices of this machine that the component's library supports.
    pub seen: fn(&Path) -> Vec<String>,
    /// The name of these devices in texts for the user.
    pub devices: &'static str,
    /// Loads the library and opens the port.
    pub open: OpenPort<P>,
}

impl<P: Port + Send + 'static> Fabrics<P> {
    /// Opens the transport. Without a device of this machine that the library supports, the library is loaded only
    /// if the user has named the component in the parameter `btl`.
    pub fn transports(&self, context: &OpenContext<'_>) -> Result<Vec<Transport>, OpenError> {
        if !context.needs_network().map_err(OpenError::Param)? {
            return Err(OpenError::NotNeeded);
        }
        let selection = context.params.get(&SELECTION).map_err(OpenError::Param)?;
        let is_named = match &selection {
            Selection::Only(names) => names.iter().any(|name| name == self.name),
            _ => false,
        };
        let devices = (self.seen)(Path::new(seen::SYS));
        if !is_named && devices.is_empty() {
            return Err(OpenError::NoDevice {
                name: self.name,
                devices: self.devices,
            });
        }
        let mut settings = self.knobs.read(context.params).map_err(OpenError::Param)?;
        settings.look_at(&devices);
        Ok(vec![Box::new(self.fabric(context, &settings, &devices)?)])
    }

    /// Opens the port and publishes its card in the modex.
    pub fn fabric(
        &self,
        context: &OpenContext<'_>,
        settings: &Settings,
        devices: &[String],
    ) -> Result<Fabric<P>, OpenError> {
        let modex = modex_of(context)?;
        let (port, title) = (self.open)(context, settings).map_err(OpenError::Library)?;
        let names = Names {
            name: self.name,
            kind: self.kind,
            card_key: self.card_key,
            exclusivity: self.exclusivity,
            // With a device, a poll only reads memory. Without a device, the library uses sockets, and a poll is a system call.
            poll_is_syscall: devices.is_empty(),
            title: match devices {
                [] => title,
                devices => format!("{title} ({})", devices.join(", ")),
            },
        };
        assemble(names, context, settings, modex, port)
    }
}

/// The names and constants of a fabric transport.
pub struct Names {
    pub name: &'static str,
    /// The number that identifies the transport's library in cards.
    pub kind: u8,
    pub card_key: &'static str,
    pub exclusivity: u32,
    pub poll_is_syscall: bool,
    /// The library's name in texts for the user, such as error messages.
    pub title: String,
}

/// Returns the modex of the process. Returns an error without a modex, because then the address cannot be published.
pub fn modex_of(context: &OpenContext<'_>) -> Result<Arc<dyn Modex>, OpenError> {
    context.modex.clone().ok_or_else(|| OpenError::NoModex {
        reason: "there is no launcher".into(),
    })
}

/// Publishes the card of an open port, and creates the transport over this port.
pub fn assemble<P: Port>(
    names: Names,
    context: &OpenContext<'_>,
    settings: &Settings,
    modex: Arc<dyn Modex>,
    port: P,
) -> Result<Fabric<P>, OpenError> {
    let system = |doing: &'static str| move |reason: String| OpenError::System { doing, reason };
    let random = Key::random().map_err(|e| system("drawing a random key")(e.to_string()))?;
    let mut key = [0; 8];
    key.copy_from_slice(&random.bytes()[..8]);
    let key = u64::from_le_bytes(key);
    let address = port.address().to_vec();
    if address.is_empty() || address.len() > MOST_ADDRESS {
        let reason = format!(
            "it has {} bytes, and a card has {MOST_ADDRESS}",
            address.len()
        );
        return Err(system("publishing the address of this process")(reason));
    }
    let card = Card {
        fabric: names.kind,
        proc: context.me,
        key,
        longest: settings.limits.max_send as u32,
        address,
    };
    modex
        .put(names.card_key, &card.encode())
        .map_err(|reason| OpenError::NoModex { reason })?;
    Ok(Fabric {
        me: context.me,
        title: names.title,
        info: Info {
            name: names.name,
            exclusivity: names.exclusivity,
            is_network: true,
            limits: settings.limits,
            listens: true,
            poll_is_syscall: names.poll_is_syscall,
            connects: true,
            relies_on_senders: false,
        },
        kind: names.kind,
        card_key: names.card_key,
        key,
        connect_within: settings.connect,
        parameters: names.name,
        port,
        modex,
        peers: (0..context.size).map(|_| Default::default()).collect(),
        pool: Pool::new(settings.limits.max_send, settings.buffers),
        held: RefCell::default(),
        chores: RefCell::default(),
        refusing: RefCell::default(),
        connecting: RefCell::default(),
        busy: Cell::new(false),
        is_leaving: Cell::new(false),
        wants_space: Cell::new(false),
        has_space: Cell::new(false),
        operations: Operations::default(),
        transfers: Transfers::default(),
        read_min: settings.read_min,
        sent: Cell::new(0),
        received: Cell::new(0),
    })
}
