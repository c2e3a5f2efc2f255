//! Parser of the tables `functions.txt`, `extensions.txt` and `constants.txt`.

use super::prototype::{Function, Param, parse_prototype};

/// A chapter of the standard, or a group of extensions.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// The number of the chapter in the standard. Groups of extensions have numbers of their own.
    pub number: u32,
    /// The title above the chapter's functions in `mpi.h`.
    pub title: String,
}

/// A parsed table of functions, `functions.txt` or `extensions.txt`.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// The chapters, in the order of the table.
    pub chapters: Vec<Chapter>,
    /// The functions, in the order of the table.
    /// A large-count function `MPI_X_c` follows its variant `MPI_X` with `int` counts.
    pub functions: Vec<Function>,
}

/// The kind of declarations in a section of `constants.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integer types, such as `MPI_Aint`.
    Typedef,
    /// One C structure. Each line of the section declares a field.
    Struct,
    /// A handle type and its predefined values.
    Handle,
    /// The values of an enumeration.
    Enum,
    /// Constants of the section's C type.
    Define,
    /// Function types, such as `MPI_User_function`.
    Callback,
    /// Additional names of function types.
    Alias,
}

/// A section of `constants.txt`.
#[derive(Clone, Debug)]
pub struct Section {
    /// The kind of the declarations.
    pub kind: Kind,
    /// The C type of the section's constants or handles; empty if the section has none.
    pub ctype: String,
    /// The title above the section's declarations in `mpi.h`.
    pub title: String,
    /// The declarations, one per line of the section.
    pub items: Vec<Item>,
}

/// A line of a section: `name value -- note`, or a C declaration in `value`.
#[derive(Clone, Debug)]
pub struct Item {
    /// The declared name.
    pub name: String,
    /// A number, the name of another constant, or a C declaration.
    pub value: String,
    /// The text after ` -- `.
    pub note: Option<String>,
}

impl Item {
    /// Returns the numeric value of a constant, or `None` for an alias or a declaration.
    pub fn number(&self) -> Option<i64> {
        number(&self.value)
    }
}

/// Parses a decimal number, or a hexadecimal number after `0x`.
pub fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Iterates over the lines of a table without comments and blank lines, numbered from 1.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.trim()))
        .filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
}

/// Parses a table of functions.
pub fn functions(text: &str) -> Result<Functions, String> {
    let mut table = Functions::default();
    for (at, line) in lines(text) {
        if let Some(head) = line.strip_prefix("== ") {
            let (number, title) = head
                .split_once(' ')
                .ok_or_else(|| format!("line {at}: a chapter needs a number and a title"))?;
            let number = number
                .parse()
                .map_err(|_| format!("line {at}: `{number}` is not a chapter number"))?;
            table.chapters.push(Chapter {
                number,
                title: title.to_string(),
            });
            continue;
        }
        let chapter = table
            .chapters
            .len()
            .checked_sub(1)
            .ok_or_else(|| format!("line {at}: a function before the first chapter"))?;
        let (since, rest) = line
            .split_once(' ')
            .ok_or_else(|| format!("line {at}: a function needs a version and a prototype"))?;
        let mut parts = rest.split(" ; ");
        let prototype = parts.next().unwrap_or_default();
        let (returns, name, mut params) =
            parse_prototype(prototype).ok_or_else(|| format!("line {at}: not a C prototype"))?;
        let mut deprecated = None;
        for mark in parts {
            match mark.split_once(' ') {
                Some(("deprecated", version)) => deprecated = Some(version.to_string()),
                Some((kind, names)) => argument_mark(kind, names, &mut params)
                    .map_err(|e| format!("line {at}: {e}"))?,
                _ => return Err(format!("line {at}: unknown mark `{mark}`")),
            }
        }
        table.functions.push(Function {
            name,
            chapter,
            since: since.to_string(),
            deprecated,
            returns,
            params,
        });
    }
    Ok(table)
}

