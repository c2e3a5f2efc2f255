//! The hardware barrier as a plugin file: `lib/portcullis/coll_hwbarr.so`.
//!
//! The library with the built-in component must not export the symbols of a plugin.
//! So the plugin file is a build of its own, for which cargo requires a package of its own.
#![deny(unsafe_code)]

portcullis_plugin::portcullis_component!(coll_hwbarr::HwBarr);
