//! Tests of `Shape::in_one_run`: its result agrees with the runs of the walk,
//! and it finds every fragment of a long run.

use proptest::prelude::*;

use super::super::walk::Runs;
use super::nested;
use crate::datatype::{Datatype, Named};

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_range_is_in_one_run_where_the_walk_says_so(both in nested(), count in 1i64..5, at in 0i64..4000, len in 1i64..20) {
        let t = &both.datatype;
        t.commit().unwrap();
        let shape = t.shape(count);
        prop_assume!(shape.total > 0);
        let from = at % shape.total;
        let range = from..(from + len).min(shape.total);
        if let Some(offset) = shape.in_one_run(&range) {
            let runs: Vec<_> = Runs::new(shape, range.clone()).map(|run| (run.offset, run.len)).collect();
            prop_assert_eq!(runs, [(offset, range.end - range.start)]);
        }
    }
}

#[test]
fn every_fragment_of_a_long_run_is_found() {
    let t = Datatype::hvector(4, 1000, 3000, &Named::BYTE.into()).unwrap();
    t.commit().unwrap();
    let shape = t.shape(2);
    for run in 0..8 {
        for (at, len) in [(0, 1000), (0, 1), (999, 1), (250, 500), (500, 500)] {
            let range = run * 1000 + at..run * 1000 + at + len;
            let offset = run / 4 * t.extent() + run % 4 * 3000 + at;
            assert_eq!(shape.in_one_run(&range), Some(offset), "{range:?}");
        }
        assert_eq!(shape.in_one_run(&(run * 1000 + 1..run * 1000 + 1001)), None);
    }
}