/// Applies an annotation of `functions.txt`, such as `inout request`, to `params`:
/// `kind` is `inout`, `names` is `request`. The C prototype does not express these properties.
fn argument_mark(kind: &str, names: &str, params: &mut [Param]) -> Result<(), String> {
    let mut change = |name: &str, set: &dyn Fn(&mut Param)| {
        let param = params.iter_mut().find(|p| p.name == name);
        param
            .map(set)
            .ok_or_else(|| format!("no parameter `{name}`"))
    };
    let two = || {
        let (first, rest) = names.split_once(' ').unwrap_or((names, ""));
        (first, rest.split(' '))
    };
    match kind {
        "inout" => change(names, &|p| p.inout = true),
        "pointer" => change(names, &|p| p.is_pointer_address = true),
        "length" => {
            let (length, mut arrays) = two();
            arrays.try_for_each(|array| change(array, &|p| p.length = length.to_string()))
        }
        "text" => {
            let (text, mut lengths) = two();
            lengths.try_for_each(|length| {
                change(length, &|_| {})?;
                change(text, &|p| p.length_behind = length.to_string())
            })
        }
        _ => Err(format!("unknown mark `{kind} {names}`")),
    }
}

/// Parses a table of constants.
pub fn constants(text: &str) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    for (at, line) in lines(text) {
        if let Some(head) = line.strip_prefix("== ") {
            let (kind, title) = head
                .split_once(" : ")
                .ok_or_else(|| format!("line {at}: a section needs ` : ` and a title"))?;
            let (kind, ctype) = kind.split_once(' ').unwrap_or((kind, ""));
            let kind = match kind {
                "typedef" => Kind::Typedef,
                "struct" => Kind::Struct,
                "handle" => Kind::Handle,
                "enum" => Kind::Enum,
                "define" => Kind::Define,
                "callback" => Kind::Callback,
                "alias" => Kind::Alias,
                _ => return Err(format!("line {at}: unknown kind of section `{kind}`")),
            };
            sections.push(Section {
                kind,
                ctype: ctype.to_string(),
                title: title.to_string(),
                items: Vec::new(),
            });
            continue;
        }
        let section = sections
            .last_mut()
            .ok_or_else(|| format!("line {at}: an item before the first section"))?;
        let (text, note) = match line.split_once(" -- ") {
            Some((text, note)) => (text.trim(), Some(note.to_string())),
            None => (line, None),
        };
        let item = match section.kind {
            Kind::Callback => parse_prototype(text).map(|(_, name, _)| (name, text.to_string())),
            Kind::Struct => text
                .rsplit_once(' ')
                .map(|(_, field)| (field.to_string(), text.to_string())),
            _ => text
                .split_once(char::is_whitespace)
                .map(|(name, value)| (name.to_string(), value.trim().to_string())),
        };
        let (name, value) = item.ok_or_else(|| format!("line {at}: `{text}` has no value"))?;
        section.items.push(Item { name, value, note });
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_table_is_refused_with_its_line() {
        let of_functions = [
            ("1.0 int MPI_X(int a)", "line 1: a function before"),
            ("== 3 P\n\n# text\n1.0 int MPI_X", "line 4: not a C proto"),
            ("== 3 P\n1.0 int MPI_X(int a) ; inout b", "line 2: no param"),
            (
                "== 3 P\n1.0 int MPI_X(int a) ; odd a",
                "line 2: unknown mark",
            ),
            (
                "== 3 P\n1.0 int MPI_X(int n, const int a[]) ; length n b",
                "line 2: no param",
            ),
            (
                "== 3 P\n1.0 int MPI_X(char *a, int *n) ; text a m",
                "line 2: no param",
            ),
            ("== three P", "line 1: `three` is not"),
        ];
        for (text, start) in of_functions {
            let error = functions(text).expect_err(text);
            assert!(error.starts_with(start), "{text}: {error}");
        }
        let of_constants = [
            ("MPI_X 1", "line 1: an item before"),
            ("== enum Title", "line 1: a section needs"),
            ("== odd : Title", "line 1: unknown kind"),
            (
                "== define int : Title\nMPI_X",
                "line 2: `MPI_X` has no value",
            ),
        ];
        for (text, start) in of_constants {
            let error = constants(text).expect_err(text);
            assert!(error.starts_with(start), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("-32766"), Some(-32766));
        assert_eq!(number("0x101"), Some(257));
        assert_eq!(number("MPI_X"), None);
    }
}
