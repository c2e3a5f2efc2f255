//! Generator of the Rust side of the C interface: types, constants, and every exported symbol.
//!
//! An exported function is a thin wrapper of the implementation of the same name in `src/api`.
//! The implementation returns `Result<(), Failure>`. The implementation of a function without an
//! error code, such as `MPI_Wtime`, returns the result of the function.
//! If `MPI_X` and `MPI_X_c` differ only in scalars, one implementation is enough.
//! The other function is then generated as a call with converted arguments.
//! A collective has six functions: `MPI_X`, `MPI_IX` and `MPI_X_init`, each also with large counts.
//! All these functions call `plan_X`, which checks the arguments and builds an operation.
//! If a `fast_X` exists, the blocking and the nonblocking functions call it first.
//! If a `trivial_X` exists, the exported function calls it before anything else.
//! If a `lane_X` exists and messages have lanes, the exported function first calls it without the global lock;
//! `lane_X` returns `None` if the call belongs to lane 0.
//! A safe implementation has pointer arguments of the types in `src/api/args`.
//! An `unsafe` implementation has C pointers.
//! Every other function is exported too, and raises `MPI_ERR_UNSUPPORTED_OPERATION` with its name.
//! If a function fails, its generated code stores null handles in its output arguments.

use crate::arguments::{Argument, is_memory, typed};
use mpi_api_tables::{Function, Functions, Item, Kind, Param, Section, parse_prototype};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Handle types whose argument determines the error handler of a failing call.
const ERROR_TARGETS: [&str; 4] = ["MPI_Comm", "MPI_Win", "MPI_File", "MPI_Session"];

/// The value of [`Function::since`] that marks an extension in the table.
const EXTENSION: &str = "x";

/// The number of the chapter of extensions that other libraries also have.
/// These extensions are exported as `MPI_X`, too.
const OTHERS_HAVE: u32 = 0;

/// The number of the standard's chapter on files.
const FILES: u32 = 14;

/// The comment above each call in an exported function that forwards its caller's arguments.
const PROMISE: &str = "// SAFETY: the caller's arguments are handed on as they came; what the standard demands of them is his promise.";

/// Returns the types and constants.
pub fn types(sections: &[Section]) -> String {
    let mut out = String::new();
    for s in sections {
        match s.kind {
            Kind::Typedef => {
                for i in &s.items {
                    let _ = writeln!(out, "pub type {} = {};", i.name, base_type(&i.value));
                }
            }
            Kind::Struct => struct_type(&mut out, s),
            Kind::Handle => handle_type(&mut out, s),
            Kind::Enum => {
                if !s.ctype.is_empty() {
                    let _ = writeln!(out, "/// {}.\npub type {} = c_int;", s.title, s.ctype);
                }
                for i in &s.items {
                    let _ = writeln!(out, "pub const {}: c_int = {};", i.name, i.value);
                }
            }
            Kind::Define => {
                for i in &s.items {
                    define(&mut out, &s.ctype, i);
                }
            }
            Kind::Callback => {
                for i in &s.items {
                    callback(&mut out, i);
                }
            }
            Kind::Alias => {
                for i in &s.items {
                    let _ = writeln!(out, "pub type {} = {};", i.name, i.value);
                }
            }
        }
    }
    error_classes(&mut out, sections);
    out
}

fn struct_type(out: &mut String, s: &Section) {
    let _ = writeln!(
        out,
        "/// {}.\n#[repr(C)]\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct {} {{",
        s.title, s.ctype
    );
    for i in &s.items {
        let (ctype, field) = i.value.split_once(' ').unwrap_or_default();
        let rust = base_type(ctype);
        let _ = match field.split_once('[') {
            Some((name, len)) => writeln!(out, "    pub {name}: [{rust}; {len},"),
            None => writeln!(out, "    pub {field}: {rust},"),
        };
    }
    out.push_str("}\n");
}

