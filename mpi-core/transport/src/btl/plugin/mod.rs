//! Transports from plugin files: a `Fabric` over a port that calls the functions of the plugin's C table.
//!
//! A file `btl_NAME.so` is loaded only if the parameter `btl` contains NAME, so all processes of a job agree on the file before they communicate.
//! [`mpi_base::plugin_file`] specifies which folders are searched and which files are trusted; the package `portcullis-plugin` defines the tables.
//! `dgram` is part of the library; its table, checks and port are the same as for a plugin file.
//! A published address begins with the transport's version. So a peer with another version counts as unreachable, and the reason contains both versions.

mod events;
mod file;
mod host;
mod memory;
mod port;
#[cfg(test)]
mod tests;

pub use file::{FileError, Found, list};

use super::dgram::Dgram;
use super::fabric::open::{Names, assemble, modex_of};
use super::fabric::settings::{Defaults, Knobs, Reading};
use super::{OpenContext, OpenError, Transport};
use file::Plugin;
use mpi_base::mem::Held;
use mpi_base::param::About;
use mpi_base::state::StatePage;
use port::PluginPort;

/// The number that identifies plugins in cards, the same for all plugins; each plugin has its own modex key.
const KIND: u8 = 255;

/// The built-in transports that use the plugin table.
/// A plugin file with the same name replaces the built-in transport.
const BUILT_IN: &[(&str, BuiltIn)] = &[("dgram", file::built_in::<Dgram>)];

type BuiltIn = fn() -> Result<Plugin, FileError>;

/// Returns this process's state page, which contains the name of a plugin file while the file's code is started.
fn page_of(context: &OpenContext<'_>) -> Option<Held<StatePage>> {
    let (node, _) = context.node.as_ref()?;
    node.state(node.rank()).ok()
}

/// A transport with a plugin table; the transport is not yet opened.
pub struct Component {
    plugin: Plugin,
    knobs: &'static Knobs,
    card_key: &'static str,
}

impl Component {
    /// Loads the plugin file of a transport that the user has named. If no such file exists, uses the built-in transport with this name.
    pub fn load(name: &str, context: &OpenContext<'_>) -> Result<Component, FileError> {
        let page = page_of(context);
        let of_library = BUILT_IN.iter().find(|(own, _)| *own == name);
        let plugin = match (
            file::load(name, context.params, page.as_deref()),
            of_library,
        ) {
            (Err(FileError::Missing), Some((_, built_in))) => built_in(),
            (loaded, _) => loaded,
        }?;
        // Lists of parameters need static texts. The texts are leaked, which is acceptable because a plugin is never unloaded.
        let defaults = Defaults {
            eager: plugin.eager.to_string().leak(),
            max_send: plugin.longest.to_string().leak(),
        };
        Ok(Component {
            knobs: Box::leak(Box::new(Knobs::of(plugin.name, &defaults))),
            card_key: format!("btl-{}", plugin.name).leak(),
            plugin,
        })
    }

    /// Returns the transport's name for the parameter `btl`.
    pub fn name(&self) -> &'static str {
        self.plugin.name
    }

    /// Returns the transport's parameters, for lists of parameters.
    pub fn params(&self) -> Vec<&'static About> {
        let own = self.plugin.params.iter();
        self.knobs.about().into_iter().chain(own).collect()
    }

    /// Opens the transport of this process.
    pub fn open(&self, context: &OpenContext<'_>) -> Result<Vec<Transport>, OpenError> {
        let modex = modex_of(context)?;
        let settings = self.knobs.read(context.params).map_err(OpenError::Param)?;
        let reads = settings.read != Reading::No;
        let port = PluginPort::open(&self.plugin, context, reads);
        let port = port.map_err(|reason| OpenError::Plugin {
            name: self.plugin.name,
            reason,
        })?;
        let names = Names {
            name: self.plugin.name,
            kind: KIND,
            card_key: self.card_key,
            exclusivity: self.plugin.exclusivity,
            poll_is_syscall: self.plugin.poll_is_syscall,
            title: format!("{} {}", self.plugin.name, self.plugin.version),
        };
        let fabric = assemble(names, context, &settings, modex, port)?;
        Ok(vec![Box::new(fabric)])
    }
}
