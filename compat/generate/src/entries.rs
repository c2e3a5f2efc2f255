//! Generator of the exported functions, which convert arguments, results and return codes.

use crate::backend::{base, is_function, is_handle, is_plain_function, parameter};
use crate::direction::Below;
use crate::families::variant;
use crate::tables::{HANDLES, Tables, is_of_standard_abi_only, is_ours_alone, is_query};
use mpi_api_tables::{Function, Param};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Text of a SAFETY comment: the reason why an exported function may call its unsafe body.
const EXPORTED: &str =
    "the body has the requirements of this function of the standard, which the caller meets";

/// Texts of SAFETY comments in generated bodies, one clause per pattern of generated code.
mod clauses {
    pub const BY_HAND: &str = "the function by hand has the requirements of this function of the standard, which the caller meets";
    pub const PASSED: &str = "`backend` finds the function of this name below, whose requirements are the standard's, and the caller meets those";
    pub const UNCONVERTED: &str = "the slot of this name holds the backend's own function, which gets the backend's own arguments";
    pub const HANDLE_OUT: &str =
        "the guard of an output handle writes to the address that the caller gave for it";
    pub const STATUS: &str =
        "a status is accessed at the caller's address, unless the caller ignores it";
    pub const TEXT: &str =
        "the caller's text buffer has the length of the limit in the caller's ABI";
    pub const ATTACHED: &str =
        "the caller's address is null or that of a pointer, which need not be aligned";
    pub const WORD_OUT: &str = "a word is converted where the call below has written it";
    pub const WORD_IN_OUT: &str = "a word is accessed at the caller's address, unless that is null";
    pub const ARRAY: &str = "an array of words has the length that the caller passes with it";
}

/// Returns the SAFETY comment above an `unsafe` block.
fn safety(clauses: &[&str]) -> String {
    format!("// SAFETY: {}.", clauses.join("; "))
}

/// Names of the functions by kind of implementation, for the build report.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Functions generated from the tables.
    pub generated: Vec<String>,
    /// Functions written by hand in `compat/src`.
    pub by_hand: Vec<String>,
    /// Functions of the standard ABI that the other ABI lacks, so they are not exported.
    pub left_out: Vec<String>,
}

/// Generates the exported functions. In their scope, `F` is the `Family` type.
/// Also returns the names of the functions by kind of implementation.
pub fn write(
    tables: &Tables,
    below: Below,
    by_hand: &BTreeMap<String, &'static str>,
) -> Result<(String, Served), String> {
    let (mut out, mut served) = (String::new(), Served::default());
    for f in &tables.functions {
        if below == Below::Standard && is_of_standard_abi_only(&f.name) {
            served.left_out.push(f.name.clone());
            continue;
        }
        let (body, mut reasons) = if let Some(module) = by_hand.get(&f.name) {
            served.by_hand.push(f.name.clone());
            let names: Vec<String> = f.fixed_params().map(|p| p.rust_name()).collect();
            let body = format!("compat::{module}::{}::<F>({})", f.name, names.join(", "));
            (body, vec![clauses::BY_HAND])
        } else {
            served.generated.push(f.name.clone());
            let body = Body::of(tables, f)?;
            (body.write(), body.reasons)
        };
        let params: Vec<String> = f
            .fixed_params()
            .map(|p| {
                let kind = parameter(p, "Handle", "usize", "Status");
                format!("{}: {kind}", p.rust_name())
            })
            .collect();
        let names: Vec<String> = f.fixed_params().map(|p| p.rust_name()).collect();
        let (params, names) = (params.join(", "), names.join(", "));
        let result = base(&f.returns, "Handle", "usize", "Status");
        let name = &f.name;
        let body = match below {
            Below::Standard => body,
            Below::Foreign => {
                reasons.push(clauses::UNCONVERTED);
                guarded(f, &names, &body, tables.is_alone(&f.name))
            }
        };
        let why = safety(&reasons);
        let _ = writeln!(
            out,
            "#[inline(always)]\nunsafe fn body_{name}({params}) -> {result} {{\n    {why}\n    unsafe {{ {body} }}\n}}"
        );
        let why = safety(&[EXPORTED]);
        for symbol in symbols(name) {
            let _ = writeln!(
                out,
                "#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn {symbol}({params}) -> {result} {{\n    \
                 {why}\n    unsafe {{ body_{name}({names}) }}\n}}"
            );
        }
    }
    Ok((out, served))
}

/// Returns the exported names of a function. An extension `MPIX_X` is also exported as `MPI_X`,
/// as in some libraries.
fn symbols(name: &str) -> Vec<String> {
    let later = name
        .strip_prefix("MPIX_")
        .filter(|_| !is_ours_alone(name) && !is_query(name))
        .map(|rest| format!("MPI_{rest}"));
    let names = [Some(name.to_string()), later].into_iter().flatten();
    names.flat_map(|name| [format!("P{name}"), name]).collect()
}

