//! Parser of the fenced code blocks of a Markdown document.
//!
//! A fence with a language and a name contains a file; a fence `console` contains a shell session.

/// A fenced code block.
#[derive(Debug)]
pub struct Block<'a> {
    /// The words after the opening fence: the language, and for a file its name.
    pub words: Vec<&'a str>,
    /// The lines between the fences.
    pub lines: Vec<&'a str>,
}

/// Returns the blocks of a document, in order.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            found.push(Block {
                words: words.split_whitespace().collect(),
                lines: inside.collect(),
            });
        }
    }
    found
}

/// Returns the document's file `name`, if any.
pub fn file(text: &str, name: &str) -> Option<String> {
    let blocks = blocks(text);
    let block = blocks
        .iter()
        .find(|block| block.words.get(1) == Some(&name))?;
    Some(block.lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_is_inside_the_fence_with_its_name() {
        let text = "Text.\n```c a.c\nint a;\n\nint b;\n```\n```console\n$ cc a.c\n```\n";
        assert_eq!(file(text, "a.c").as_deref(), Some("int a;\n\nint b;\n"));
        assert_eq!(file(text, "b.c"), None);
        assert_eq!(blocks(text)[1].words, ["console"]);
    }
}
