//! Generator of fallbacks: functions for the slots of MPI functions that a backend does not export.
//!
//! A function with large counts calls its `int` counterpart with narrowed scalars and arrays.
//! A count above the `int` range becomes one element of a larger derived datatype,
//! if the function has a datatype argument.
//! Handwritten functions in `compat/src/foreign_below/fallbacks` take precedence.
//! Any other function gets a fallback that reports that the backend lacks the function.

use crate::backend::{base, parameter};
use crate::tables::Tables;
use mpi_api_tables::{Function, Param};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Names of count parameters whose next parameter is their datatype.
const COUNTS: [&str; 8] = [
    "count",
    "sendcount",
    "recvcount",
    "origin_count",
    "target_count",
    "result_count",
    "incount",
    "outcount",
];

/// Returns the backend's type of a parameter.
fn kind(p: &Param) -> String {
    parameter(p, "F::Below", "usize", "F::BelowStatus")
}

/// Generates the table of fallbacks, indexed by slot, and all fallbacks not written by hand.
pub fn write(tables: &Tables, by_hand: &BTreeSet<String>) -> Result<String, String> {
    let (mut out, mut entries) = (String::new(), String::new());
    let (mut narrowed, mut lacking) = (Vec::new(), Vec::new());
    for (id, f) in tables.functions.iter().enumerate() {
        let name = &f.name;
        if by_hand.contains(name) {
            let _ = writeln!(entries, "    {name}::<F> as *mut c_void,");
        } else if let Some(twin) = twin(tables, f) {
            out.push_str(&narrow(f, twin).map_err(|what| format!("{name}: {what}"))?);
            let _ = writeln!(entries, "    {name}::<F> as *mut c_void,");
            narrowed.push(name.as_str());
        } else if let Some(nonblocking) = nonblocking(tables, f) {
            out.push_str(&persist(f, nonblocking));
            let _ = writeln!(entries, "    {name}::<F> as *mut c_void,");
        } else {
            let _ = writeln!(entries, "    missing::<F, {id}> as *mut c_void,");
            lacking.push(name.as_str());
        }
    }
    let _ = writeln!(
        out,
        "/// What stands in the slot of each function that a library does not have.\n\
         pub fn table<F: Foreign>() -> Vec<*mut c_void> {{\n    vec![\n{entries}    ]\n}}"
    );
    for (name, what, list) in [
        (
            "NARROWED",
            "Functions that become their twins with small counts.",
            narrowed,
        ),
        ("LACKING", "Functions without a replacement.", lacking),
    ] {
        let _ = writeln!(
            out,
            "/// {what}\n#[cfg(test)]\npub const {name}: [&str; {}] = {list:?};",
            list.len()
        );
    }
    Ok(out)
}

/// Returns the function with `int` counts that corresponds to `f`, whose name ends in `_c`.
fn twin<'a>(tables: &'a Tables, f: &Function) -> Option<&'a Function> {
    let small = f.name.strip_suffix("_c")?;
    let find = |name: String| tables.functions.iter().find(|g| g.name == name);
    let takes_functions = f.params.iter().any(crate::backend::is_function);
    find(format!("{small}_x"))
        .or_else(|| find(small.to_string()))
        .filter(|g| !takes_functions && g.params.len() == f.params.len())
}

/// Returns the nonblocking collective that corresponds to the persistent collective `f`.
fn nonblocking<'a>(tables: &'a Tables, f: &Function) -> Option<&'a Function> {
    let name = f.name.strip_prefix("MPI_")?.strip_suffix("_init")?;
    let name = format!("MPI_I{}", name.to_lowercase());
    let has_info = f.params.iter().any(|p| p.base == "MPI_Info");
    let same = |g: &&Function| g.name == name && g.params.len() + 1 == f.params.len();
    tables.functions.iter().find(same).filter(|_| has_info)
}

/// Generates the persistent collective `f`.
/// Each start of its request calls `turn`, the corresponding nonblocking collective.
fn persist(f: &Function, turn: &Function) -> String {
    let params: Vec<String> = f
        .fixed_params()
        .map(|p| format!("{}: {}", p.rust_name(), kind(p)))
        .collect();
    let given: Vec<String> = turn
        .fixed_params()
        .filter(|p| p.base != "MPI_Request")
        .map(|p| p.rust_name())
        .collect();
    let given = given.join(", ");
    format!(
        "unsafe extern \"C-unwind\" fn {name}<F: Foreign>({params}) -> c_int {{\n    \
         let given = Given(({given},));\n    let _ = info;\n    \
         // SAFETY: arguments of the library below, which are what the standard demands.\n    \
         unsafe {{ persist::<F>(request, move |request| {{ let Given(({given},)) = &given; \
         (backend::{turn}::<F>())({starred}, request) }}) }}\n}}\n",
        name = f.name,
        params = params.join(", "),
        turn = turn.name,
        starred = given
            .split(", ")
            .map(|name| format!("*{name}"))
            .collect::<Vec<_>>()
            .join(", "),
    )
}

