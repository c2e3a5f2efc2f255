//! Lines of Fortran source; long statements are continued on further lines.

/// The maximum length of a generated line in free form; the standard allows 132 characters.
const LONGEST: usize = 110;

/// Appends a statement in free form; a long statement is continued on further lines.
pub fn free(text: &mut String, indent: usize, statement: &str) {
    let mut rest = statement;
    let mut margin = indent;
    loop {
        let spaces = " ".repeat(margin);
        if margin + rest.len() <= LONGEST {
            text.push_str(&format!("{spaces}{rest}\n"));
            return;
        }
        let Some(end) = rest[..LONGEST - margin].rfind(", ") else {
            text.push_str(&format!("{spaces}{rest}\n"));
            return;
        };
        text.push_str(&format!("{spaces}{} &\n", &rest[..=end]));
        rest = &rest[end + 2..];
        margin = indent + 4;
    }
}

/// Appends lines with this indentation.
pub fn block(text: &mut String, indent: usize, lines: &str) {
    for line in lines.lines() {
        if line.is_empty() {
            text.push('\n');
        } else {
            text.push_str(&format!("{}{line}\n", " ".repeat(indent)));
        }
    }
}
