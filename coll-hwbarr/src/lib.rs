//! The hardware barrier as a collective component, built in and loadable
