//! Build script: generates the conversions to Open MPI's ABI and all exported functions.

use compat_generate::direction::Below;
use compat_generate::entries;
use compat_generate::families::{self, Which};
use compat_generate::{by_hand, mock, root, tables, write};

fn main() -> Result<(), String> {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let root = root(3)?;
    let tables = tables::read(&root)?;
    let words = families::word_functions(&tables, Which::OpenMpi, Below::Foreign);
    write("words.rs", &words)?;
    write("handles.rs", &families::openmpi_symbols(&tables))?;
    let by_hand = by_hand(&root, Below::Foreign)?;
    let (text, served) = entries::write(&tables, Below::Foreign, &by_hand)?;
    write("entries.rs", &text)?;
    write("served.rs", &served.write())?;
    let mock = mock::write(&tables, Which::OpenMpi, Below::Foreign, &served)?;
    write("mock.rs", &mock)
}