/// Returns a Rust expression for the length of an input array.
fn length(f: &Function, p: &Param) -> Result<String, String> {
    let has = |name: &str| f.params.iter().any(|q| q.name == name && q.by_value());
    let sends = p.name.starts_with("send") || p.name == "sdispls";
    let root = "if blocks::is_root::<F>(comm, root) { all_ranks.1 } else { 0 }";
    Ok(match () {
        () if has("ndims") => "ndims".into(),
        () if f.name.starts_with("MPI_Type") && has("count") => {
            "c_int::try_from(count).unwrap_or(c_int::MAX)".into()
        }
        () if f.name.contains("eighbor") && sends => "all_ranks.0".into(),
        () if f.name.contains("eighbor") => "all_ranks.1".into(),
        () if f.name.contains("educe_scatter") => "blocks::members::<F>(comm)".into(),
        () if f.name.contains("atherv") && has("root") => root.into(),
        () if f.name.contains("catterv") => root.into(),
        () if sends => {
            "if sendbuf == F::buffer_in(without_provenance_mut(IN_PLACE)).cast_const() { 0 } else { all_ranks.0 }"
                .into()
        }
        () if has("comm") => "all_ranks.1".into(),
        () => return Err(format!("nothing says how long {} is", p.name)),
    })
}

/// Generates the function `f` with large counts as a call of `small`, which has `int` counts.
fn narrow(f: &Function, small: &Function) -> Result<String, String> {
    let (mut before, mut after) = (String::new(), String::new());
    let (mut arguments, mut kept, mut always) = (Vec::<String>::new(), Vec::new(), String::new());
    let is_reduction = f.params.iter().any(|p| p.base == "MPI_Op") && !f.name.contains("ccumulate");
    let large: Vec<&Param> = f.fixed_params().collect();
    let mut fitted = None;
    for (i, (p, q)) in large.iter().zip(small.fixed_params()).enumerate() {
        let name = p.rust_name();
        let (wide, tight) = (kind(p), kind(q));
        if fitted.take() == Some(i) {
            arguments.push(format!("fit_{i}.datatype"));
            continue;
        }
        if wide == tight {
            arguments.push(name);
            continue;
        }
        let element = base(&q.base, "F::Below", "usize", "F::BelowStatus");
        if p.by_value() {
            let datatype = large
                .get(i + 1)
                .filter(|d| d.base == "MPI_Datatype" && d.by_value());
            match datatype {
                Some(datatype) if COUNTS.contains(&p.name.as_str()) && !is_reduction => {
                    let of = i + 1;
                    let _ = write!(
                        before,
                        "let fit_{of} = match Fit::<F>::new({name}, {}) {{ Ok(fit) => fit, Err(code) => return code }}; ",
                        datatype.rust_name()
                    );
                    arguments.push(format!("fit_{of}.count"));
                    let _ = write!(always, "fit_{of}.free(); ");
                    fitted = Some(of);
                }
                _ => {
                    let _ = write!(
                        before,
                        "let Ok(tight_{0}) = <{tight}>::try_from({name}) else {{ return too_large::<F>(slot::{1}) }}; ",
                        p.name, f.name
                    );
                    arguments.push(format!("tight_{}", p.name));
                }
            }
        } else if p.is_const {
            let _ = write!(
                before,
                "let Some(tight_{0}) = Narrow::<{element}>::of({name}, {1}) else {{ return too_large::<F>(slot::{2}) }}; ",
                p.name,
                length(f, p)?,
                f.name
            );
            arguments.push(format!("tight_{}.argument()", p.name));
            kept.push(format!("tight_{}", p.name));
        } else {
            let start = match p.inout {
                true => format!(
                    "match {element}::try_from(*{name}) {{ Ok(tight) => tight, Err(_) => return too_large::<F>(slot::{}) }}",
                    f.name
                ),
                false => "0".into(),
            };
            let _ = write!(before, "let mut tight_{0}: {element} = {start}; ", p.name);
            arguments.push(format!(
                "if {name}.is_null() {{ null_mut() }} else {{ &raw mut tight_{} }}",
                p.name
            ));
            let _ = write!(
                after,
                "if !{name}.is_null() {{ *{name} = tight_{0} as _; }} ",
                p.name
            );
        }
    }
    if before.contains("all_ranks.") && large.iter().any(|p| p.name == "comm") {
        let lengths = if f.name.contains("eighbor") {
            "neighbours"
        } else {
            "all_ranks"
        };
        before.insert_str(
            0,
            &format!(
                "let all_ranks = if blocks::known::<F>(comm) {{ blocks::{lengths}::<F>(comm) }} else {{ (0, 0) }}; "
            ),
        );
    }
    let request = large.iter().any(|p| p.base == "MPI_Request");
    if request && !kept.is_empty() {
        let life = if f.name.ends_with("_init_c") {
            "Persistent"
        } else {
            "Once"
        };
        let _ = write!(
            after,
            "keep::<F>(*request, Life::{life}, Box::new(({},))); ",
            kept.join(", ")
        );
    }
    let params: Vec<String> = large
        .iter()
        .map(|p| format!("{}: {}", p.rust_name(), kind(p)))
        .collect();
    Ok(format!(
        "unsafe extern \"C-unwind\" fn {name}<F: Foreign>({params}) -> c_int {{\n    \
         // SAFETY: arguments of the library below, which are what the standard demands.\n    \
         unsafe {{ {before}let code = (backend::{twin}::<F>())({arguments}); {always}if code == 0 {{ {after}}} code }}\n}}\n",
        name = f.name,
        params = params.join(", "),
        twin = small.name,
        arguments = arguments.join(", "),
    ))
}
