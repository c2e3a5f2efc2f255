//! Plugin files: the folders that are searched, the files that are trusted, their manifests, and how they are opened.
//!
//! A file is called `FRAMEWORK_COMPONENT.so`, so a selection of components decides before a file is read.
//! The other checks follow in this order: owner and rights ([`trust`]), the manifest, which is read from the file without running it ([`manifest`]),
//! and then the file is opened ([`open`]), which runs its constructors.
//! A framework checks the table that the file's entry point returns.

pub mod escape;
pub mod folders;
pub mod inside;
pub mod manifest;
pub mod open;
pub mod trust;

pub use escape::{Called, Owner, called, guarded};
pub use folders::{Folder, PATH};
pub use inside::reported;
pub use manifest::{Manifest, ManifestError};
pub use open::OpenError;
pub use trust::{Trust, Untrusted};
