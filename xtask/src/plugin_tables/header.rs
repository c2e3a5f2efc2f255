//! Parser of a plugin's C header: constants, enumerations, structures, and their comments.

use std::iter::Peekable;
use std::vec::IntoIter;

/// A parsed declaration of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `#define NAME VALUE`, where the value is a number.
    Constant(Constant),
    /// The members of an `enum`.
    Enumeration(Vec<Constant>),
    /// `typedef struct NAME NAME;`.
    Opaque { name: String, comment: String },
    /// `typedef struct NAME { ... } NAME;`.
    Structure {
        name: String,
        comment: String,
        fields: Vec<Field>,
    },
}

/// A named integer constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub name: String,
    pub value: String,
    pub comment: String,
}

/// A member of a structure, or a parameter of a function; the name of a parameter may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub comment: String,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A named type, or a pointer to it with this number of levels; the type may be const.
    Named {
        name: String,
        is_const: bool,
        pointers: usize,
    },
    /// An array of this length.
    Array { element: String, length: String },
    /// A pointer to a function.
    Function {
        result: Box<Kind>,
        parameters: Vec<Field>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(char),
    Comment(String),
    /// A preprocessor line without its `#`.
    Directive(String),
    /// The end of a line; an empty line yields two of these in succession.
    Line,
}