fn handle_type(out: &mut String, s: &Section) {
    let _ = writeln!(
        out,
        "/// {}: a handle as wide as a pointer.\n#[repr(transparent)]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\npub struct {}(pub usize);",
        s.title, s.ctype
    );
    for i in &s.items {
        let value = match i.number() {
            Some(n) => format!("{}({n:#x})", s.ctype),
            None => i.value.clone(),
        };
        let _ = writeln!(out, "pub const {}: {} = {value};", i.name, s.ctype);
    }
    let names: Vec<String> = s
        .items
        .iter()
        .filter(|i| i.number().is_some())
        .map(|i| format!("({}, \"{}\")", i.value, i.name))
        .collect();
    let _ = writeln!(
        out,
        "impl {} {{\n    /// The predefined handles and their names, in the order of the table.\n    \
         pub const PREDEFINED: &'static [(usize, &'static str)] = &[{}];\n}}",
        s.ctype,
        names.join(", ")
    );
}

fn define(out: &mut String, ctype: &str, item: &Item) {
    let base = ctype.trim_end_matches('*');
    let stars = ctype.len() - base.len();
    let _ = if stars == 0 {
        writeln!(
            out,
            "pub const {}: {} = {};",
            item.name,
            base_type(base),
            item.value
        )
    } else if base.ends_with("_function") || base.ends_with("_function_c") {
        // An integer such as 0x1 is no valid Rust function pointer, so the type is `usize`.
        writeln!(out, "pub const {}: usize = {};", item.name, item.value)
    } else {
        let rust = format!("{}{}", "*mut ".repeat(stars - 1), base_type(base));
        writeln!(
            out,
            "pub const {}: *mut {rust} = std::ptr::without_provenance_mut({});",
            item.name, item.value
        )
    };
}

fn callback(out: &mut String, item: &Item) {
    let Some((returns, name, params)) = parse_prototype(&item.value) else {
        return;
    };
    let params: Vec<String> = params
        .iter()
        .map(|p| match p.is_variable() {
            true => "...".to_string(),
            false => pointer_type(p),
        })
        .collect();
    let result = match returns.as_str() {
        "void" => String::new(),
        other => format!(" -> {}", base_type(other)),
    };
    let _ = writeln!(
        out,
        "/// May throw, where it is called by `crate::thrown::guarded`.\npub type {name} = unsafe extern \"C-unwind\" fn({}){result};",
        params.join(", ")
    );
}

/// Writes the names and texts of the error classes.
fn error_classes(out: &mut String, sections: &[Section]) {
    out.push_str(
        "/// Every error class with its name and its text.\n\
         pub const ERROR_CLASSES: &[(c_int, &str, &str)] = &[\n",
    );
    let classes = sections
        .iter()
        .filter(|s| s.items.first().is_some_and(|i| i.name == "MPI_SUCCESS"))
        .flat_map(|s| &s.items);
    for i in classes {
        let text = i.note.as_deref().unwrap_or_default();
        let _ = writeln!(out, "    ({0}, \"{0}\", {text:?}),", i.name);
    }
    out.push_str("];\n");
}

fn base_type(c: &str) -> &str {
    match c {
        "int" => "c_int",
        "double" => "c_double",
        "char" => "c_char",
        "void" => "c_void",
        "intptr_t" => "isize",
        "int64_t" => "i64",
        other => other,
    }
}

/// Returns the Rust type of a parameter that is not a callback.
fn pointer_type(p: &Param) -> String {
    p.rust_type(base_type(&p.base))
}

/// A function of `src/api` that implements an MPI function.
pub struct Implementation {
    /// The Rust path of the implementation.
    pub path: String,
    /// True if its pointer arguments have types of `src/api/args`, false if they are C pointers.
    pub is_safe: bool,
}

/// Generator of the exported functions.
pub struct Exports<'a> {
    functions: &'a Functions,
    /// The extensions. Their ids follow those of the standard's functions.
    extensions: &'a Functions,
    callbacks: BTreeSet<&'a str>,
    /// The null handle of each handle type.
    nulls: BTreeMap<&'a str, &'a str>,
    /// Each implementation in `src/api`, by function name.
    found: &'a BTreeMap<String, Implementation>,
}

