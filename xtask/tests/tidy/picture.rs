//! Test of the import graph inside each package: in its levels, imports must lead to lower levels.
//!
//! The nodes of the graph are the files and folders directly below `src`.
//!
//! An edge exists if one node imports another; several such imports are one edge.
//! The levels are built from the lowest up. The next node is one that imports no remaining node;
//! if there is none, it is the remaining node with the maximum of `importers - 2 * imports`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{circles, crate_roots, name};

/// The permitted numbers of upward edges by package; none of these edges belongs to a cycle of files.
const UP: &[(&str, usize)] = &[
    ("mpi-abi/src/lib.rs", 3),
    ("mpi-core/coll/src/lib.rs", 1),
    ("mpi-core/engine/src/lib.rs", 3),
    ("mpi-core/p2p/src/lib.rs", 2),
    ("mpi-core/transport/src/lib.rs", 2),
];

/// The size of one package's import graph (nodes, levels, edges), and its upward edges.
#[derive(Debug, PartialEq, Eq)]
struct Picture {
    rooms: usize,
    floors: usize,
    arrows: usize,
    up: Vec<(String, String)>,
}

/// Returns the node of a file: its first path component below `src`.
fn room(source: &Path, file: &Path) -> Option<String> {
    let inside = file.strip_prefix(source).ok()?;
    let first = inside.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

fn picture(arrows: &BTreeSet<(String, String)>) -> Picture {
    let rooms: BTreeSet<&String> = arrows.iter().flat_map(|(from, to)| [from, to]).collect();
    let mut left = rooms.clone();
    let mut floor: BTreeMap<&String, usize> = BTreeMap::new();
    let mut up = Vec::new();
    while !left.is_empty() {
        let out = |room: &String| {
            let imports = arrows.iter();
            imports
                .filter(|(from, to)| from == room && left.contains(to))
                .count()
        };
        let into = |room: &String| {
            let imports = arrows.iter();
            imports
                .filter(|(from, to)| to == room && left.contains(from))
                .count()
        };
        let lowest = left.iter().copied().max_by_key(|room| {
            let (out, into) = (out(room), into(room));
            (out == 0, into as i64 - 2 * out as i64)
        });
        let lowest = lowest.expect("rooms are left");
        left.remove(lowest);
        let imported = arrows.iter().filter(|(from, _)| from == lowest);
        let mut height = 0;
        for (_, to) in imported {
            match floor.get(to) {
                Some(below) => height = height.max(below + 1),
                None => up.push((lowest.clone(), to.clone())),
            }
        }
        floor.insert(lowest, height);
    }
    Picture {
        rooms: rooms.len(),
        floors: floor.values().max().map_or(0, |highest| highest + 1),
        arrows: arrows.len(),
        up,
    }
}

/// Returns the edges between the nodes of a crate; the crate root is not a node.
fn arrows(root: &Path) -> BTreeSet<(String, String)> {
    let source = root.parent().expect("a crate root lies in a folder");
    let between = |from: &PathBuf, to: &PathBuf| {
        let rooms = (room(source, from)?, room(source, to)?);
        let is_root = |file: &PathBuf| file == root;
        (rooms.0 != rooms.1 && !is_root(from) && !is_root(to)).then_some(rooms)
    };
    let imports = circles::imports(root);
    imports
        .iter()
        .filter_map(|(from, to, _)| between(from, to))
        .collect()
}

/// Prints these measures; to see them, run `cargo test -p xtask --test tidy picture -- --nocapture`.
#[test]
fn imports_between_the_rooms_of_a_package_lead_down() {
    let mut wrong = Vec::new();
    for root in crate_roots() {
        let picture = picture(&arrows(&root));
        let package = name(&root);
        if picture.arrows > 0 {
            println!(
                "{package}: {} rooms, {} floors, {} arrows, {} up",
                picture.rooms,
                picture.floors,
                picture.arrows,
                picture.up.len()
            );
        }
        let known = UP.iter().find(|(known, _)| *known == package);
        let most = known.map_or(0, |(_, most)| *most);
        if picture.up.len() != most {
            wrong.push(format!("{package}: {most}, and now {:?}", picture.up));
        }
    }
    assert!(
        wrong.is_empty(),
        "imports that lead up; fewer lower the number in the list, and more are not allowed:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn an_arrow_up_is_found() {
    let arrows = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")];
    let arrows = arrows.map(|(from, to)| (from.to_owned(), to.to_owned()));
    let picture = picture(&arrows.into_iter().collect());
    assert_eq!((picture.rooms, picture.arrows, picture.up.len()), (3, 4, 1));
    let straight = [("a".to_owned(), "b".to_owned())];
    assert!(super::picture::picture(&straight.into()).up.is_empty());
}
