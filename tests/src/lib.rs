//! Suites and real programs that hold Portcullis to its claims
