//! Generator of `hwbarr.h`, the header of `libhwbarr`, from the comments and signatures of its Rust functions.

use crate::workspace;
use std::fs;

/// The source file of the exported functions.
pub const SOURCE: &str = "barrier-driver/library/src/exported.rs";
/// The path of the generated header.
pub const HEADER: &str = "barrier-driver/library/include/hwbarr.h";

/// Returns the text of the header.
pub fn header() -> Result<String, String> {
    let path = workspace::root().join(SOURCE);
    let text =
        fs::read_to_string(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    header_of(&text).map_err(|e| format!("{SOURCE}: {e}"))
}

fn header_of(source: &str) -> Result<String, String> {
    let mut out = format!(
        "/* One node of the barrier hardware, without MPI: generated from {SOURCE} by `cargo xtask gen`. */\n\
         #ifndef HWBARR_H\n#define HWBARR_H\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         typedef struct hwbarr hwbarr;\n"
    );
    let mut comment: Vec<&str> = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some(sentence) = line.strip_prefix("///") {
            comment.push(sentence.trim());
        } else if let Some(function) = exported(line) {
            out += &prototype(&comment, &on_one_line(function, &mut lines))?;
            comment.clear();
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    out += "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
    Ok(out)
}

/// Returns the part of an exported function's first line that begins with the function's name.
fn exported(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    rest.strip_prefix("extern \"C\" fn ")
}

/// Returns `NAME(ARGUMENTS) -> RESULT`; rustfmt puts each argument of a long signature on a line of its own.
fn on_one_line<'s>(first: &str, rest: &mut impl Iterator<Item = &'s str>) -> String {
    let mut signature = first.to_owned();
    while !signature.ends_with('{') {
        let Some(line) = rest.next().map(str::trim) else {
            break;
        };
        if !signature.ends_with('(') && !line.starts_with(')') {
            signature.push(' ');
        }
        signature += line;
    }
    let signature = signature.trim_end_matches('{').trim();
    signature.replace(",)", ")")
}

fn prototype(comment: &[&str], function: &str) -> Result<String, String> {
    let unknown = || format!("this signature has another form: {function}");
    let (head, result) = function.split_once(" -> ").ok_or_else(unknown)?;
    let (name, arguments) = head.split_once('(').ok_or_else(unknown)?;
    let arguments = arguments.strip_suffix(')').ok_or_else(unknown)?;
    let arguments: Option<Vec<String>> = match arguments {
        "" => Some(vec!["void".to_owned()]),
        arguments => arguments
            .split(", ")
            .map(|argument| {
                let (name, kind) = argument.split_once(": ")?;
                declared(kind, name)
            })
            .collect(),
    };
    let arguments = arguments.ok_or_else(unknown)?.join(", ");
    let declaration = declared(result, &format!("{name}({arguments})")).ok_or_else(unknown)?;
    // Sentences after the first empty line are about Rust and are omitted.
    let sentences: Vec<&str> = comment
        .iter()
        .copied()
        .take_while(|line| !line.is_empty())
        .collect();
    Ok(format!(
        "\n/* {} */\n{declaration};\n",
        sentences.join("\n   ")
    ))
}

/// Returns the C declaration of the parameter `name`, whose Rust type is `kind`;
/// `None` if this function knows no C equivalent of the type.
fn declared(kind: &str, name: &str) -> Option<String> {
    Some(match kind {
        "c_int" => format!("int {name}"),
        "u32" => format!("uint32_t {name}"),
        "*mut u32" => format!("uint32_t *{name}"),
        "u64" => format!("uint64_t {name}"),
        "*const c_char" => format!("const char *{name}"),
        "*mut Hwbarr" => format!("hwbarr *{name}"),
        "*mut *mut Hwbarr" => format!("hwbarr **{name}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_becomes_a_prototype_with_its_sentences() {
        let source = "/// Waits.\n/// For long.\n///\n/// # Safety\n#[unsafe(no_mangle)]\n\
            pub unsafe extern \"C\" fn hwbarr_wait(node: *mut Hwbarr, nanoseconds: u64) -> c_int {\n";
        let header = header_of(source).expect("a header");
        let expected =
            "/* Waits.\n   For long. */\nint hwbarr_wait(hwbarr *node, uint64_t nanoseconds);\n";
        assert!(header.contains(expected), "{header}");
        assert!(header_of(&source.replace("u64", "i64")).is_err());
        let broken = source
            .replace("(node", "(\n    node")
            .replace(", nano", ",\n    nano")
            .replace("u64)", "u64,\n)");
        assert_eq!(header_of(&broken), Ok(header));
    }
}
