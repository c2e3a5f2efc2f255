//! Generator of the frame format's marked regions in Rust.

use super::Region;
use super::table::Format;

pub(super) fn lines(format: &Format, region: Region) -> Vec<String> {
    match region {
        Region::Format => constants(format),
        Region::Request => Vec::new(),
        Region::Version => vec![
            "/// The version that the hardware reports.".into(),
            format!("pub const VERSION: u8 = {};", format.version),
        ],
        Region::Operations => {
            let variants = format.operations.iter();
            let variants = variants.map(|o| (o.code, o.name.as_str(), o.effect.clone()));
            enumeration("The operation of a request.", "Operation", variants)
        }
        Region::Statuses => {
            let variants = format.statuses.iter();
            let variants =
                variants.map(|s| (s.code, s.name.as_str(), sentence(&s.condition, &s.value)));
            enumeration(
                "The result of a request. Only [`Done`](Self::Done) changes anything.",
                "Status",
                variants,
            )
        }
    }
}

fn constants(format: &Format) -> Vec<String> {
    let [request, reply] = format.layouts();
    let mut lines: Vec<String> = [
        "/// Bits of a frame, the highest bit of each field first:",
        "///",
        "/// ```text",
        &format!("/// {request}"),
        &format!("/// {reply}"),
        "/// ```",
        &format!("pub const FRAME_BITS: u8 = {};", format.frame_bits()),
    ]
    .map(str::to_owned)
    .into();
    let check = &format.check;
    let fields = format.body();
    let widths = fields.iter().map(|(field, ..)| field.bits);
    let shared = ["CODE_BITS", "CHANNEL_BITS", "VALUE_BITS"];
    let numbers = [
        (
            "Bits of a frame before its check.",
            "pub const BODY_BITS: u8",
            format.body_bits(),
        ),
        (
            "Bits of the check.",
            "const CHECK_BITS: u8",
            format.check_bits(),
        ),
    ];
    for (meaning, declaration, value) in numbers {
        lines.push(String::new());
        lines.push(format!("/// {meaning}"));
        lines.push(format!("{declaration} = {value};"));
    }
    for (name, bits) in shared.iter().zip(widths) {
        lines.push(format!("const {name}: u8 = {bits};"));
    }
    lines.extend([
        String::new(),
        format!("/// The initial value of the check, {}.", check.name),
        format!("pub const CHECK_START: u16 = {:#06x};", check.start),
        format!("const POLYNOMIAL: u16 = {:#06x};", check.polynomial),
    ]);
    lines
}

/// Returns `Condition; the value is VALUE.`; only `Condition.` if `value` is empty.
fn sentence(condition: &str, value: &str) -> String {
    let mut letters = condition.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    let begin: String = first.into_iter().chain(letters).collect();
    match value.is_empty() {
        true => format!("{begin}."),
        false => format!("{begin}; the value is {value}."),
    }
}

fn enumeration<'a>(
    meaning: &str,
    kind: &str,
    variants: impl Iterator<Item = (u32, &'a str, String)> + Clone,
) -> Vec<String> {
    let mut lines: Vec<String> = vec![
        format!("/// {meaning}"),
        "#[derive(Clone, Copy, Debug, PartialEq, Eq)]".into(),
        "#[repr(u8)]".into(),
        format!("pub enum {kind} {{"),
    ];
    for (code, name, doc) in variants.clone() {
        // Each sentence is on its own line.
        let sentences = doc.replace(". ", ".\n");
        lines.extend(sentences.lines().map(|line| format!("    /// {line}")));
        lines.push(format!("    {} = {code},", camel(name)));
    }
    lines.extend([
        "}".into(),
        String::new(),
        format!("impl {kind} {{"),
        format!("    /// The {} with this code.", kind.to_lowercase()),
        "    pub const fn from_code(code: u8) -> Option<Self> {".into(),
        "        Some(match code {".into(),
    ]);
    for (code, name, _) in variants {
        lines.push(format!("            {code} => Self::{},", camel(name)));
    }
    lines.extend(["            _ => return None,", "        })", "    }", "}"].map(str::to_owned));
    lines
}

/// Returns a name in camel case, such as `SetMask` for `set mask`.
fn camel(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split(' ').map(capital).collect()
}
