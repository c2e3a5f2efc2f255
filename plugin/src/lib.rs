//! Plugins for Portcullis in safe Rust: collective components ([`coll`]) and transports ([`btl`]).
//!
//! A component implements [`coll::Guest`] and [`coll::Module`], a transport [`btl::Transport`].
//! [`portcullis_component!`] and [`portcullis_transport!`] turn a package into a plugin file.
//! This package has no dependencies. Its C tables are generated from the headers
//! `portcullis/plugin.h` and `portcullis/transport.h`. Each plugin has a manifest ([`manifest`]).

#![deny(unsafe_code)]

pub mod btl;
pub mod coll;
pub mod manifest;

/// Defines the manifest and the exported function of a plugin with a collective component.
#[macro_export]
macro_rules! portcullis_component {
    ($component:ty) => {
        /// The manifest of this plugin, which the library reads before it opens the file.
        #[used]
        #[allow(unsafe_code)]
        // SAFETY: the section `.note.portcullis` contains manifests only, which are notes.
        #[unsafe(link_section = ".note.portcullis")]
        static PORTCULLIS_MANIFEST: $crate::manifest::Note = $crate::coll::manifest::<$component>();

        /// Returns the component's table; the only exported function of the plugin.
        #[allow(unsafe_code)]
        // SAFETY: the plugin interface reserves this name, and no other symbol of this file has it.
        #[unsafe(no_mangle)]
        pub extern "C" fn portcullis_component() -> *const $crate::coll::abi::ComponentTable {
            const TABLE: $crate::coll::BuiltIn = $crate::coll::BuiltIn::of::<$component>();
            TABLE.as_ptr()
        }
    };
}

/// Defines the manifest and the exported function of a plugin with a transport.
#[macro_export]
macro_rules! portcullis_transport {
    ($transport:ty) => {
        /// The manifest of this plugin, which the library reads before it opens the file.
        #[used]
        #[allow(unsafe_code)]
        // SAFETY: the section `.note.portcullis` contains manifests only, which are notes.
        #[unsafe(link_section = ".note.portcullis")]
        static PORTCULLIS_MANIFEST: $crate::manifest::Note = $crate::btl::manifest::<$transport>();

        /// Returns the transport's table; the only exported function of the plugin.
        #[allow(unsafe_code)]
        // SAFETY: the plugin interface reserves this name, and no other symbol of this file has it.
        #[unsafe(no_mangle)]
        pub extern "C" fn portcullis_transport() -> *const $crate::btl::abi::Transport {
            $crate::btl::table::<$transport>()
        }
    };
}
