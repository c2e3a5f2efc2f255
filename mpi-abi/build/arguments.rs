//! Generator of the typed arguments that exported functions pass to their implementations.
//!
//! The types are those of `src/api/args`. A value of such a type is a C pointer together with
//! what the tables state about the parameter, such as its length and its direction.
//! The generated wrapper calls their `unsafe` constructors with the arguments of its C caller.
//! By the MPI standard, the C caller must pass valid arguments.
//! Implementations with typed arguments are safe functions.

use mpi_api_tables::{Function, Param};

/// An argument of an exported function, with the Rust expression of its value.
pub struct Argument<'a> {
    pub param: &'a Param,
    /// The name of the C argument.
    pub name: String,
    /// The expression of the argument's value, in the integer width of the implementation.
    pub value: String,
}

/// Returns the Rust expressions of all arguments of a safe implementation.
pub fn typed(
    f: &Function,
    args: &[Argument<'_>],
    is_function: impl Fn(&Param) -> bool,
) -> Vec<String> {
    let mut typed = Vec::new();
    let mut rest = args;
    while let [first, after @ ..] = rest {
        rest = after;
        let replaced = |name: &str| args.iter().any(|a| a.param.length_behind == name);
        if replaced(&first.param.name) {
            continue;
        }
        if let Some((expressions, behind)) = memory(rest, first) {
            typed.extend(expressions);
            rest = behind;
            continue;
        }
        typed.push(match is_function(first.param) {
            true => first.value.clone(),
            false => one(f, first, args),
        });
    }
    typed
}

/// Parameters of the tool interface whose type depends on a variable or an event.
const UNTYPED: [&str; 3] = ["obj_handle", "buf", "buffer"];

/// Returns true for a parameter that is a buffer of elements.
pub fn is_memory(p: &Param) -> bool {
    p.base == "void"
        && p.stars == 1
        && p.array.is_empty()
        && !p.is_pointer_address
        && p.length.is_empty()
}

/// Returns the expression of a buffer with its count and datatype (`SendMem` or `RecvMem`).
fn elements(buffer: &Argument<'_>, count: &Argument<'_>, datatype: &Argument<'_>) -> String {
    let kind = if buffer.param.is_const {
        "SendMem"
    } else {
        "RecvMem"
    };
    let [buffer, count, datatype] = [buffer, count, datatype].map(|a| &a.name);
    format!("{kind}::new({buffer}, {count}, {datatype})")
}

/// Returns the expressions of one buffer group, and the arguments after the group.
/// A group is a buffer, two buffers with common count and datatype, or a buffer of blocks.
fn memory<'a, 'b>(
    rest: &'b [Argument<'a>],
    first: &'b Argument<'a>,
) -> Option<(Vec<String>, &'b [Argument<'a>])> {
    let describe = |count: &Param, datatype: &Param| {
        let counts = matches!(count.base.as_str(), "int" | "MPI_Count") && count.by_value();
        counts
            && count.name.contains("count")
            && datatype.base == "MPI_Datatype"
            && datatype.by_value()
    };
    if !is_memory(first.param) {
        return None;
    }
    let is_array = |p: &Param, ending: &str| p.array == "[]" && p.name.ends_with(ending);
    match rest {
        [counts, displacements, types, behind @ ..]
            if is_array(counts.param, "counts") && is_array(displacements.param, "displs") =>
        {
            let kind = if first.param.is_const {
                "SendBlocks"
            } else {
                "RecvBlocks"
            };
            let constructor = if types.param.by_value() {
                "new"
            } else {
                "typed"
            };
            let names = [first, counts, displacements, types].map(|a| a.name.as_str());
            let expression = format!("{kind}::{constructor}({})", names.join(", "));
            Some((vec![expression], behind))
        }
        [count, datatype, behind @ ..] if describe(count.param, datatype.param) => {
            Some((vec![elements(first, count, datatype)], behind))
        }
        [second, count, datatype, behind @ ..]
            if is_memory(second.param) && describe(count.param, datatype.param) =>
        {
            let both = [first, second].map(|buffer| elements(buffer, count, datatype));
            Some((both.into(), behind))
        }
        _ => None,
    }
}

/// Returns the expression of an argument that belongs to no buffer group.
fn one(f: &Function, arg: &Argument<'_>, args: &[Argument<'_>]) -> String {
    let (p, value) = (arg.param, &arg.value);
    let is_array = !p.array.is_empty() || (p.stars == 1 && !p.length.is_empty());
    let is_nested = p.stars > 0 && !p.array.is_empty();
    if p.by_value() || (p.stars > 1 && !is_nested) {
        value.clone()
    } else if is_nested && p.length.is_empty() {
        format!("Strings::new({value})")
    } else if is_nested {
        array(arg, args)
    } else if p.is_pointer_address {
        format!("Out::new({value}.cast())")
    } else if p.base == "char" {
        string(arg, args)
    } else if is_array {
        array(arg, args)
    } else if f.is_tool() && !p.is_const && UNTYPED.contains(&p.name.as_str()) {
        format!("Untyped::new({value})")
    } else if p.base == "void" {
        value.clone()
    } else if p.is_const {
        format!("In::new({value})")
    } else if p.inout || f.name.starts_with("MPI_Status_set_") || f.name.ends_with("_free") {
        format!("InOut::new({value})")
    } else {
        format!("Out::new({value})")
    }
}

/// Returns the expression of an array. A `void *` with a length is an array of bytes.
fn array(arg: &Argument<'_>, args: &[Argument<'_>]) -> String {
    let p = arg.param;
    let value = match p.base.as_str() {
        "void" => format!("{}.cast::<u8>()", arg.value),
        _ => arg.value.clone(),
    };
    let is_counted = !matches!(p.length.as_str(), "" | "*");
    match (is_counted, p.is_const) {
        (true, true) => format!("InArray::new({value}, {})", length(&p.length, args)),
        (true, false) => format!("InOutArray::new({value}, {})", length(&p.length, args)),
        (false, true) => format!("Uncounted::new({value})"),
        (false, false) => match args.iter().find(|a| a.param.name == "num_elements") {
            Some(size) if size.param.inout => format!("SizedOut::new({value}, {})", size.name),
            _ => format!("UncountedOut::new({value})"),
        },
    }
}

/// Returns the expression of a string.
fn string(arg: &Argument<'_>, args: &[Argument<'_>]) -> String {
    let (p, value) = (arg.param, &arg.value);
    if p.is_const {
        format!("Text::new({value})")
    } else if !p.length_behind.is_empty() {
        format!(
            "SizedText::new({value}, {})",
            length(&p.length_behind, args)
        )
    } else if !p.length.is_empty() {
        format!("TextOut::new({value}, {})", length(&p.length, args))
    } else {
        value.clone()
    }
}

/// Returns the expression of an array's length. `text` is the length in the table.
fn length(text: &str, args: &[Argument<'_>]) -> String {
    let (name, suffix) = match text.strip_suffix("+1") {
        Some(name) => (name, ".saturating_add(1)"),
        None => (text, ""),
    };
    let argument = args.iter().find(|a| a.param.name == name);
    let value = argument.map_or(name, |a| a.name.as_str());
    format!("{value}{suffix}")
}