impl<'a> Exports<'a> {
    pub fn new(
        functions: &'a Functions,
        extensions: &'a Functions,
        sections: &'a [Section],
        found: &'a BTreeMap<String, Implementation>,
    ) -> Self {
        let callbacks = sections
            .iter()
            .filter(|s| matches!(s.kind, Kind::Callback | Kind::Alias))
            .flat_map(|s| s.items.iter().map(|i| i.name.as_str()))
            .collect();
        let nulls = sections
            .iter()
            .filter(|s| s.kind == Kind::Handle)
            .filter_map(|s| {
                let null = s.items.iter().find(|i| i.name.ends_with("_NULL"))?;
                Some((s.ctype.as_str(), null.name.as_str()))
            })
            .collect();
        Exports {
            functions,
            extensions,
            callbacks,
            nulls,
            found,
        }
    }

    /// Returns the text of the exported symbols.
    pub fn symbols(&self) -> String {
        let mut out = String::new();
        let first = self.functions.functions.len();
        for (id, f) in self.functions.functions.iter().enumerate() {
            self.export(&mut out, id, f, self.body(f));
        }
        for (id, f) in (first..).zip(&self.extensions.functions) {
            self.export(&mut out, id, f, self.body(f));
            if self.extensions.chapters[f.chapter].number == OTHERS_HAVE {
                self.export_alias(&mut out, f);
            }
        }
        out
    }

    /// Returns the text of the list of functions.
    pub fn list(&self) -> String {
        let mut out = String::new();
        let mut list = String::new();
        for f in &self.functions.functions {
            let chapter = &self.functions.chapters[f.chapter];
            let _ = writeln!(
                list,
                "    FunctionInfo {{ name: {:?}, chapter: {}, subject: {:?}, since: {:?}, implemented: {} }},",
                f.name,
                chapter.number,
                chapter.title,
                f.since,
                self.body(f).is_some()
            );
        }
        let mut beyond = String::new();
        for f in &self.extensions.functions {
            let subject = &self.extensions.chapters[f.chapter].title;
            let _ = writeln!(
                beyond,
                "    FunctionInfo {{ name: {:?}, chapter: 0, subject: {subject:?}, since: {:?}, implemented: true }},",
                f.name, f.since,
            );
        }
        let _ = writeln!(
            out,
            "/// The functions beyond the standard; a call id is an index into them behind the last function.\n\
             pub static EXTENSIONS: [FunctionInfo; {}] = [\n{beyond}];",
            self.extensions.functions.len()
        );
        let _ = writeln!(
            out,
            "/// Every function of the interface, in the order of the table; a call id is an index into it.\n\
             pub static FUNCTIONS: [FunctionInfo; {}] = [\n{list}];",
            self.functions.functions.len()
        );
        out
    }

    /// Returns the expression of the object whose error handler is called if `f` fails.
    fn error_target(&self, f: &Function) -> String {
        let of_kinds = |kinds: &[&str]| {
            let mut handles = f.params.iter().filter(|p| p.by_value());
            let handle = handles.find(|p| kinds.contains(&p.base.as_str()))?;
            let kind = handle.base.trim_start_matches("MPI_");
            Some(format!("Target::{kind}({})", handle.rust_name()))
        };
        if f.since == EXTENSION {
            return of_kinds(&ERROR_TARGETS).unwrap_or("Target::None".into());
        }
        // Functions that open or delete a file have no file handle yet.
        // Their failures do not concern the communicator (MPI 5.0, section 14.7).
        if self.functions.chapters[f.chapter].number == FILES {
            return of_kinds(&["MPI_File"]).unwrap_or("Target::File(MPI_FILE_NULL)".into());
        }
        of_kinds(&ERROR_TARGETS).unwrap_or("Target::None".into())
    }

