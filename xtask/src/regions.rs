//! Regions of source files whose lines are generated from a table of the repository.
//!
//! A region begins with a comment that contains `generated from TABLE: ` and the region's name.
//! The region ends with a comment that contains [`END`].
//! All lines between these comments are generated.

use std::path::Path;

/// The text in the last line of a region.
pub const END: &str = "end of the generated text";

/// Returns the text with which the first line of a region of this table begins, up to the region's name.
pub fn begin(table: &str) -> String {
    format!("generated from {table}: ")
}

/// The language of a file with regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust, with `//` comments.
    Rust,
    /// Verilog, with `//` comments.
    Verilog,
    /// VHDL, with `--` comments.
    Vhdl,
    /// Markdown, with HTML comments.
    Markdown,
}

impl Language {
    /// Returns the language of a file from its extension.
    pub fn of(file: &str) -> Option<Self> {
        Some(match Path::new(file).extension()?.to_str()? {
            "rs" => Self::Rust,
            "v" => Self::Verilog,
            "vhd" => Self::Vhdl,
            "md" => Self::Markdown,
            _ => return None,
        })
    }
}

/// Returns the text of a file with its regions of this table regenerated;
/// `lines_of` returns the generated lines of the region with a given name.
pub fn regenerated(
    table: &str,
    file: &str,
    text: &str,
    lines_of: impl Fn(&str) -> Option<Vec<String>>,
) -> Result<String, String> {
    let begin = begin(table);
    let mut out = String::with_capacity(text.len());
    let mut open = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fault = |what: String| format!("{file}:{number}: {what}");
        if line.contains(END) && open.take().is_none() {
            return Err(fault(format!("\"{END}\" ends no region")));
        }
        if open.is_none() {
            out.push_str(line);
            out.push('\n');
        }
        if let Some((before, name)) = line.split_once(&begin) {
            if let Some(first) = open {
                return Err(fault(format!(
                    "the region that begins at line {first} has no end before this one"
                )));
            }
            let name = name.trim_end_matches("-->").trim();
            let lines =
                lines_of(name).ok_or_else(|| fault(format!("no region is named {name}")))?;
            let indent = &before[..before.len() - before.trim_start().len()];
            for generated in lines {
                let indent = if generated.is_empty() { "" } else { indent };
                out.push_str(&format!("{indent}{generated}\n"));
            }
            open = Some(number);
        }
    }
    match open {
        None => Ok(out),
        Some(first) => Err(format!(
            "{file}:{first}: this region has no line \"{END}\" after it"
        )),
    }
}

/// Pads the first text of each pair, so that all second texts start in one column.
pub fn aligned(lines: Vec<(String, String)>) -> Vec<String> {
    let width = lines.iter().map(|(first, _)| first.len()).max();
    let width = width.unwrap_or(0);
    let line = |(first, second)| format!("{first:width$} {second}");
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "generated from t.txt: ";

    fn regions(text: &str) -> Result<String, String> {
        regenerated("t.txt", "a.v", text, |name| {
            (name == "version").then(|| vec!["new".to_owned()])
        })
    }

    #[test]
    fn only_regions_are_replaced() {
        let text = format!("first\n  // {BEGIN}version\nold\nolder\n  // {END}\nlast\n");
        let expected = format!("first\n  // {BEGIN}version\n  new\n  // {END}\nlast\n");
        assert_eq!(regions(&text), Ok(expected.clone()));
        assert_eq!(regions(&expected), Ok(expected));
    }

    #[test]
    fn a_region_without_an_end_or_a_name_is_refused() {
        for (text, place) in [
            (
                format!("// {BEGIN}version\n"),
                "a.v:1: this region has no line",
            ),
            (
                format!("// {BEGIN}version\n// {BEGIN}version\n"),
                "a.v:2: the region that begins at line 1",
            ),
            (format!("\n// {END}\n"), "a.v:2: "),
            (
                format!("// {BEGIN}sizes\n"),
                "a.v:1: no region is named sizes",
            ),
        ] {
            let refusal = regions(&text).expect_err(&text);
            assert!(refusal.starts_with(place), "{refusal}");
        }
    }
}
