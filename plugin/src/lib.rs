//! Transports for Portcullis as plugin files, in safe Rust.
//!
//! A transport implements [`Transport`], and [`portcullis_transport!`] makes a plugin file of the library package that contains it.
//! The package depends on nothing of the library: both sides know the C tables of [`table`], which are those of `portcullis/transport.h`.
//! The library itself uses the same tables, and the manifest that its files begin with ([`manifest`]).

#![deny(unsafe_code)]

pub mod manifest;
pub mod table;
mod transport;

pub use transport::{Events, Host, Sent, Transport, functions, param};

/// Makes a plugin file of a transport: its manifest and the one function that it exports.
#[macro_export]
macro_rules! portcullis_transport {
    ($transport:ty) => {
        /// The manifest, which is read before the file is opened.
        #[used]
        #[allow(unsafe_code)]
        // SAFETY: the section is that of plugins' manifests, and contains notes only.
        #[unsafe(link_section = ".note.portcullis")]
        static PORTCULLIS_MANIFEST: $crate::manifest::Note =
            $crate::functions::manifest::<$transport>();

        /// The one exported function.
        #[allow(unsafe_code)]
        // SAFETY: the name belongs to the plugin interface, and no other symbol of this file has it.
        #[unsafe(no_mangle)]
        pub extern "C" fn portcullis_transport() -> *const $crate::table::Transport {
            $crate::functions::table::<$transport>()
        }
    };
}
