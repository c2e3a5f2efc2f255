//! Writes a mock of the library below and the calls that check it: to come.

use crate::entries::Served;
use crate::families::Which;
use crate::tables::Tables;

pub fn write(_tables: &Tables, _which: Which, _served: &Served) -> Result<String, String> {
    Ok(String::new())
}
