//! The MPI engine: frameworks and components
