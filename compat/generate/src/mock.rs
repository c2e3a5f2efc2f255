//! Generator of a mock backend, with a checking call for each generated function.
//!
//! The call passes a constant of the program's ABI wherever a table says that the ABIs differ.
//! All other arguments are distinct numbers and addresses.
//! The mock records its arguments, and writes constants of its own ABI to the outputs.
//! The expected values come from the tables of constants, not from the conversions.

use crate::backend::{base, is_function, is_handle, is_plain_function, parameter, result};
use crate::direction::Below;
use crate::entries::Served;
use crate::families::Which;
use crate::sides::Sides;
use crate::tables::Tables;
use mpi_api_tables::{Function, Param};
use std::fmt::Write;

/// Generates the text of the tests.
/// The including module has `address`, `call` and the other helpers of `compat/shared/mock.rs`.
pub fn write(
    tables: &Tables,
    which: Which,
    below: Below,
    served: &Served,
) -> Result<String, String> {
    let sides = Sides {
        tables,
        which,
        below,
    };
    let mut out = sides.write()?;
    let mut calls = String::new();
    for (id, f) in tables.functions.iter().enumerate() {
        if !served.generated.contains(&f.name) {
            continue;
        }
        let mut mock = Mock {
            sides: &sides,
            tables,
            function: f,
            before: String::new(),
            arguments: Vec::new(),
            sees: String::new(),
            writes: String::new(),
            expects: String::new(),
            after: String::new(),
        };
        for (i, p) in f.fixed_params().enumerate() {
            mock.parameter(i, p)
                .map_err(|what| format!("mock of {}, parameter {}: {what}", f.name, p.name))?;
        }
        out.push_str(&mock.text(id));
        let _ = writeln!(calls, "    check_{}();", f.name);
    }
    let _ = writeln!(
        out,
        "/// Calls each function once.\nfn check_generated() {{\n{calls}}}"
    );
    Ok(out)
}

struct Mock<'a> {
    sides: &'a Sides<'a>,
    tables: &'a Tables,
    function: &'a Function,
    before: String,
    arguments: Vec<String>,
    sees: String,
    writes: String,
    expects: String,
    after: String,
}

