//! Generator of the wrapper functions, in C and in Fortran, and of the table of their names.

use super::watched::{BY_HAND, C_ALONE, WATCHED};
use compat_generate::backend::{base, is_handle};
use compat_generate::tables::Tables;
use mpi_api_tables::{Function, Param};
use std::fmt::Write;

const PROMISE: &str =
    "// SAFETY: the caller's arguments go on to the library's function of the same name and type.";

const ABOUT_ERROR: &str = "// SAFETY: `error` is where the caller wants the error code.";

/// Returns the texts of `entries.rs` and `names.rs`.
pub fn write(tables: &Tables) -> Result<[String; 2], String> {
    let (mut out, mut names) = (String::new(), Vec::new());
    let find = |name: &str| tables.functions.iter().find(|f| f.name == name);
    for (list, says) in WATCHED {
        for short in list.split_whitespace() {
            let name = format!("MPI_{short}");
            let f = find(&name).ok_or_else(|| format!("there is no function {name}"))?;
            names.push(name.clone());
            out += &in_c(f, says, names.len(), ABSENT)?;
            if !C_ALONE.contains(&short) {
                out += &in_fortran(f, says, names.len())?;
            }
            if let Some(large) = find(&format!("{name}_c")).filter(|large| is_narrowed(large)) {
                names.push(large.name.clone());
                out += &in_c(large, says, names.len(), &narrowed(f, large))?;
            }
        }
    }
    let mut known = String::new();
    for short in BY_HAND {
        names.push(format!("MPI_{short}"));
        let constant = short.to_uppercase();
        let _ = writeln!(known, "pub const {constant}: u16 = {};", names.len());
    }
    let _ = writeln!(
        known,
        "/// The names of the functions, which are numbered from 1.\npub static NAMES: [&str; {}] = {names:?};",
        names.len()
    );
    known += &operators(tables);
    Ok([out, known])
}

/// Generates the table of predefined operators: the values of the standard and of MPICH,
/// and the symbol of Open MPI.
fn operators(tables: &Tables) -> String {
    let of = tables
        .handles
        .iter()
        .filter(|handle| handle.name.starts_with("MPI_") && is_operator(handle.kind));
    let lines: Vec<String> = of
        .filter_map(|handle| {
            let (symbol, ..) = handle.openmpi.as_ref()?;
            Some(format!(
                "    ({}, {}, c{symbol:?}),\n",
                handle.standard, handle.mpich?
            ))
        })
        .collect();
    format!(
        "/// Predefined operators: the standard's value, MPICH's, Open MPI's symbol.\n\
         pub static OPERATORS: [(u64, usize, &std::ffi::CStr); {}] = [\n{}];\n",
        lines.len(),
        lines.concat()
    )
}

fn is_operator(kind: usize) -> bool {
    compat_generate::tables::HANDLES.get(kind) == Some(&"MPI_Op")
}

/// Returns true if a parameter points to statuses.
fn is_status(p: &Param) -> bool {
    p.base == "MPI_Status"
}

/// Body of a wrapper if the MPI library lacks the function.
const ABSENT: &str = "return absent(NEXT.name())";

/// Returns true if a large-count function has no arrays of counts.
/// The small-count function then replaces a large-count function that the library lacks.
fn is_narrowed(large: &Function) -> bool {
    let is_array = |p: &Param| !p.by_value() && ["MPI_Count", "MPI_Aint"].contains(&&*p.base);
    !large.params.iter().any(is_array)
}

/// Generates the body that calls the small-count function if the library lacks `large`.
/// Programs that look the name up with `dlsym` find this library's symbol.
fn narrowed(small: &Function, large: &Function) -> String {
    let of = small.params.iter().zip(&large.params);
    let arguments: Vec<String> = of
        .map(|(small, large)| {
            let name = large.rust_name();
            match small.by_value() && small.base == "int" && large.base != "int" {
                true => format!(
                    "match c_int::try_from({name}) {{ Ok(small) => small, Err(_) => return too_large(NEXT.name()) }}"
                ),
                false => name,
            }
        })
        .collect();
    format!(
        "\n        {PROMISE}\n        return unsafe {{ {}({}) }}",
        small.name,
        arguments.join(", ")
    )
}

fn in_c(f: &Function, says: &str, number: usize, absent: &str) -> Result<String, String> {
    let kind = |p: &Param| match p.by_value() {
        true => base(&p.base, "Handle", "usize", ""),
        false => "*mut c_void".into(),
    };
    let params: Vec<String> = f
        .params
        .iter()
        .map(|p| format!("{}: {}", p.rust_name(), kind(p)))
        .collect();
    let value = |p: &Param| {
        let name = p.rust_name();
        match (p.by_value(), p.base.as_str()) {
            (true, base) if is_handle(base) => format!("watch.library.handle({name})"),
            (true, _) => format!("i64::from({name})"),
            (false, _) => place(p, "c", &name),
        }
    };
    let says = filled(f, says, value)?;
    let (name, types) = (&f.name, f.params.iter().map(kind).collect::<Vec<_>>());
    Ok(entry(
        name,
        f,
        &params.join(", "),
        &format!("unsafe extern \"C\" fn({}) -> c_int", types.join(", ")),
        "c_int",
        absent,
        &says,
        number,
        &["next(", ")"],
    ))
}

