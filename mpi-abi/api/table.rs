//! Parser of `functions.txt` and `constants.txt`, which describe the MPI 5.0 C interface.
//!
//! The build script generates the exported symbols from them, `cargo xtask gen` writes `mpi.h`, and the tests compare both with them.
//! The formats are described at the head of the two text files.
//! This module uses only `std`, because a build script, a test and `xtask` each include it by path.

/// A function of the C interface.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// The chapter of the standard, an index into [`Functions::chapters`].
    pub chapter: usize,
    /// The version of the standard that introduced it.
    pub since: String,
    pub deprecated: Option<String>,
    /// The C type it returns.
    pub returns: String,
    pub params: Vec<Param>,
}

impl Function {
    /// Returns true if the returned value is the result itself; all other functions return an error code.
    pub fn returns_value(&self) -> bool {
        self.returns != "int" || self.name.ends_with("_toint")
    }

    /// Returns true for a function of the tool interface, whose errors never reach an error handler.
    pub fn is_tool(&self) -> bool {
        self.name.starts_with("MPI_T_")
    }

    /// Returns the C prototype under another name.
    pub fn prototype(&self, name: &str) -> Vec<String> {
        let mut words = vec![format!("{} {name}(", self.returns)];
        if self.params.is_empty() {
            words.push("void);".to_string());
        }
        for (i, p) in self.params.iter().enumerate() {
            let end = if i + 1 == self.params.len() {
                ");"
            } else {
                ", "
            };
            words.push(format!("{}{end}", p.declaration));
        }
        words
    }
}

/// A parsed C parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// The declaration, `const int recvcounts[]`.
    pub declaration: String,
    pub name: String,
    /// The type below all pointers, `int` or `MPI_Comm`; `...` for variable arguments.
    pub base: String,
    pub is_const: bool,
    /// The number of `*`.
    pub stars: usize,
    /// What follows the name: nothing, `[]` or `[][3]`.
    pub array: String,
    /// True if the scalar or handle behind the pointer is also read.
    pub inout: bool,
}

impl Param {
    /// Returns true for a parameter passed by value, neither a pointer nor an array.
    pub fn by_value(&self) -> bool {
        self.stars == 0 && self.array.is_empty()
    }

    /// Returns true for a pointer to one scalar or handle that the function writes.
    pub fn scalar_out(&self) -> bool {
        self.stars == 1 && self.array.is_empty() && !self.is_const
    }
}

/// A chapter of the standard.
#[derive(Clone, Debug)]
pub struct Chapter {
    pub number: u32,
    pub title: String,
}

#[derive(Clone, Debug, Default)]
pub struct Functions {
    pub chapters: Vec<Chapter>,
    pub functions: Vec<Function>,
}

/// What a section of `constants.txt` declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Typedef,
    Struct,
    Handle,
    Enum,
    Define,
    Callback,
    Alias,
}

#[derive(Clone, Debug)]
pub struct Section {
    pub kind: Kind,
    /// The C type that the section is about, empty if none.
    pub ctype: String,
    pub title: String,
    pub items: Vec<Item>,
}

/// One line of a section: `name value -- note`, or a C declaration in `value` with its name in `name`.
#[derive(Clone, Debug)]
pub struct Item {
    pub name: String,
    pub value: String,
    pub note: Option<String>,
}

impl Item {
    /// Returns the number of a constant, `None` for an alias or a declaration.
    pub fn number(&self) -> Option<i64> {
        match self.value.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => self.value.parse().ok(),
        }
    }
}

/// The lines of a table without comments and blanks, numbered from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.trim()))
        .filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
}

/// Parses `functions.txt`.
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
                Some(("inout", param)) => params
                    .iter_mut()
                    .find(|p| p.name == param)
                    .map(|p| p.inout = true)
                    .ok_or_else(|| format!("line {at}: no parameter `{param}`"))?,
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

/// Parses a prototype such as `int MPI_X(int a, const int b[])`.
pub fn parse_prototype(text: &str) -> Option<(String, String, Vec<Param>)> {
    let (head, tail) = text.split_once('(')?;
    let (returns, name) = head.rsplit_once(' ')?;
    let list = tail.strip_suffix(')')?;
    let params = match list {
        "void" => Vec::new(),
        list => list
            .split(", ")
            .map(parse_param)
            .collect::<Option<Vec<_>>>()?,
    };
    Some((returns.to_string(), name.to_string(), params))
}

fn parse_param(text: &str) -> Option<Param> {
    if text == "..." {
        return Some(Param {
            declaration: text.to_string(),
            name: String::new(),
            base: text.to_string(),
            is_const: false,
            stars: 0,
            array: String::new(),
            inout: false,
        });
    }
    let (declared, array) = match text.find('[') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let name_at = declared.rfind([' ', '*'])? + 1;
    let (ctype, name) = declared.split_at(name_at);
    let is_const = ctype.starts_with("const ");
    let ctype = ctype.trim_start_matches("const ");
    Some(Param {
        declaration: text.to_string(),
        name: name.to_string(),
        base: ctype.trim_end_matches(['*', ' ']).to_string(),
        is_const,
        stars: ctype.matches('*').count(),
        array: array.to_string(),
        inout: false,
    })
}

/// Parses `constants.txt`.
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
