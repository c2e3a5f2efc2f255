//! Generator of Rust code for the declarations of a plugin header.

use super::header::{Constant, Field, Item, Kind};

const PREFIX: &str = "portcullis_";

/// Structures whose Rust name differs from the header's name.
const RENAMED: &[(&str, &str)] = &[
    ("module", "ModuleTable"),
    ("transport_host", "Host"),
    ("transport_param", "Param"),
    ("transport_table", "Transport"),
];

/// The structures whose functions the library implements and a plugin calls.
/// A plugin implements all other functions, which may throw exceptions.
const SERVICES: &[&str] = &["portcullis_host", "portcullis_transport_host"];

/// The structure whose function types get type aliases in Rust.
const NAMED_SLOTS: &str = "portcullis_operation";

/// The structure that Rust code constructs at compile time.
const MANIFEST: &str = "portcullis_manifest";

/// The first members of those enumerations whose values are stored in unsigned fields.
const UNSIGNED: &[&str] = &["PORTCULLIS_BARRIER", "PORTCULLIS_PREDEFINED"];

/// Returns the Rust lines of all declarations, and of the lists that tests compare with the header.
pub fn lines(items: &[Item]) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let mut aliases = Vec::new();
    let mut constants: Vec<&str> = Vec::new();
    for item in items {
        match item {
            Item::Constant(constant) => {
                constants.push(&constant.name);
                out.extend(of_constant(constant, "u32"));
            }
            Item::Enumeration(members) => {
                let first = members.first().map_or("", |member| &*member.name);
                let kind = match UNSIGNED.contains(&first) {
                    true => "u32",
                    false => "c_int",
                };
                for member in members {
                    constants.push(&member.name);
                    out.extend(of_constant(member, kind));
                }
            }
            Item::Opaque { name, comment } => {
                out.extend(comment_lines("", comment, name));
                out.push("#[repr(C)]".into());
                out.push("#[derive(Debug)]".into());
                out.push(format!("pub struct {} {{", rust_name(name)));
                out.push("    _private: [u8; 0],".into());
                out.push("}".into());
            }
            Item::Structure { name, .. } if name == MANIFEST => continue,
            Item::Structure {
                name,
                comment,
                fields,
            } => structure((name, comment, fields.as_slice()), &mut aliases, &mut out)?,
        }
        out.push(String::new());
    }
    out.extend(aliases);
    out.extend(layout(items));
    out.extend(values(&constants));
    Ok(out)
}

fn of_constant(constant: &Constant, kind: &str) -> Vec<String> {
    let name = short(&constant.name);
    let mut lines = comment_lines("", &constant.comment, &constant.name);
    lines.push(format!(
        "pub const {name}: {kind} = {};",
        digits(&constant.value)
    ));
    lines
}

/// Inserts `_` in the middle of a number of eight hexadecimal digits; returns other numbers unchanged.
fn digits(value: &str) -> String {
    match value.strip_prefix("0x") {
        Some(hex) if hex.len() == 8 => format!("0x{}_{}", &hex[..4], &hex[4..]),
        _ => value.to_owned(),
    }
}

fn structure(
    (name, comment, fields): (&String, &String, &[Field]),
    aliases: &mut Vec<String>,
    out: &mut Vec<String>,
) -> Result<(), String> {
    let convention = match SERVICES.contains(&name.as_str()) {
        true => "C",
        false => "C-unwind",
    };
    out.extend(comment_lines("", comment, name));
    out.push("#[repr(C)]".into());
    out.push("#[derive(Clone, Copy, Debug)]".into());
    out.push(format!("pub struct {} {{", rust_name(name)));
    for field in fields {
        let rust = field_name(name, &field.name);
        let comment = match field.comment.is_empty() {
            true => reference(&field.name, fields, comment),
            false => field.comment.clone(),
        };
        let kind = match &field.kind {
            Kind::Function { result, parameters } => {
                let function = function(convention, result, parameters, aliases)?;
                match name == NAMED_SLOTS {
                    false => format!("Option<{function}>"),
                    true => {
                        let alias = camel(&field.name);
                        aliases.extend(comment_lines("", &comment, &field.name));
                        aliases.push(format!("pub type {alias} = {function};"));
                        aliases.push(String::new());
                        format!("Option<{alias}>")
                    }
                }
            }
            kind => rust_kind(kind, aliases)?,
        };
        out.extend(comment_lines("    ", &comment, &field.name));
        out.push(format!("    pub {rust}: {kind},"));
    }
    out.push("}".into());
    Ok(())
}

