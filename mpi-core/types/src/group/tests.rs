//! Tests of groups against the standard: ranks, set operations and ranges.

use super::*;

fn group(procs: &[ProcId]) -> Group {
    Group::from_procs(procs.to_vec())
}

#[test]
fn a_consecutive_list_and_a_range_are_the_same_group() {
    assert_eq!(
        group(&[3, 4, 5]).compare(&Group::range(3, 3)),
        Comparison::Identical
    );
}

#[test]
fn ranks_and_processes_translate_both_ways() {
    let g = group(&[7, 2, 9]);
    for (rank, proc) in [(0, 7), (1, 2), (2, 9)] {
        assert_eq!(g.proc(rank), Some(proc));
        assert_eq!(g.rank_of(proc), Some(rank));
    }
    assert_eq!(g.rank_of(3), None);
    assert_eq!(g.proc(3), None);
}

#[test]
fn set_operations_keep_the_order_the_standard_gives() {
    let (a, b) = (group(&[5, 1, 3]), group(&[3, 4, 5]));
    assert_eq!(a.union(&b).iter().collect::<Vec<_>>(), [5, 1, 3, 4]);
    assert_eq!(a.intersection(&b).iter().collect::<Vec<_>>(), [5, 3]);
    assert_eq!(a.difference(&b).iter().collect::<Vec<_>>(), [1]);
    assert_eq!(a.compare(&group(&[1, 3, 5])), Comparison::Similar);
    assert_eq!(a.compare(&b), Comparison::Unequal);
}

#[test]
fn ranges_run_both_ways_and_refuse_to_run_away() {
    let g = Group::range(0, 10);
    assert_eq!(
        g.expand(&[(1, 6, 2), (9, 7, -1)]),
        Ok(vec![1, 3, 5, 9, 8, 7])
    );
    assert_eq!(
        g.expand(&[(0, 3, 0)]),
        Err(GroupError::Range {
            position: 0,
            first: 0,
            last: 3,
            stride: 0
        })
    );
    assert_eq!(
        g.expand(&[(0, 10, 1)]),
        Err(GroupError::Rank {
            position: 0,
            rank: 10,
            size: 10
        })
    );
}

#[test]
fn a_rank_named_twice_is_refused() {
    let g = Group::range(0, 4);
    assert_eq!(
        g.include(&[1, 2, 1]).err(),
        Some(GroupError::Twice {
            rank: 1,
            first: 0,
            second: 2
        })
    );
    assert_eq!(
        g.exclude(&[0, 3]).map(|g| g.iter().collect::<Vec<_>>()),
        Ok(vec![1, 2])
    );
}

#[test]
fn the_first_member_outside_another_group_is_found() {
    let all = Group::range(2, 4);
    assert_eq!(all.outsider(&all), None);
    assert_eq!(group(&[5, 2]).outsider(&all), None);
    assert_eq!(Group::empty().outsider(&all), None);
    assert_eq!(group(&[5, 7, 1]).outsider(&all), Some((1, 7)));
    assert_eq!(all.outsider(&group(&[3, 2])), Some((2, 4)));
}