/// Parses a header.
pub fn parse(text: &str) -> Result<Vec<Item>, String> {
    let mut parser = Parser {
        tokens: tokens(text)?.into_iter().peekable(),
        line: 1,
        comment: String::new(),
    };
    let mut items = Vec::new();
    while let Some(item) = parser
        .item()
        .map_err(|e| format!("line {}: {e}", parser.line))?
    {
        items.push(item);
    }
    Ok(items)
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(inside) = rest.strip_prefix("/*") {
            let (comment, after) = inside.split_once("*/").ok_or("a comment has no end")?;
            all.extend(comment.matches('\n').map(|_| Token::Line));
            all.push(Token::Comment(plain(comment)));
            rest = after;
        } else if first == '#' {
            let mut line = String::new();
            loop {
                let (one, after) = rest.split_once('\n').unwrap_or((rest, ""));
                rest = after;
                let continued = one.strip_suffix('\\');
                line += continued.unwrap_or(one);
                if continued.is_none() {
                    break;
                }
                all.push(Token::Line);
            }
            // A comment after a directive is dropped, because the Rust file has no place for it.
            let line = line.split("/*").next().unwrap_or_default();
            all.push(Token::Directive(line[1..].trim().to_owned()));
            all.push(Token::Line);
        } else if first == '\n' {
            all.push(Token::Line);
            rest = &rest[1..];
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            all.push(Token::Word(word.to_owned()));
            rest = after;
        } else {
            all.push(Token::Sign(first));
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(all)
}

/// Returns a comment without the stars at the starts of its lines.
fn plain(comment: &str) -> String {
    let lines = comment
        .lines()
        .map(|line| line.trim().trim_start_matches('*').trim());
    let lines: Vec<&str> = lines.collect();
    lines.join("\n").trim().to_owned()
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
    line: usize,
    /// The comment before the next declaration; an empty line clears it.
    comment: String,
}

impl Parser {
    /// Consumes and returns the next token that is no comment and no line end; stores the comment before it.
    fn next(&mut self) -> Option<Token> {
        let mut lines = 0;
        loop {
            match self.tokens.next()? {
                Token::Line => {
                    self.line += 1;
                    lines += 1;
                    if lines > 1 {
                        self.comment.clear();
                    }
                }
                Token::Comment(comment) => {
                    self.comment = comment;
                    lines = 0;
                }
                token => return Some(token),
            }
        }
    }

    /// Consumes and returns a comment on the rest of this line, which describes the code before it;
    /// without such a comment, returns `before`, the comment before the code.
    fn comment_of(&mut self, before: String) -> String {
        match self.tokens.peek() {
            Some(Token::Comment(after)) if !after.contains('\n') => {
                let after = after.clone();
                self.tokens.next();
                match before.is_empty() {
                    true => after,
                    false => format!("{before}\n{after}"),
                }
            }
            _ => before,
        }
    }

    fn take_comment(&mut self) -> String {
        std::mem::take(&mut self.comment)
    }

    fn word(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            other => Err(format!("a name is due, and there is {other:?}")),
        }
    }

    fn sign(&mut self, due: char) -> Result<(), String> {
        match self.next() {
            Some(Token::Sign(sign)) if sign == due => Ok(()),
            other => Err(format!("'{due}' is due, and there is {other:?}")),
        }
    }

    /// Consumes the next token if it is this character; returns true if it was.
    fn is(&mut self, sign: char) -> bool {
        loop {
            match self.tokens.peek() {
                Some(Token::Sign(next)) => {
                    let same = *next == sign;
                    if same {
                        self.tokens.next();
                    }
                    return same;
                }
                Some(Token::Line) => {
                    self.line += 1;
                    self.tokens.next();
                }
                _ => return false,
            }
        }
    }

    /// Parses the next declaration; `None` at the end. Declarations that need no Rust code are skipped.
    fn item(&mut self) -> Result<Option<Item>, String> {
        loop {
            let Some(token) = self.next() else {
                return Ok(None);
            };
            match token {
                Token::Directive(line) => {
                    let comment = self.take_comment();
                    if let Some(constant) = constant(&line, comment) {
                        return Ok(Some(Item::Constant(constant)));
                    }
                }
                Token::Word(word) if word == "typedef" => return self.structure().map(Some),
                Token::Word(word) if word == "enum" => return self.enumeration().map(Some),
                // Skipped: `extern "C" {` and its end, attributes, and the plugin's entry point.
                _ => self.comment.clear(),
            }
        }
    }

    fn enumeration(&mut self) -> Result<Item, String> {
        self.sign('{')?;
        let mut all = Vec::new();
        while !self.is('}') {
            self.comment.clear();
            let name = self.word()?;
            let before = self.take_comment();
            self.sign('=')?;
            let sign = if self.is('-') { "-" } else { "" };
            let value = format!("{sign}{}", self.word()?);
            self.is(',');
            let comment = self.comment_of(before);
            all.push(Constant {
                name,
                value,
                comment,
            });
        }
        self.sign(';')?;
        Ok(Item::Enumeration(all))
    }

    fn structure(&mut self) -> Result<Item, String> {
        let comment = self.take_comment();
        let kind = self.word()?;
        if kind != "struct" {
            return Err(format!("a typedef of {kind} is none of a table"));
        }
        let name = self.word()?;
        if !self.is('{') {
            self.word()?;
            self.sign(';')?;
            return Ok(Item::Opaque { name, comment });
        }
        let mut fields = Vec::new();
        while !self.is('}') {
            let mut field = self.field(true)?;
            self.sign(';')?;
            field.comment = self.comment_of(field.comment);
            fields.push(field);
        }
        self.word()?;
        self.sign(';')?;
        Ok(Item::Structure {
            name,
            comment,
            fields,
        })
    }

    /// Parses `TYPE NAME`, `TYPE NAME[LENGTH]` or `TYPE (*NAME)(PARAMETERS)`.
    fn field(&mut self, is_named: bool) -> Result<Field, String> {
        self.comment.clear();
        let mut base = self.word()?;
        let comment = self.take_comment();
        let is_const = base == "const";
        if is_const {
            base = self.word()?;
        }
        let mut pointers = 0;
        while self.is('*') {
            pointers += 1;
        }
        let named = Kind::Named {
            name: base.clone(),
            is_const,
            pointers,
        };
        if self.is('(') {
            self.sign('*')?;
            let name = self.word()?;
            self.sign(')')?;
            self.sign('(')?;
            let parameters = self.parameters()?;
            let kind = Kind::Function {
                result: Box::new(named),
                parameters,
            };
            return Ok(Field {
                name,
                kind,
                comment,
            });
        }
        let name = match self.tokens.peek() {
            Some(Token::Word(_)) => self.word()?,
            _ if is_named => return Err(format!("a member of type {base} has no name")),
            _ => String::new(),
        };
        let kind = match self.is('[') {
            false => named,
            true => {
                let length = self.word()?;
                self.sign(']')?;
                Kind::Array {
                    element: base,
                    length,
                }
            }
        };
        Ok(Field {
            name,
            kind,
            comment,
        })
    }

    fn parameters(&mut self) -> Result<Vec<Field>, String> {
        let mut all = Vec::new();
        while !self.is(')') {
            all.push(self.field(false)?);
            self.is(',');
        }
        let nothing = Kind::Named {
            name: "void".into(),
            is_const: false,
            pointers: 0,
        };
        all.retain(|parameter| parameter.kind != nothing);
        Ok(all)
    }
}

