//! Plugin files: the folders searched, the trust in files, their manifests, and their opening.
//!
//! A file is called `FRAMEWORK_COMPONENT.so`,
//! so the user's selection of components applies before a file is read.
//! Further checks follow in this order: owner and rights ([`trust`]); the manifest, which is read
//! without running code of the file ([`manifest`]);
//! then the file is opened ([`open`]), which runs its constructors.
//! Afterwards the framework checks the table that the file's entry point returns.

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