/// Generates a function body that passes calls made by the backend itself to the backend,
/// without conversion.
/// `alone` is true if the backend implements this function without calling exported MPI functions;
/// then the body does not set the reentrancy flag.
fn guarded(f: &Function, names: &str, body: &str, alone: bool) -> String {
    let types: Vec<String> = f
        .fixed_params()
        .map(|p| parameter(p, "Handle", "usize", "Status"))
        .collect();
    let result = base(&f.returns, "Handle", "usize", "Status");
    let back = format!(
        "if reentrancy::is_set() {{ return unconverted::<unsafe extern \"C-unwind\" fn({}) -> {result}, {{ backend::slot::{} }}>()({names}); }}",
        types.join(", "),
        f.name,
    );
    match alone {
        true => format!("{back} {body}"),
        false => format!("{back} let _inside = reentrancy::Inside::enter(); {body}"),
    }
}

/// Returns the variant of `Kind` for a handle type: `MPI_Comm` becomes `Comm`.
pub fn kind_of(base: &str) -> &str {
    base.trim_start_matches("MPI_")
}

/// The parts of a generated function's body.
struct Body<'a> {
    function: &'a Function,
    before: String,
    arguments: Vec<String>,
    /// Code that runs only after a successful call.
    on_success: String,
    /// Clauses of the SAFETY comment (see [`clauses`]), each at most once.
    reasons: Vec<&'static str>,
}

impl<'a> Body<'a> {
    fn of(tables: &Tables, f: &'a Function) -> Result<Self, String> {
        let mut body = Body {
            function: f,
            before: String::new(),
            arguments: Vec::new(),
            on_success: String::new(),
            reasons: vec![clauses::PASSED],
        };
        for p in f.fixed_params() {
            body.parameter(tables, p)
                .map_err(|what| format!("{}, parameter {}: {what}", f.name, p.name))?;
        }
        Ok(body)
    }

    fn because(&mut self, clause: &'static str) {
        if !self.reasons.contains(&clause) {
            self.reasons.push(clause);
        }
    }

    fn parameter(&mut self, tables: &Tables, p: &Param) -> Result<(), String> {
        let name = p.rust_name();
        let meaning = tables.meaning(&self.function.name, &p.name);
        if is_plain_function(p) {
            self.arguments.push(name);
            return Ok(());
        }
        if is_function(p) {
            return Err("a function of the program has to be handed on by hand".into());
        }
        if let Some((meaning, length)) = meaning {
            return self.meant(tables, p, &name, meaning, length);
        }
        let handle = is_handle(&p.base);
        let file = p.base == "MPI_File";
        match (p.stars, p.array.as_str()) {
            (0, "") if file => self.arguments.push(format!("F::file_in({name})")),
            (0, "") if handle => {
                let kind = kind_of(&p.base);
                self.arguments
                    .push(format!("F::handle_in(Kind::{kind}, {name})"));
            }
            (1, "") if handle && !p.is_const => self.handle_out(p, &name, file),
            (1, "") if p.base == "MPI_Status" => self.status(p, &name),
            _ if handle || p.base == "MPI_Status" => {
                return Err("arrays of handles and of statuses are converted by hand".into());
            }
            _ => self.arguments.push(name),
        }
        Ok(())
    }

    /// Adds a handle output argument, which is stored for the program when `HandleOut` is dropped.
    fn handle_out(&mut self, p: &Param, name: &str, file: bool) {
        self.because(clauses::HANDLE_OUT);
        let kind = kind_of(&p.base);
        let made = match (file, p.inout) {
            (true, is_read) => format!("FileOut::<F>::new({name}, {is_read})"),
            (false, false) => format!("HandleOut::<F, of::{kind}>::new({name})"),
            (false, true) => format!("HandleInOut::<F, of::{kind}>::new({name})"),
        };
        let _ = write!(self.before, "let mut made_{} = {made}; ", p.name);
        self.arguments.push(format!("made_{}.argument()", p.name));
    }

    fn status(&mut self, p: &Param, name: &str) {
        self.because(clauses::STATUS);
        if p.is_const {
            let _ = write!(
                self.before,
                "let given_{0} = status_given::<F>({name}); ",
                p.name
            );
            self.arguments.push(format!("given_{}.argument()", p.name));
        } else if self.function.name.starts_with("MPI_Status_set") {
            let _ = write!(
                self.before,
                "let mut given_{0} = status_given::<F>({name}); ",
                p.name
            );
            self.arguments
                .push(format!("given_{}.argument_mut()", p.name));
            let _ = write!(self.on_success, "given_{0}.write_back({name}); ", p.name);
        } else {
            let _ = write!(
                self.before,
                "let mut filled_{0} = StatusOut::<F>::new({name}); ",
                p.name
            );
            self.arguments.push(format!("filled_{}.argument()", p.name));
        }
    }

