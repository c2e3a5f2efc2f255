//! Writes the words and the slots of the library below.

use compat_generate::{families, root, standard, tables, write};

fn main() -> Result<(), String> {
    let tables = tables::read(&root(1)?)?;
    write("words.rs", &families::words(&tables))?;
    write("standard.rs", &standard::write(&tables))
}
