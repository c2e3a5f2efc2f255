//! Parser of message sizes on the command line.

/// Message sizes in bytes, in order of measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&words.join(","))
    }
}

pub fn parse_sizes(text: &str) -> Result<Sizes, String> {
    if let Some((first, last)) = text.split_once(':') {
        let (first, last) = (parse_size(first)?, parse_size(last)?);
        if first > last {
            return Err(format!("the range {text} ends before it begins"));
        }
        return Ok(powers_of_two(first, last));
    }
    text.split(',')
        .map(parse_size)
        .collect::<Result<_, _>>()
        .map(Sizes)
}

/// Returns `first` and its doublings up to `last`; after a `first` of 0 the doublings begin with 1.
pub fn powers_of_two(first: usize, last: usize) -> Sizes {
    let next = |&size: &usize| {
        if size == 0 {
            Some(1)
        } else {
            size.checked_mul(2)
        }
    };
    Sizes(
        std::iter::successors(Some(first), next)
            .take_while(|&s| s <= last)
            .collect(),
    )
}

fn parse_size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let (digits, unit) = match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1 << 10),
        Some('m' | 'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let size: usize = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a size such as 8, 64K or 4M"))?;
    // MPI functions take counts as a C int.
    size.checked_mul(unit)
        .filter(|&s| i32::try_from(s).is_ok())
        .ok_or_else(|| format!("{text} is more than an MPI count of type int can hold"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_the_powers_of_two_up_to_its_end() {
        assert_eq!(parse_sizes("1:10").unwrap(), Sizes(vec![1, 2, 4, 8]));
        assert_eq!(parse_sizes("0:2").unwrap(), Sizes(vec![0, 1, 2]));
    }

    #[test]
    fn a_list_keeps_its_order_and_understands_units() {
        assert_eq!(
            parse_sizes("64K,8,4M").unwrap(),
            Sizes(vec![65536, 8, 4 << 20])
        );
    }

    #[test]
    fn what_is_no_size_is_refused_with_a_sentence() {
        assert!(parse_sizes("8,x").unwrap_err().contains("not a size"));
        assert!(parse_sizes("4096M").unwrap_err().contains("MPI count"));
        assert!(parse_sizes("8:4").unwrap_err().contains("ends before"));
        assert!(parse_sizes("").is_err());
    }
}
