//! Generator of the manual pages of the MPI functions (section 3) from the tables of `mpi-abi/api`.
//!
//! `functions.txt` contains the prototypes, and `meanings.txt` a sentence per function.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mpi_api_tables::{Function, Functions};

/// The folder of the pages in an installation.
pub const FOLDER: &str = "share/man/man3";

/// The maximum width of a line in a synopsis.
const WIDTH: usize = 78;

/// A manual page.
#[derive(Debug)]
pub struct Page {
    /// The name of the file, such as `MPI_Send.3`.
    pub file: String,
    /// The text of the page in groff's `man` macros.
    pub text: String,
}

/// Returns the pages of all functions.
/// An error names a function without a sentence, or a sentence without a function.
pub fn pages() -> Result<Vec<Page>, String> {
    let functions = mpi_api_tables::functions()?;
    let meanings = meanings(mpi_api_tables::MEANINGS)?;
    for name in meanings.keys() {
        if !functions.functions.iter().any(|f| f.name == *name) {
            return Err(format!("meanings.txt: there is no function {name}"));
        }
    }
    let page = |function: &Function| {
        let meaning = meanings
            .get(without_c(&function.name))
            .ok_or_else(|| format!("meanings.txt has no sentence for {}", function.name))?;
        Ok(Page {
            file: format!("{}.3", function.name),
            text: page(function, &functions, meaning),
        })
    };
    functions.functions.iter().map(page).collect()
}

fn meanings(text: &str) -> Result<BTreeMap<&str, &str>, String> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, meaning) = line
            .split_once(" | ")
            .ok_or_else(|| format!("meanings.txt: not NAME | SENTENCE: {line}"))?;
        if found.insert(name, meaning).is_some() {
            return Err(format!("meanings.txt has two sentences for {name}"));
        }
    }
    Ok(found)
}

/// Returns the name of the small-count function, without `_c`.
fn without_c(name: &str) -> &str {
    name.strip_suffix("_c").unwrap_or(name)
}

fn page(function: &Function, all: &Functions, meaning: &str) -> String {
    let name = &function.name;
    let version = env!("CARGO_PKG_VERSION");
    let is_large = without_c(name) != name;
    let counts = if is_large {
        ", with counts of type MPI_Count"
    } else {
        ""
    };
    let mut page = format!(
        ".TH {name} 3 \"\" \"Portcullis {version}\" \"MPI 5.0\"\n\
         .SH NAME\n{name} \\- {}{counts}\n\
         .SH SYNOPSIS\n.nf\n#include <mpi.h>\n\n{}.fi\n\
         .SH DESCRIPTION\n{}.\n",
        escaped(meaning),
        escaped(&synopsis(function)),
        escaped(&capitalized(meaning)),
    );
    if is_large {
        let small = without_c(name);
        let _ = writeln!(
            page,
            ".PP\nThe function does what\n.BR {small} (3)\ndoes, with counts and displacements that may exceed the range of int."
        );
    }
    if let Some(since) = &function.deprecated {
        let _ = writeln!(page, ".PP\nThe function is deprecated since MPI {since}.");
    }
    let _ = write!(page, ".SH RETURN VALUE\n{}\n", returned(function));
    let chapter = &all.chapters[function.chapter];
    let _ = write!(
        page,
        ".SH STANDARDS\nMPI 5.0, chapter {}, {}.\nThe function has been in the standard since MPI {}.\n",
        chapter.number,
        escaped(&chapter.title),
        function.since
    );
    let _ = write!(page, ".SH SEE ALSO\n{}", neighbours(function, all));
    page
}

/// Returns the C prototype, with line breaks so that no line exceeds `WIDTH`.
fn synopsis(function: &Function) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in function.prototype(&function.name) {
        if !line.is_empty() && line.len() + word.trim_end().len() > WIDTH {
            lines += line.trim_end();
            lines.push('\n');
            line = "    ".to_string();
        }
        line += &word;
    }
    lines + &line + "\n"
}

/// Returns the description of the function's return value.
fn returned(function: &Function) -> &'static str {
    let has = |base: &str| {
        function
            .params
            .iter()
            .any(|p| p.by_value() && p.base == base)
    };
    if function.returns_value() {
        "The result; the function has no error code."
    } else if function.is_tool() {
        "MPI_SUCCESS, or an error code of the tool interface.\nNo error handler is called."
    } else if has("MPI_File") || function.name.starts_with("MPI_File_") {
        "MPI_SUCCESS, or an error code after the error handler of the file has been called; by default it returns.\n\
         A file that is not open has the error handler of MPI_FILE_NULL.\nMPI_Error_string gives the text of a code."
    } else if has("MPI_Win") {
        "MPI_SUCCESS, or an error code after the error handler of the window has been called; by default it ends the job.\n\
         MPI_Error_string gives the text of a code."
    } else if has("MPI_Comm") {
        "MPI_SUCCESS, or an error code after the error handler of the communicator has been called; by default it ends the job.\n\
         MPI_Error_string gives the text of a code."
    } else {
        "MPI_SUCCESS, or an error code after the error handler of the object that the call concerns, or else of MPI_COMM_SELF, \
         has been called; by default it ends the job.\nMPI_Error_string gives the text of a code."
    }
}

/// Returns the references to other functions of the same chapter;
/// a function with large counts is described on the page of the function with small counts.
fn neighbours(function: &Function, all: &Functions) -> String {
    let twin = match without_c(&function.name) {
        name if name == function.name => format!("{name}_c"),
        name => name.to_string(),
    };
    let is_meant = |other: &&Function| {
        let is_base = without_c(&other.name) == other.name;
        other.name == twin
            || (other.chapter == function.chapter && is_base && other.name != function.name)
    };
    let others = all.functions.iter().filter(is_meant);
    let mut text: String = others
        .map(|other| format!(".BR {} (3),\n", other.name))
        .collect();
    text += ".BR mpicc (1),\n.BR mpirun (1)\n";
    text
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Escapes a text, so that groff interprets none of it as a request or an escape.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_string(),
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_page_and_a_sentence_of_its_own() {
        let pages = pages().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            pages.len(),
            mpi_api_tables::functions().unwrap().functions.len()
        );
        let text = mpi_api_tables::MEANINGS;
        let meanings = meanings(text).unwrap();
        for (name, meaning) in &meanings {
            let first = meaning.chars().next();
            assert!(
                first.is_some_and(char::is_lowercase) && !meaning.ends_with('.'),
                "{name}: {meaning}"
            );
            assert!(meaning.len() <= 120, "{name}: {meaning}");
        }
        let different: std::collections::BTreeSet<_> = meanings.values().collect();
        assert_eq!(
            different.len(),
            meanings.len(),
            "a sentence for two functions"
        );
    }

    #[test]
    fn a_sentence_without_a_function_and_a_second_one_are_refused() {
        assert!(meanings("MPI_X | do it\nMPI_X | do it again").is_err());
        assert!(meanings("MPI_X do it").is_err());
    }

    #[test]
    fn the_page_of_a_function_says_what_it_does_and_returns() {
        let pages = pages().unwrap();
        let page = pages.iter().find(|page| page.file == "MPI_Send_c.3");
        insta::assert_snapshot!(page.unwrap().text);
    }
}
