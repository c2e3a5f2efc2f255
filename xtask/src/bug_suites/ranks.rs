//! Parsers of ranks: those that execute the wrong lines of a program of the MPI Bugs Initiative, and those that messages name.

use std::collections::BTreeSet;

/// A set of ranks.
pub(super) type Ranks = BTreeSet<u32>;

/// The comment with which the suite marks a wrong line.
const MARK: &str = "MBIERROR";

/// A block in braces. `ranks` execute the block. `rest` execute neither the block nor an earlier
/// branch of the same `if` and `else` chain, so they may execute a later branch.
#[derive(Clone)]
struct Block {
    ranks: Ranks,
    rest: Ranks,
}

/// Returns, for each marked line that not all ranks execute, the ranks that execute it.
///
/// Evaluates the conditions `rank == NUMBER` (also several, joined by `||`) and `rank % 2`.
/// Any other condition counts as true in both branches.
pub(super) fn marked(source: &str, size: u32) -> Vec<Ranks> {
    let all: Ranks = (0..size).collect();
    let whole = Block {
        ranks: all.clone(),
        rest: all.clone(),
    };
    let mut blocks = vec![whole.clone()];
    let mut rest = all.clone();
    let mut found: Vec<Ranks> = Vec::new();
    let mut before = String::new();
    for letter in source.chars() {
        if !matches!(letter, '{' | '}' | ';') {
            before.push(letter);
            continue;
        }
        let now = blocks.last().unwrap_or(&whole).clone();
        if before.contains(MARK) && now.ranks != all && !found.contains(&now.ranks) {
            found.push(now.ranks.clone());
        }
        match letter {
            '{' => blocks.push(branch(&before, &now, &rest)),
            '}' if blocks.len() > 1 => rest = blocks.pop().map_or(all.clone(), |block| block.rest),
            _ => {}
        }
        before.clear();
    }
    found
}

/// Returns the block that begins after `text`, inside block `around`.
/// `rest` are the ranks that have executed no earlier branch of the `if` and `else` chain.
fn branch(text: &str, around: &Block, rest: &Ranks) -> Block {
    let head = text.rsplit(MARK).next().unwrap_or(text);
    let from = match head.contains("else") {
        true => rest,
        false => &around.ranks,
    };
    let Some(condition) = head.split("if").nth(1) else {
        return Block {
            ranks: from.clone(),
            rest: Ranks::new(),
        };
    };
    let words: String = condition.chars().filter(|c| !c.is_whitespace()).collect();
    let is_odd = words.contains("rank%2)");
    let numbers: Ranks = words
        .split("rank==")
        .skip(1)
        .filter_map(|after| {
            let digits = after.split(|c: char| !c.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok())
        })
        .collect();
    let ranks: Ranks = match (is_odd, numbers.is_empty()) {
        (true, _) => from.iter().copied().filter(|rank| rank % 2 == 1).collect(),
        (_, false) => from.intersection(&numbers).copied().collect(),
        _ => from.clone(),
    };
    let rest = from.difference(&ranks).copied().collect();
    Block { ranks, rest }
}

/// Returns the ranks that a text names: "rank 2", "ranks 0, 2-3".
pub(super) fn named(text: &str) -> Ranks {
    let mut found = Ranks::new();
    for after in text.split("rank").skip(1) {
        let (list, parts) = match after.strip_prefix('s') {
            Some(list) => (list, ", -"),
            None => (after, ""),
        };
        let Some(list) = list.strip_prefix(' ') else {
            continue;
        };
        let end = list.find(|c: char| !(c.is_ascii_digit() || parts.contains(c)));
        for item in list[..end.unwrap_or(list.len())].split(',') {
            let mut ends = item.trim().split('-').map(str::parse::<u32>);
            match (ends.next(), ends.next()) {
                (Some(Ok(first)), Some(Ok(last))) => found.extend(first..=last),
                (Some(Ok(rank)), None) => drop(found.insert(rank)),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(all: &[&[u32]]) -> Vec<Ranks> {
        let set = |ranks: &&[u32]| ranks.iter().copied().collect();
        all.iter().map(set).collect()
    }

    #[test]
    fn marked_lines_belong_to_the_ranks_of_their_branch() {
        let text = "int main() {\n for (int i = 0; i < 3; i++) { f(); }\n\
            if (rank == 0) {\n MPI_Irecv(); /* MBIERROR1 */\n MPI_Wait();\n}else if (rank==1 || rank == 2) {\n MPI_Send(); /* MBIERROR2 */\n }\n\
            else { MPI_Recv(); /* MBIERROR */ }\n g(); /* MBIERROR */\n }";
        assert_eq!(marked(text, 5), sets(&[&[0], &[1, 2], &[3, 4]]));
        let halves = "{ if (rank % 2) { a(); /* MBIERROR1 */ } else { b(); /* MBIERROR2 */ } }";
        assert_eq!(marked(halves, 4), sets(&[&[1, 3], &[0, 2]]));
        assert_eq!(
            marked("{ if (flag) { a(); /* MBIERROR */ } }", 4),
            sets(&[])
        );
    }

    #[test]
    fn ranks_are_found_in_sentences() {
        let text = "mpirun: ranks 0, 2-3 are in MPI_Finalize, which waits for rank 1, 4 bytes";
        let found: Vec<u32> = named(text).into_iter().collect();
        assert_eq!(found, [0, 1, 2, 3]);
        assert!(named("a rank of 4 was ranked").is_empty());
    }
}