fn function(
    convention: &str,
    result: &Kind,
    parameters: &[Field],
    aliases: &mut Vec<String>,
) -> Result<String, String> {
    let mut all = Vec::new();
    for parameter in parameters {
        let kind = rust_parameter(parameter, aliases)?;
        let name = field_name("", &parameter.name);
        all.push(match name.is_empty() {
            true => kind,
            false => format!("{name}: {kind}"),
        });
    }
    let nothing = matches!(result, Kind::Named { name, pointers: 0, .. } if name == "void");
    let result = match nothing {
        true => String::new(),
        false => format!(" -> {}", rust_kind(result, aliases)?),
    };
    Ok(format!(
        "unsafe extern \"{convention}\" fn({}){result}",
        all.join(", ")
    ))
}

/// Returns the Rust type of a parameter.
/// A parameter that is a function (which the plugin implements) gets a type alias with the parameter's name.
fn rust_parameter(parameter: &Field, aliases: &mut Vec<String>) -> Result<String, String> {
    let Kind::Function { result, parameters } = &parameter.kind else {
        return rust_kind(&parameter.kind, aliases);
    };
    let function = function("C-unwind", result, parameters, aliases)?;
    let alias = camel(&parameter.name);
    aliases.push(format!(
        "/// The parameter `{}` of a service.",
        parameter.name
    ));
    aliases.push(format!("pub type {alias} = {function};"));
    aliases.push(String::new());
    Ok(format!("Option<{alias}>"))
}

fn rust_kind(kind: &Kind, aliases: &mut Vec<String>) -> Result<String, String> {
    Ok(match kind {
        Kind::Named {
            name,
            is_const,
            pointers,
        } => {
            let mut rust = String::new();
            for at in 0..*pointers {
                // Rust writes the outermost pointer first; only the innermost one can be const.
                let is_innermost = at + 1 == *pointers;
                rust += if is_innermost && *is_const {
                    "*const "
                } else {
                    "*mut "
                };
            }
            rust + &scalar(name)?
        }
        Kind::Array { element, length } => format!("[{}; {length}]", scalar(element)?),
        Kind::Function { result, parameters } => {
            let function = function("C-unwind", result, parameters, aliases)?;
            format!("Option<{function}>")
        }
    })
}

fn scalar(name: &str) -> Result<String, String> {
    Ok(match name {
        "size_t" | "uintptr_t" => "usize".into(),
        "uint32_t" => "u32".into(),
        "int32_t" => "i32".into(),
        "uint64_t" => "u64".into(),
        "int64_t" => "i64".into(),
        "int" => "c_int".into(),
        "char" => "c_char".into(),
        "void" => "c_void".into(),
        _ if name.starts_with(PREFIX) => rust_name(name),
        _ => return Err(format!("the type {name} has no equivalent in Rust here")),
    })
}

fn short(name: &str) -> &str {
    name.strip_prefix("PORTCULLIS_").unwrap_or(name)
}

fn rust_name(name: &str) -> String {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    let renamed = RENAMED.iter().find(|(from, _)| *from == name);
    renamed.map_or_else(|| camel(name), |(_, to)| (*to).to_owned())
}

fn camel(name: &str) -> String {
    let words = name.split('_').filter_map(|word| {
        let first = word.chars().next()?;
        Some(
            first
                .to_uppercase()
                .chain(word[first.len_utf8()..].chars())
                .collect::<String>(),
        )
    });
    words.collect()
}

/// Returns the Rust name of a field whose C name is a Rust keyword, or the C name.
fn field_name<'a>(structure: &str, name: &'a str) -> &'a str {
    match (structure, name) {
        ("portcullis_buffer", "type") => "datatype",
        (_, "type") => "kind",
        (_, "self") => "this",
        (_, "in") => "input",
        _ => name,
    }
}

