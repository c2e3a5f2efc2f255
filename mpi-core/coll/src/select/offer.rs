//! Wire format of rank 0's offers to the members of a communicator: one entry per component.
//!
//! An entry has a header of four `u32`: priority, [`Entry::sets_up`], and the lengths of the name and of the config blob.
//! The name follows as text, then the component's config blob, which only the component interprets.

/// A component that rank 0 offers.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub priority: i32,
    /// True if the component has a collective set-up.
    pub sets_up: bool,
    pub name: &'a str,
    pub config: &'a [u8],
}

const NUMBER: usize = size_of::<u32>();
const HEAD: usize = 4 * NUMBER;

/// Appends an entry to `to`; `give` appends the component's config blob.
pub fn write(
    to: &mut Vec<u8>,
    (priority, sets_up, name): (i32, bool, &str),
    give: impl FnOnce(&mut Vec<u8>),
) {
    let head = to.len();
    let [priority, sets_up] = [priority, i32::from(sets_up)].map(i32::to_le_bytes);
    // The name and the config blob are short, so `u32` lengths suffice.
    // The length of the config blob is set after `give` has appended it.
    let name_len = (name.len() as u32).to_le_bytes();
    for number in [priority, sets_up, name_len, [0; NUMBER]] {
        to.extend(number);
    }
    to.extend(name.as_bytes());
    let before = to.len();
    give(to);
    let config_len = (to.len() - before) as u32;
    to[head + HEAD - NUMBER..head + HEAD].copy_from_slice(&config_len.to_le_bytes());
}

/// Iterates over the entries in order, up to the first incomplete entry.
pub fn read(mut from: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = from.split_first_chunk::<HEAD>()?;
        let numbers = head.as_chunks::<NUMBER>().0;
        let len = |at: usize| u32::from_le_bytes(numbers[at]) as usize;
        let (name, rest) = rest.split_at_checked(len(2))?;
        let (config, rest) = rest.split_at_checked(len(3))?;
        from = rest;
        Some(Entry {
            priority: i32::from_le_bytes(numbers[0]),
            sets_up: len(1) != 0,
            name: std::str::from_utf8(name).ok()?,
            config,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_half_an_entry_is_nothing() {
        let mut all = Vec::new();
        write(&mut all, (-7, true, "han"), |_| ());
        write(&mut all, (60, false, "shm"), |to| to.extend([1, 2, 3]));
        let han = Entry {
            priority: -7,
            sets_up: true,
            name: "han",
            config: &[],
        };
        let shm = Entry {
            priority: 60,
            sets_up: false,
            name: "shm",
            config: &[1, 2, 3],
        };
        assert_eq!(read(&all).collect::<Vec<_>>(), [han, shm]);
        for len in 0..all.len() {
            let whole = read(&all[..len]).count();
            assert_eq!(whole, usize::from(len >= HEAD + "han".len()));
        }
    }
}