    fn export(&self, out: &mut String, id: usize, f: &Function, body: Option<String>) {
        let name = &f.name;
        let params: Vec<String> = f
            .fixed_params()
            .map(|p| format!("{}: {}", p.rust_name(), self.rust_type(p)))
            .collect();
        let params = params.join(", ");
        let args = arguments(f);
        let result = base_type(&f.returns);
        let target = self.error_target(f);
        let body = if f.returns_value() {
            // A function that returns no error code cannot report a missing implementation.
            body.unwrap_or_else(|| format!("compile_error!(\"{name} has no implementation\")"))
        } else if f.is_tool() {
            let body = body.unwrap_or_else(|| "Err(Failure::unsupported_tool())".to_string());
            format!("tool_call({id}, move || {body})")
        } else {
            let body = body.unwrap_or_else(|| format!("Err(Failure::unsupported({id}))"));
            let on_error = self.null_handles(f);
            // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
            let on_error = match on_error.is_empty() {
                true => "|| ()".to_string(),
                false => format!("move || unsafe {{ {on_error} }}"),
            };
            let (until, with) = match buffers_until(f) {
                Some(until) => (format!("{until}, "), "_with_buffers"),
                None => (String::new(), ""),
            };
            let before = format!("{id}, {target}, {on_error}, {until}");
            match self.lane(f) {
                None if with.is_empty() => {
                    format!("pass_on(call_creating({before}move || {body}))")
                }
                None => format!("pass_on(call{with}({before}move || {body}))"),
                Some(lane) => {
                    // Separate functions, so the decision between them saves no registers.
                    // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
                    let _ = writeln!(
                        out,
                        "#[cold]\n#[inline(never)]\nunsafe extern \"C-unwind\" fn {name}_in_lane({params}) -> {result} {{\n    \
                         {PROMISE}\n    \
                         match call_in_lane({id}, {target}, {on_error}, move || unsafe {{ {lane} }}) {{\n        \
                         Some(code) => pass_on(code),\n        \
                         None => unsafe {{ {name}_with_extras({args}) }},\n    }}\n}}\n\
                         #[inline(never)]\nunsafe extern \"C-unwind\" fn {name}_with_extras({params}) -> {result} {{\n    \
                         {PROMISE}\n    \
                         pass_on(call{with}_entered_by(crate::state::enter_with_extras, {before}move || {body}))\n}}\n\
                         #[inline(never)]\nunsafe extern \"C-unwind\" fn {name}_plainly({params}) -> {result} {{\n    \
                         {PROMISE}\n    \
                         pass_on(call{with}_entered_by(crate::state::enter_plainly, {before}move || {body}))\n}}"
                    );
                    // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
                    format!(
                        "if !crate::state::has_extras() {{ return unsafe {{ {name}_plainly({args}) }}; }}\n    \
                         if crate::state::have_lanes() {{ return unsafe {{ {name}_in_lane({args}) }}; }}\n    \
                         unsafe {{ {name}_with_extras({args}) }}"
                    )
                }
            }
        };
        let trivial = f.name.strip_prefix("MPI_").map(|x| format!("trivial_{x}"));
        let body = match trivial.and_then(|trivial| self.found.get(&trivial)) {
            Some(trivial) => {
                let quick = self.invoked(trivial, f, &plain_arguments(&f.params));
                // The normal path is a separate function, so the trivial path saves no registers.
                let _ = writeln!(
                    out,
                    "#[inline(never)]\nunsafe extern \"C-unwind\" fn {name}_in_full({params}) -> {result} {{\n    \
                     {PROMISE}\n    {body}\n}}"
                );
                // SAFETY: generated text, whose SAFETY comment [`PROMISE`] is written above the block.
                format!(
                    "if crate::state::is_untraced() && unsafe {{ {quick} }} {{ return MPI_SUCCESS; }}\n    \
                     unsafe {{ {name}_in_full({args}) }}"
                )
            }
            None => body,
        };
        let unused = if body.contains("unsupported") {
            "#[allow(unused_variables)]\n"
        } else {
            ""
        };
        // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
        let to_profiled = format!("unsafe {{ P{name}({args}) }}");
        let _ = writeln!(
            out,
            "{unused}#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn P{name}({params}) -> {result} {{\n    \
             {PROMISE}\n    {body}\n}}\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn {name}({params}) -> {result} {{\n    \
             {PROMISE}\n    {to_profiled}\n}}"
        );
    }