    /// Adds a parameter whose conversion (`meaning`) the tables define.
    fn meant(
        &mut self,
        tables: &Tables,
        p: &Param,
        name: &str,
        meaning: &str,
        length: Option<&str>,
    ) -> Result<(), String> {
        if let Some(limit) = meaning.strip_prefix("text.") {
            self.because(clauses::TEXT);
            let limit = variant(limit);
            let _ = write!(
                self.before,
                "let mut text = TextOut::new(F::limit(Limit::{limit}), {name}); "
            );
            self.arguments.push("text.argument()".into());
            let has_length = self
                .function
                .fixed_params()
                .any(|q| tables.meaning(&self.function.name, &q.name) == Some(("textlen", None)));
            let length = if has_length {
                "resultlen"
            } else {
                "null_mut()"
            };
            let _ = write!(self.on_success, "text.finish({length}); ");
            return Ok(());
        }
        match meaning {
            "textlen" => self.arguments.push("text.length_argument()".into()),
            "buffer" => self.arguments.push(match p.is_const {
                true => format!("F::buffer_in({name}.cast_mut()).cast_const()"),
                false => format!("F::buffer_in({name})"),
            }),
            "attached" => {
                self.because(clauses::ATTACHED);
                self.arguments.push(name.into());
                let _ = write!(
                    self.on_success,
                    "if !{name}.is_null() {{ let place = {name}.cast::<*mut c_void>(); place.write_unaligned(F::buffer_out(place.read_unaligned())); }} "
                );
            }
            "weights" => self.arguments.push(match p.is_const {
                true => format!("F::weights_in({name}.cast_mut()).cast_const()"),
                false => format!("F::weights_in({name})"),
            }),
            "pvar" => self.arguments.push(format!("F::pvar_in({name})")),
            "displacement" => self.arguments.push(format!("displacement_in::<F>({name})")),
            word => {
                tables
                    .word(word)
                    .ok_or_else(|| format!("no word `{word}`"))?;
                self.word(p, name, &variant(word), length);
            }
        }
        Ok(())
    }

    fn word(&mut self, p: &Param, name: &str, word: &str, length: Option<&str>) {
        match length {
            None if p.by_value() => self
                .arguments
                .push(format!("F::word_in(Word::{word}, {name})")),
            None if !p.inout => {
                self.because(clauses::WORD_OUT);
                self.arguments.push(name.into());
                let _ = write!(
                    self.on_success,
                    "word_to_program::<F>(Word::{word}, {name}); "
                );
            }
            None => {
                self.because(clauses::WORD_IN_OUT);
                let _ = write!(
                    self.before,
                    "let mut word_{0}: c_int = if {name}.is_null() {{ 0 }} else {{ F::word_in(Word::{word}, *{name}) }}; ",
                    p.name
                );
                self.arguments.push(format!(
                    "if {name}.is_null() {{ null_mut() }} else {{ &raw mut word_{} }}",
                    p.name
                ));
                let _ = write!(
                    self.on_success,
                    "if !{name}.is_null() {{ *{name} = F::word_out(Word::{word}, word_{}); }} ",
                    p.name
                );
            }
            Some(length) if p.is_const => {
                self.because(clauses::ARRAY);
                let _ = write!(
                    self.before,
                    "let mut short_{0} = ShortArray::new(); let words_{0} = words_in::<F>(&mut short_{0}, Word::{word}, {name}, {length}); ",
                    p.name
                );
                self.arguments.push(format!("words_{}.argument()", p.name));
            }
            Some(length) => {
                self.because(clauses::ARRAY);
                self.arguments.push(name.into());
                let _ = write!(
                    self.on_success,
                    "words_out::<F>(Word::{word}, {name}, {length}); "
                );
            }
        }
    }

    fn write(&self) -> String {
        let f = self.function;
        let call = format!(
            "(backend::{}::<F>())({})",
            f.name,
            self.arguments.join(", ")
        );
        if f.returns_value() {
            debug_assert!(!HANDLES.contains(&f.returns.as_str()));
            return format!("{}{call}", self.before);
        }
        let on_success = match self.on_success.as_str() {
            "" => String::new(),
            text => format!("if code == 0 {{ {text}}} "),
        };
        format!(
            "{}let code = {call}; {on_success}code_out::<F>(code)",
            self.before
        )
    }
}

impl Served {
    /// Returns the lists of function names as Rust constants, for the build report and its test.
    pub fn write(&self) -> String {
        let list = |name: &str, what: &str, names: &[String]| {
            format!(
                "/// {what}\npub const {name}: [&str; {}] = {names:?};\n",
                names.len()
            )
        };
        [
            list(
                "GENERATED",
                "Functions that are written from the tables.",
                &self.generated,
            ),
            list(
                "BY_HAND",
                "Functions that no table describes.",
                &self.by_hand,
            ),
            list(
                "LEFT_OUT",
                "Functions of the standard ABI alone.",
                &self.left_out,
            ),
        ]
        .concat()
    }
}