/// Parses a `#define` whose value is a number.
fn constant(line: &str, comment: String) -> Option<Constant> {
    let (name, value) = line.strip_prefix("define ")?.trim().split_once(' ')?;
    let value = value.trim();
    let number = value.trim_end_matches('u');
    let digits = number.strip_prefix("0x").unwrap_or(number);
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    (is_number && value.starts_with(|c: char| c.is_ascii_digit())).then(|| Constant {
        name: name.to_owned(),
        value: number.to_owned(),
        comment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_declaration_is_read_with_its_comment() {
        let items = parse(
            "/* The version. */\n#define PORTCULLIS_X 0x2au\n#define PORTCULLIS_Y PORTCULLIS_X\n\
             enum {\n    PORTCULLIS_FAILED = -1, /* for a reason */\n    PORTCULLIS_DONE = 0\n};\n\
             /* Opaque. */\ntypedef struct portcullis_a portcullis_a;\n\
             /* About nothing. */\n\n\
             typedef struct portcullis_b {\n    /* The size\n     * of it. */\n    size_t size;\n    char text[512];\n\
             const portcullis_a *(*get)(portcullis_a *, const void *data, int (*ready)(void *), void **to);\n    uint64_t (*now)(void); /* a clock */\n} portcullis_b;\n",
        );
        let items = items.expect("a header");
        let Item::Constant(constant) = &items[0] else {
            panic!("{items:?}");
        };
        assert_eq!(
            (&*constant.name, &*constant.value, &*constant.comment),
            ("PORTCULLIS_X", "0x2a", "The version.")
        );
        let Item::Enumeration(members) = &items[1] else {
            panic!("{items:?}");
        };
        let members: Vec<_> = members
            .iter()
            .map(|m| (&*m.name, &*m.value, &*m.comment))
            .collect();
        assert_eq!(
            members,
            [
                ("PORTCULLIS_FAILED", "-1", "for a reason"),
                ("PORTCULLIS_DONE", "0", "")
            ]
        );
        assert!(matches!(&items[2], Item::Opaque { comment, .. } if comment == "Opaque."));
        let Item::Structure {
            fields, comment, ..
        } = &items[3]
        else {
            panic!("{items:?}");
        };
        assert_eq!(comment, "");
        let names: Vec<_> = fields.iter().map(|f| (&*f.name, &*f.comment)).collect();
        assert_eq!(
            names,
            [
                ("size", "The size\nof it."),
                ("text", ""),
                ("get", ""),
                ("now", "a clock")
            ]
        );
        let Kind::Function { parameters, .. } = &fields[2].kind else {
            panic!("{fields:?}");
        };
        assert_eq!(parameters.len(), 4);
        assert!(matches!(parameters[2].kind, Kind::Function { .. }));
        assert!(
            matches!(&fields[3].kind, Kind::Function { parameters, .. } if parameters.is_empty())
        );
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, part) in [
            ("/* no end", "a comment has no end"),
            ("\ntypedef union a a;", "line 2: a typedef of union"),
            ("typedef struct a { int; } a;", "has no name"),
            ("enum { A };", "'=' is due"),
        ] {
            let refusal = parse(text).expect_err(text);
            assert!(refusal.contains(part), "{refusal}");
        }
    }
}