    /// Exports an extension `MPIX_X` also as `MPI_X`.
    fn export_alias(&self, out: &mut String, f: &Function) {
        let Some(plain) = f.name.strip_prefix("MPIX_") else {
            return;
        };
        let params: Vec<String> = (f.params.iter())
            .map(|p| format!("{}: {}", p.rust_name(), self.rust_type(p)))
            .collect();
        let (params, args) = (params.join(", "), arguments(f));
        // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
        let call = |name: &str| format!("unsafe {{ {name}({args}) }}");
        let (profiled, direct) = (
            call(&format!("PMPI_{plain}")),
            call(&format!("P{}", f.name)),
        );
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn PMPI_{plain}({params}) -> c_int {{\n    \
             {PROMISE}\n    {direct}\n}}\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn MPI_{plain}({params}) -> c_int {{\n    \
             {PROMISE}\n    {profiled}\n}}"
        );
    }

    /// Returns the statements that store null handles in the output arguments of a failed call.
    fn null_handles(&self, f: &Function) -> String {
        let made = f.params.iter().filter(|p| p.scalar_out() && !p.inout);
        made.filter_map(|p| {
            let null = match p.base.as_str() {
                "int" if p.name.ends_with("keyval") => "MPI_KEYVAL_INVALID",
                handle => self.nulls.get(handle)?,
            };
            Some(format!("reset_handle({}, {null});", p.rust_name()))
        })
        .collect()
    }

    /// Returns the expression of the call, or `None` if the function is not implemented.
    fn body(&self, f: &Function) -> Option<String> {
        if let Some(path) = self.found.get(&f.name) {
            // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
            let call = self.invoked(path, f, &plain_arguments(&f.params));
            return Some(format!("unsafe {{ {call} }}"));
        }
        if let Some(body) = self.planned(f) {
            return Some(body);
        }
        let twin_name = match f.name.strip_suffix("_c") {
            Some(small) => small.to_string(),
            None => format!("{}_c", f.name),
        };
        let path = self.found.get(&twin_name)?;
        let twin = self
            .functions
            .functions
            .iter()
            .find(|t| t.name == twin_name)?;
        self.converted(f, twin, path)
    }

    /// Returns the expression that executes a call in its lane, if `lane_X` or `lane_X_c` exists.
    fn lane(&self, f: &Function) -> Option<String> {
        let name = f.name.strip_prefix("MPI_")?;
        let find = |name: &str| self.found.get(&format!("lane_{name}"));
        let lane = find(name).or_else(|| find(&format!("{name}_c")))?;
        Some(self.invoked(lane, f, &plain_arguments(&f.params)))
    }

    /// Returns the expression of a call of the implementation `body` with the arguments `args`.
    fn invoked(&self, body: &Implementation, f: &Function, args: &[Argument<'_>]) -> String {
        format!("{}({})", body.path, self.values(body, f, args).join(", "))
    }

    /// Returns the arguments of a call of the implementation `body`.
    fn values(&self, body: &Implementation, f: &Function, args: &[Argument<'_>]) -> Vec<String> {
        match body.is_safe {
            true => self.typed(f, args),
            false => args.iter().map(|a| a.value.clone()).collect(),
        }
    }

    fn typed(&self, f: &Function, args: &[Argument<'_>]) -> Vec<String> {
        typed(f, args, |p| self.is_function(p))
    }

    /// Returns true for a parameter that is a callback.
    fn is_function(&self, p: &Param) -> bool {
        self.callbacks.contains(p.base.as_str())
    }

    /// Returns the expression of a collective: a call of `plan_X` and the execution of the plan.
    fn planned(&self, f: &Function) -> Option<String> {
        let base = f
            .name
            .strip_suffix("_c")
            .unwrap_or(&f.name)
            .strip_prefix("MPI_")?;
        let plan = |x: &str| self.found.get(&format!("plan_{x}"));
        let (path, execute, extra, base) = if let Some(path) = plan(base) {
            (path, "carry_out", 0, base.to_owned())
        } else if let Some(path) = base.strip_suffix("_init").and_then(plan) {
            (path, "prepare", 2, base.to_owned())
        } else {
            let (first, rest) = base.strip_prefix('I')?.split_at_checked(1)?;
            let blocking = format!("{}{rest}", first.to_uppercase());
            (plan(&blocking)?, "begin", 1, blocking)
        };
        let all = plain_arguments(&f.params);
        let (mine, rest) = all.split_at_checked(all.len().checked_sub(extra)?)?;
        let rest: String = (self.typed(f, rest).iter())
            .map(|argument| format!(", {argument}"))
            .collect();
        let plan = self.invoked(path, f, mine);
        // The base of a persistent form ends with `_init`, so it has no fast function.
        if let Some(fast) = self.found.get(&format!("fast_{base}")) {
            let mut values = self.values(fast, f, mine);
            values.push(format!("crate::api::collective::fast_call::{execute}"));
            let fast = format!("{}({})", fast.path, values.join(", "));
            // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
            return Some(format!(
                "unsafe {{ crate::api::collective::{execute}_unless({fast}, || {plan}{rest}) }}"
            ));
        }
        // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
        Some(format!(
            "{{ unsafe {{ crate::api::collective::{execute}({plan}?{rest}) }} }}"
        ))
    }

    /// Generates `f` as a call of `twin`: `MPI_X_c` for `MPI_X`, or `MPI_X` for `MPI_X_c`.
    /// Converts the scalar arguments. Returns `None` if parameters that are not scalars differ.
    fn converted(&self, f: &Function, twin: &Function, body: &Implementation) -> Option<String> {
        if f.params.len() != twin.params.len() {
            return None;
        }
        let (mut before, mut args, mut after) = (String::new(), Vec::new(), String::new());
        for (mine, theirs) in f.params.iter().zip(&twin.params) {
            let name = mine.rust_name();
            let value = if mine.declaration == theirs.declaration {
                name.clone()
            } else if mine.by_value() && theirs.by_value() {
                format!("scalar({name}, {:?})?", mine.name)
            } else if mine.scalar_out() && theirs.scalar_out() && mine.base.starts_with(['i', 'M'])
            {
                let wide = format!("{}_converted", mine.name);
                let start = if mine.inout {
                    format!("read_scalar({name}, {:?})?", mine.name)
                } else {
                    "0".to_string()
                };
                let _ = write!(
                    before,
                    "let mut {wide}: {} = {start}; ",
                    base_type(&theirs.base)
                );
                let _ = write!(after, "write_scalar({name}, {wide}); ");
                format!("if {name}.is_null() {{ std::ptr::null_mut() }} else {{ &raw mut {wide} }}")
            } else {
                return None;
            };
            let param = theirs;
            args.push(Argument { param, name, value });
        }
        // A callback is declared like a pointer to a scalar, but callbacks are not converted here.
        if f.params
            .iter()
            .zip(&twin.params)
            .any(|(a, b)| a.declaration != b.declaration && a.base.contains("function"))
        {
            return None;
        }
        // SAFETY: generated text, whose SAFETY comment is [`PROMISE`], written above the block.
        Some(format!(
            "{{ unsafe {{ {before}{}?; {after}Ok(()) }} }}",
            self.invoked(body, f, &args)
        ))
    }

    fn rust_type(&self, p: &Param) -> String {
        // A parameter of a function type is a function pointer, which may be null.
        if self.is_function(p) && p.stars <= 1 {
            format!("Option<{}>", p.base)
        } else {
            pointer_type(p)
        }
    }
}

/// Returns the expression of the event until which a function uses its buffer arguments:
/// its return, the completion of its request, or the synchronization of its window.
/// Returns `None` for a function without buffer arguments.
fn buffers_until(f: &Function) -> Option<String> {
    if !f.params.iter().any(is_memory) && !f.params.iter().any(is_packed) {
        return None;
    }
    let request = (f.params.iter()).find(|p| p.base == "MPI_Request" && p.scalar_out() && !p.inout);
    let window = (f.params.iter()).find(|p| p.base == "MPI_Win" && p.by_value());
    let rank = f.params.iter().find(|p| p.name == "target_rank");
    Some(match (request, window.zip(rank)) {
        (Some(request), _) => format!("BuffersUntil::Request({})", request.rust_name()),
        (None, Some((window, rank))) => format!(
            "BuffersUntil::Synchronized({}, {})",
            window.rust_name(),
            rank.rust_name()
        ),
        (None, None) => "BuffersUntil::Return".into(),
    })
}

/// Returns true for a buffer of bytes.
fn is_packed(p: &Param) -> bool {
    p.base == "void" && p.stars == 1 && !p.length.is_empty()
}

/// Returns the arguments of a C function without conversions.
fn plain_arguments(params: &[Param]) -> Vec<Argument<'_>> {
    let fixed = params.iter().filter(|p| !p.is_variable());
    let argument = |param| {
        let name = Param::rust_name(param);
        let value = name.clone();
        Argument { param, name, value }
    };
    fixed.map(argument).collect()
}

fn arguments(f: &Function) -> String {
    let names: Vec<String> = f.fixed_params().map(Param::rust_name).collect();
    names.join(", ")
}
