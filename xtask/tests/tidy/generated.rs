//! The regions that `cargo xtask gen` writes from the description of the serial frames are what it would write now.

use super::{read, root};
use xtask::frames::{self, BEGIN, FILES};

#[test]
fn the_serial_frames_are_everywhere_as_their_description_says() {
    let format = frames::format().expect("a description");
    for file in FILES {
        let text = read(&root().join(file));
        assert!(text.contains(BEGIN), "{file} has no generated region");
        let fresh = frames::regenerated(&format, file, &text).expect("regions");
        let differs = |(_, (old, new)): &(usize, (&str, &str))| old != new;
        let first = (1..).zip(text.lines().zip(fresh.lines())).find(differs);
        assert!(
            fresh == text,
            "{file} is not what {} describes, first at {first:?}; `cargo xtask gen` writes it",
            frames::TABLE
        );
    }
}
