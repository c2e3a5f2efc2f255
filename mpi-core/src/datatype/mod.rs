//! Datatypes: one engine, no components.