impl Mock<'_> {
    fn see(&mut self, i: usize, value: &str) {
        let _ = write!(self.sees, "see({i}, {value}); ");
    }

    fn expect(&mut self, i: usize, p: &Param, value: &str) {
        let _ = write!(
            self.expects,
            "assert_eq!(seen({i}), ({value}) as i64 as u64, \"{}, {}: what arrives below\"); ",
            self.function.name, p.name
        );
    }

    fn finds(&mut self, p: &Param, found: &str, value: &str) {
        let _ = write!(
            self.after,
            "assert_eq!({found} as i64, ({value}) as i64, \"{}, {}: what the program finds\"); ",
            self.function.name, p.name
        );
    }

    fn parameter(&mut self, i: usize, p: &Param) -> Result<(), String> {
        let meaning = self.tables.meaning(&self.function.name, &p.name);
        let meaning = meaning.map(|(m, n)| (m.to_string(), n.map(str::to_string)));
        if is_plain_function(p) {
            self.arguments.push(format!("{}usize", 0x4000 + i));
            self.see(i, &format!("a{i} as u64"));
            self.expect(i, p, &format!("{}u64", 0x4000 + i));
            return Ok(());
        }
        if is_function(p) {
            return Err("a function of the program is handed on by hand".into());
        }
        match (&meaning, p.stars, p.array.as_str()) {
            (Some((meaning, length)), ..) => self.meant(i, p, meaning, length.as_deref()),
            (None, 0, "") if is_handle(&p.base) => {
                let (program, below) = self.sides.handle(&p.base, false)?;
                self.arguments.push(format!("{program} as _"));
                self.see(i, &format!("a{i} as i64 as u64"));
                self.expect(i, p, &below);
                Ok(())
            }
            (None, 1, "") if is_handle(&p.base) && !p.is_const => self.handle_out(i, p),
            (None, 1, "") if p.base == "MPI_Status" => {
                self.status(i, p);
                Ok(())
            }
            _ => {
                self.plain(i, p);
                Ok(())
            }
        }
    }

    fn handle_out(&mut self, i: usize, p: &Param) -> Result<(), String> {
        let (program, below) = self.sides.handle(&p.base, false)?;
        let (null, null_below) = self.sides.handle(&p.base, true)?;
        let kind = if p.base == "MPI_File" {
            "usize"
        } else {
            "Handle"
        };
        let start = if p.inout { &program } else { &null };
        let _ = write!(self.before, "let mut v{i}: {kind} = {start} as _; ");
        self.arguments.push(format!("&raw mut v{i}"));
        if p.inout {
            self.see(i, &format!("*a{i} as i64 as u64"));
            self.expect(i, p, &below);
            let _ = write!(self.writes, "*a{i} = {null_below} as _; ");
            self.finds(p, &format!("v{i}"), &null);
        } else {
            let _ = write!(self.writes, "*a{i} = {below} as _; ");
            self.finds(p, &format!("v{i}"), &program);
        }
        Ok(())
    }

    fn status(&mut self, i: usize, p: &Param) {
        let (source, source_below) = self.sides.word("rank").unwrap_or_default();
        let (tag, tag_below) = self.sides.word("tag").unwrap_or_default();
        let filled = |source: &str, tag: &str| {
            format!(
                "StandardStatus {{ source: {source}, tag: {tag}, error: 0, ..StandardStatus::with(0x1_0000_0007, false) }}"
            )
        };
        let given = p.is_const || self.function.name.starts_with("MPI_Status_set");
        if given {
            let _ = write!(
                self.before,
                "let mut v{i}: Status = F::status_out(&{}); ",
                filled(&source, &tag)
            );
            let _ = write!(
                self.sees,
                "let given = F::status_above(&*a{i}); see({i}, given.source as i64 as u64); see({}, given.tag as i64 as u64); see({}, given.bytes() as u64); ",
                i + 20,
                i + 30
            );
            self.expect(i, p, &source_below);
            self.expect(i + 20, p, &tag_below);
            self.expect(i + 30, p, "0x1_0000_0007u64");
        } else {
            let _ = write!(
                self.before,
                "let mut v{i}: Status = F::status_out(&StandardStatus::default()); "
            );
            let _ = write!(
                self.writes,
                "*a{i} = F::status_below(&{}); ",
                filled(&source_below, &tag_below)
            );
            let found = format!("F::status_in(&v{i})");
            self.finds(p, &format!("{found}.source"), &source);
            self.finds(p, &format!("{found}.tag"), &tag);
            self.finds(p, &format!("{found}.bytes()"), "0x1_0000_0007i64");
        }
        let pointer = if p.is_const { "const" } else { "mut" };
        self.arguments.push(format!("&raw {pointer} v{i}"));
    }

    /// Adds an argument (a number or an address) that is passed without conversion.
    fn plain(&mut self, i: usize, p: &Param) {
        let lengths = self.function.fixed_params().filter_map(|q| {
            let (_, length) = self.tables.meaning(&self.function.name, &q.name)?;
            length.map(str::to_string)
        });
        let is_length = lengths.into_iter().any(|length| length == p.name);
        if p.by_value() {
            let value = if is_length { 2 } else { 1000 + i };
            self.arguments.push(format!("{value} as _"));
            self.see(i, &format!("a{i} as i64 as u64"));
            self.expect(i, p, &value.to_string());
        } else {
            self.arguments.push(format!("scratch({i}) as _"));
            self.see(i, &format!("a{i}.addr() as u64"));
            self.expect(i, p, &format!("scratch({i}).addr()"));
        }
    }

    fn constant(&mut self, i: usize, p: &Param, name: &str) {
        self.arguments.push(format!("PROGRAM.{name}() as _"));
        let value = match p.by_value() {
            true => format!("a{i} as i64 as u64"),
            false => format!("a{i}.addr() as u64"),
        };
        self.see(i, &value);
        self.expect(i, p, &format!("BELOW.{name}()"));
    }

    fn meant(
        &mut self,
        i: usize,
        p: &Param,
        meaning: &str,
        length: Option<&str>,
    ) -> Result<(), String> {
        if meaning.starts_with("text.") {
            let _ = write!(self.before, "let mut v{i} = [1 as c_char; 16]; ");
            self.arguments.push(format!("v{i}.as_mut_ptr()"));
            let _ = write!(
                self.writes,
                "std::ptr::copy_nonoverlapping(c\"mock\".as_ptr(), a{i}, 5); "
            );
            self.finds(p, &format!("v{i}[3]"), "b'k'");
            self.finds(p, &format!("v{i}[4]"), "0");
            return Ok(());
        }
        match meaning {
            "textlen" => {
                let _ = write!(self.before, "let mut v{i}: c_int = -1; ");
                self.arguments.push(format!("&raw mut v{i}"));
                let _ = write!(self.writes, "*a{i} = 4; ");
                self.finds(p, &format!("v{i}"), "4");
            }
            "buffer" => self.constant(i, p, "in_place"),
            "weights" => self.constant(i, p, "unweighted"),
            "pvar" => self.constant(i, p, "all_handles"),
            "displacement" => self.constant(i, p, "displacement_current"),
            "attached" => {
                let _ = write!(self.before, "let mut v{i}: *mut c_void = null_mut(); ");
                self.arguments.push(format!("(&raw mut v{i}).cast()"));
                let _ = write!(
                    self.writes,
                    "*a{i}.cast::<*mut c_void>() = scratch({i}).cast(); "
                );
                self.finds(p, &format!("v{i}.addr()"), &format!("scratch({i}).addr()"));
            }
            word => {
                let (program, below) = self.sides.word(word)?;
                match length {
                    None if p.by_value() => {
                        self.arguments.push(program);
                        self.see(i, &format!("a{i} as i64 as u64"));
                        self.expect(i, p, &below);
                    }
                    None => {
                        let start = if p.inout { &program } else { "0" };
                        let _ = write!(self.before, "let mut v{i}: c_int = {start}; ");
                        self.arguments.push(format!("&raw mut v{i}"));
                        if p.inout {
                            self.see(i, &format!("*a{i} as i64 as u64"));
                            self.expect(i, p, &below);
                        }
                        let _ = write!(self.writes, "*a{i} = {below}; ");
                        self.finds(p, &format!("v{i}"), &program);
                    }
                    Some(_) if p.is_const => {
                        let _ = write!(self.before, "let v{i}: [c_int; 2] = [{program}; 2]; ");
                        self.arguments.push(format!("v{i}.as_ptr()"));
                        self.see(i, &format!("*a{i}.add(1) as i64 as u64"));
                        self.expect(i, p, &below);
                    }
                    Some(_) => {
                        let _ = write!(self.before, "let mut v{i}: [c_int; 2] = [0; 2]; ");
                        self.arguments.push(format!("v{i}.as_mut_ptr()"));
                        let _ = write!(self.writes, "*a{i} = {below}; *a{i}.add(1) = {below}; ");
                        self.finds(p, &format!("v{i}[1]"), &program);
                    }
                }
            }
        }
        Ok(())
    }

    fn text(&self, id: usize) -> String {
        let f = self.function;
        let params: Vec<String> = f
            .fixed_params()
            .enumerate()
            .map(|(i, p)| {
                let kind = parameter(p, "Below", "usize", "BelowStatus");
                format!("a{i}: {kind}")
            })
            .collect();
        let name = &f.name;
        let returned = result(f)
            .replace("F::BelowStatus", "BelowStatus")
            .replace("F::Below", "Below");
        let value = match (f.returns_value(), base(&f.returns, "H", "H", "S").as_str()) {
            (false, _) => "0",
            (true, "f64") => "42.0",
            (true, _) => "42",
        };
        let checked = match value {
            "0" => format!("assert_eq!(code, 0, \"{name}\"); "),
            value => format!("assert_eq!(code, {value} as _, \"{name}: the value\"); "),
        };
        format!(
            "unsafe extern \"C-unwind\" fn mock_{name}({}) -> {returned} {{\n    \
             // SAFETY: only `check_{name}` calls it, with addresses of its locals.\n    \
             unsafe {{ arrived(); {}{} }}\n    {value} as _\n}}\n\
             fn check_{name}() {{ begin({id}, mock_{name} as *mut c_void); {}\
             let code = call!({name}({})); {checked}\
             assert!(called(), \"{name} is not called below\"); {}{} }}\n",
            params.join(", "),
            self.sees,
            self.writes,
            self.before,
            self.arguments.join(", "),
            self.expects,
            self.after,
        )
    }
}