/// Returns the comment of a field that has none in the header: a reference to the comment that
/// mentions the field, or nothing.
fn reference(field: &str, fields: &[Field], of_structure: &str) -> String {
    let mentions = |comment: &str| {
        let mut words = comment.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == field)
    };
    match fields.iter().find(|other| mentions(&other.comment)) {
        Some(other) => format!("See `{}`.", other.name),
        None if mentions(of_structure) => "See the comment of the structure.".to_owned(),
        None => String::new(),
    }
}

/// Returns the declaration's comment in the header as doc comment; if there is none, a sentence with the C name.
fn comment_lines(indent: &str, comment: &str, name: &str) -> Vec<String> {
    let own = format!("Named `{name}` in the C header.");
    let text = if comment.is_empty() { &own } else { comment };
    let line = |line: &str| {
        let line = line.replace('<', "\\<").replace('[', "\\[");
        format!("{indent}/// {line}").trim_end().to_owned()
    };
    text.lines().map(line).collect()
}

/// Returns the list of the structures' sizes and field offsets.
fn layout(items: &[Item]) -> Vec<String> {
    let mut out = vec![
        "/// A structure by its name in the header: its size, and its members with their offsets."
            .to_owned(),
        "pub type Layout = (&'static str, usize, &'static [(&'static str, usize)]);".to_owned(),
        String::new(),
        "/// The layout of each structure.".to_owned(),
        "pub const LAYOUTS: &[Layout] = &[".to_owned(),
    ];
    for item in items {
        let Item::Structure { name, fields, .. } = item else {
            continue;
        };
        if name == MANIFEST {
            continue;
        }
        let rust = rust_name(name);
        out.push(format!("    (\"{name}\", size_of::<{rust}>(), &["));
        for field in fields {
            let (c, field) = (&field.name, field_name(name, &field.name));
            out.push(format!("        (\"{c}\", offset_of!({rust}, {field})),"));
        }
        out.push("    ]),".into());
    }
    out.push("];".into());
    out.push(String::new());
    out
}

/// Returns the list of the constants with their values.
fn values(names: &[&str]) -> Vec<String> {
    let mut out = vec![
        "/// Each constant by its name in the header.".to_owned(),
        "pub const CONSTANTS: &[(&str, i64)] = &[".to_owned(),
    ];
    let line = |name: &&str| format!("    (\"{name}\", {} as i64),", short(name));
    out.extend(names.iter().map(line));
    out.push("];".into());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin_tables::header::parse;

    #[test]
    fn a_structure_of_the_library_and_one_of_a_plugin_differ_in_what_may_be_thrown() {
        let items = parse(
            "typedef struct portcullis_host {\n    size_t size; /* of this table */\n    int (*wait)(portcullis_comm *, int (*ready)(void *argument), void **in);\n} portcullis_host;\n\
             typedef struct portcullis_module {\n    void (*free)(void *self);\n    const char *type;\n} portcullis_module;\n",
        );
        let text = lines(&items.expect("a header")).expect("types").join("\n");
        for part in [
            "    /// of this table\n    pub size: usize,",
            "pub wait: Option<unsafe extern \"C\" fn(*mut Comm, ready: Option<Ready>, input: *mut *mut c_void) -> c_int>,",
            "pub type Ready = unsafe extern \"C-unwind\" fn(argument: *mut c_void) -> c_int;",
            "pub struct ModuleTable {\n    /// Named `free` in the C header.\n    pub free: Option<unsafe extern \"C-unwind\" fn(this: *mut c_void)>,",
            "    pub kind: *const c_char,",
            "(\"type\", offset_of!(ModuleTable, kind)),",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn a_type_without_an_equivalent_is_refused() {
        let items = parse("typedef struct portcullis_a {\n    long double x;\n} portcullis_a;\n");
        let refusal = items
            .and_then(|items| lines(&items))
            .expect_err("no such type");
        assert!(
            refusal.contains("long") || refusal.contains("due"),
            "{refusal}"
        );
    }
}
