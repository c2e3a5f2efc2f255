//! Plugins for Portcullis in safe Rust: collective components ([`coll`]) and transports ([`btl`]) in files of their own.
//!
//! A component implements [`coll::Guest`] and its modules [`coll::Module`], a transport implements [`btl::Transport`];
//! [`portcullis_component!`] and [`portcullis_transport!`] make a plugin file of the library package that contains them.
//! The package depends on nothing, least of all on the library: both sides know the C tables, which are generated from the headers
//! `portcullis/plugin.h` and `portcullis/transport.h`, and the manifest that each file begins with ([`manifest`]).

#![deny(unsafe_code)]

pub mod btl;
pub mod coll;
pub mod manifest;

/// Makes a plugin file of a collective component: its manifest and the one function that it exports.
#[macro_export]
macro_rules! portcullis_component {
    ($component:ty) => {
        /// The manifest, which is read before the file is opened.
        #[used]
        #[allow(unsafe_code)]
        // SAFETY: the section is that of plugins' manifests, and contains notes only.
        #[unsafe(link_section = ".note.portcullis")]
        static PORTCULLIS_MANIFEST: $crate::manifest::Note = $crate::coll::manifest::<$component>();

        /// The one exported function.
        #[allow(unsafe_code)]
        // SAFETY: the name belongs to the plugin interface, and no other symbol of this file has it.
        #[unsafe(no_mangle)]
        pub extern "C" fn portcullis_component() -> *const $crate::coll::abi::ComponentTable {
            const TABLE: $crate::coll::BuiltIn = $crate::coll::BuiltIn::of::<$component>();
            TABLE.as_ptr()
        }
    };
}

/// Makes a plugin file of a transport: its manifest and the one function that it exports.
#[macro_export]
macro_rules! portcullis_transport {
    ($transport:ty) => {
        /// The manifest, which is read before the file is opened.
        #[used]
        #[allow(unsafe_code)]
        // SAFETY: the section is that of plugins' manifests, and contains notes only.
        #[unsafe(link_section = ".note.portcullis")]
        static PORTCULLIS_MANIFEST: $crate::manifest::Note = $crate::btl::manifest::<$transport>();

        /// The one exported function.
        #[allow(unsafe_code)]
        // SAFETY: the name belongs to the plugin interface, and no other symbol of this file has it.
        #[unsafe(no_mangle)]
        pub extern "C" fn portcullis_transport() -> *const $crate::btl::abi::Transport {
            $crate::btl::table::<$transport>()
        }
    };
}
