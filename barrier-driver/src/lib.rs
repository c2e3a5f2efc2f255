//! The toggle protocol over embedded-hal pins, and its ports