fn in_fortran(f: &Function, says: &str, number: usize) -> Result<String, String> {
    let params: Vec<String> = f
        .params
        .iter()
        .map(|p| format!("{}: *mut c_void", p.rust_name()))
        .chain(["error: *mut c_int".into()])
        .collect();
    let value = |p: &Param| {
        let name = p.rust_name();
        let integer = format!("integer({name})");
        match (p.by_value(), p.base.as_str()) {
            (true, "MPI_Comm") => format!("watch.fortran.comm({integer})"),
            (true, "MPI_Datatype") => format!("watch.fortran.datatype({integer})"),
            (true, "MPI_Op") => format!("watch.fortran.op({integer})"),
            (true, "int") => format!("i64::from({integer})"),
            (true, base) => panic!("{}: {base} of Fortran is not read", f.name),
            (false, _) => place(p, "fortran", &name),
        }
    };
    let says = filled(f, says, value)?;
    let types = vec!["*mut c_void"; f.params.len()];
    let kind = match types.is_empty() {
        true => "unsafe extern \"C\" fn(*mut c_int)".to_owned(),
        false => format!("unsafe extern \"C\" fn({}, *mut c_int)", types.join(", ")),
    };
    let lower = f.name.to_lowercase();
    let names = [
        lower.clone(),
        format!("{lower}_"),
        format!("{lower}__"),
        f.name.to_uppercase(),
        format!("{lower}_f08_"),
    ];
    let all = names.map(|name| {
        entry(
            &name,
            f,
            &params.join(", "),
            &kind,
            "()",
            &format!(
                "\n        {ABOUT_ERROR}\n        return unsafe {{ absent_in_fortran(NEXT.name(), error) }}"
            ),
            &says,
            number,
            &["told_in_fortran(error, |error| next(", ", error))"],
        )
    });
    Ok(all.concat())
}

/// Generates a `Statuses`, `Integers` or `HandlePtr` value for a pointer argument.
fn place(p: &Param, language: &str, name: &str) -> String {
    let kind = match p.base.as_str() {
        "MPI_Status" => "Statuses",
        "int" => "Integers",
        _ => "HandlePtr",
    };
    format!("{kind}::of_{language}({name}.cast())")
}

/// Returns the expression `says` with each `{parameter}` replaced by its value.
fn filled(f: &Function, says: &str, value: impl Fn(&Param) -> String) -> Result<String, String> {
    let mut says = says.to_owned();
    for p in &f.params {
        let name = format!("{{{}}}", p.name);
        if says.contains(&name) {
            says = says.replace(&name, &value(p));
        }
    }
    // A brace remains if `says` names a parameter that the function lacks.
    match says.contains('{') {
        true => Err(format!("{} has not all parameters of {says}", f.name)),
        false => Ok(says),
    }
}

#[allow(clippy::too_many_arguments)]
fn entry(
    symbol: &str,
    f: &Function,
    params: &str,
    kind: &str,
    result: &str,
    absent: &str,
    says: &str,
    number: usize,
    [call, end]: &[&str; 2],
) -> String {
    let names: Vec<String> = f.params.iter().map(|p| p.rust_name()).collect();
    let of_fortran = result == "()";
    let plain = match of_fortran {
        true => [names.clone(), vec!["error".into()]].concat().join(", "),
        false => names.join(", "),
    };
    let status = f.params.iter().find(|p| is_status(p));
    let given = status.map_or("null_mut()".to_owned(), |p| p.rust_name());
    let watched: Vec<String> = f
        .params
        .iter()
        .map(|p| match is_status(p) {
            true => "statuses".to_owned(),
            false => p.rust_name(),
        })
        .collect();
    let finish = if of_fortran { ";" } else { "" };
    format!(
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({params}) -> {result} {{\n    \
         static NEXT: Next = Next::new(c\"{symbol}\");\n    \
         let Some(next) = NEXT.get() else {{ {absent} }};\n    \
         {PROMISE}\n    \
         unsafe {{\n        \
         let next = std::mem::transmute::<*mut c_void, {kind}>(next);\n        \
         if !watch::is_on() {{ return next({plain}); }}\n        \
         record::around({number}, {given}, |watch| {{ let _ = watch; {says} }}, |statuses| {{ let _ = statuses; {call}{}{end} }}){finish}\n    \
         }}\n}}\n",
        watched.join(", ")
    )
}
