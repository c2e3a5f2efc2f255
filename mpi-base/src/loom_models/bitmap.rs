//! A model of the bitmap alone, without an inbox.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::bitmap::Bitmap;

/// SYNC POINT bitmap.word: each bit that is set is taken exactly one time.
#[test]
fn every_mark_is_taken_once() {
    check(|| {
        let map = Arc::new(Bitmap::new());
        let markers: Vec<_> = (0..2)
            .map(|i| {
                let map = Arc::clone(&map);
                thread::spawn(move || map.mark(i))
            })
            .collect();
        let early = map.take(0);
        for marker in markers {
            marker.join().unwrap();
        }
        let late = map.take(0);
        assert_eq!((early & late, early | late), (0, 3));
    });
}
