//! The hardware barrier as a plugin file: `lib/portcullis/coll_hwbarr.so`.
//!
//! A separate package: the library with the built-in component must not export a plugin's symbol,
//! and cargo requires two names for the two builds.
#![deny(unsafe_code)]

portcullis_plugin::portcullis_component!(coll_hwbarr::HwBarr);
