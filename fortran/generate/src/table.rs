//! The tables of procedures and constants, and their parser.

use std::path::Path;

/// A procedure of the Fortran interface, a callback interface, or a predefined callback.
#[derive(Clone, Debug, Default)]
pub struct Procedure {
    /// The name in the standard.
    pub name: String,
    /// The standard's parameter kind of a function's result; `None` for a subroutine.
    pub returns: Option<String>,
    /// True if the procedure is in `mpif.h` and module `mpi`.
    pub in_mpi: bool,
    /// True if the procedure is in module `mpi_f08`.
    pub in_f08: bool,
    /// True if this is the interface of a user callback.
    pub callback: bool,
    /// For a predefined callback: the name of its callback interface.
    pub predefined: Option<String>,
    /// True if there is a C function of the same name.
    pub in_c: bool,
    /// True if the procedure returns an error code, in its last parameter `ierror`.
    pub reports: bool,
    pub parameters: Vec<Parameter>,
}

/// A parameter of a procedure.
#[derive(Clone, Debug, Default)]
pub struct Parameter {
    pub name: String,
    pub kind: String,
    pub direction: Direction,
    /// The length of an array; `*` if no parameter gives it.
    pub length: Option<String>,
    /// The callback interface of a procedure argument.
    pub function: Option<String>,
    pub asynchronous: bool,
    /// True if the standard specifies no intent in module `mpi_f08`.
    pub no_intent: bool,
    /// True for an input argument that C gets by address.
    pub pointer: bool,
    /// True if the argument is significant only at the root.
    pub root: bool,
    /// True if only the large-count form has the parameter.
    pub large: bool,
    /// True if only C has the parameter.
    pub hidden: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    In,
    Out,
    InOut,
}

/// A named constant.
#[derive(Clone, Debug)]
pub struct Constant {
    pub name: String,
    pub value: i64,
    /// The type: `INTEGER`, or a derived type of module `mpi_f08`.
    pub of: String,
}

/// Parses `procedures.txt`.
pub fn procedures(text: &str) -> Result<Vec<Procedure>, String> {
    let mut found: Vec<Procedure> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = |message: String| format!("procedures.txt, line {}: {message}", number + 1);
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if line.starts_with(' ') {
            let procedure = found
                .last_mut()
                .ok_or_else(|| at("a parameter before the first procedure".into()))?;
            procedure.parameters.push(parameter(line).map_err(at)?);
        } else {
            found.push(head(line).map_err(at)?);
        }
    }
    Ok(found)
}

/// Parses the line of a procedure.
fn head(line: &str) -> Result<Procedure, String> {
    let mut words = line.split_whitespace();
    let mut procedure = Procedure {
        name: words.next().unwrap_or_default().to_string(),
        in_mpi: true,
        in_f08: true,
        in_c: true,
        reports: true,
        ..Procedure::default()
    };
    while let Some(word) = words.next() {
        let mut value = || {
            let value = words.next();
            value.ok_or_else(|| format!("nothing follows '{word}'"))
        };
        match word {
            "returns" => {
                procedure.reports = false;
                let kind = value()?;
                procedure.returns = (kind != "NOTHING").then(|| kind.to_string());
            }
            "only" => match value()? {
                "mpi" => procedure.in_f08 = false,
                "f08" => procedure.in_mpi = false,
                other => {
                    return Err(format!(
                        "'only {other}' is neither 'only mpi' nor 'only f08'"
                    ));
                }
            },
            "mpif" => _ = value()?,
            "callback" => {
                procedure.callback = true;
                procedure.reports = false;
            }
            "predefined" => {
                procedure.predefined = Some(value()?.to_string());
                procedure.reports = false;
            }
            "no-c" => procedure.in_c = false,
            other => return Err(format!("'{other}' is no mark of a procedure")),
        }
    }
    Ok(procedure)
}

/// Parses the line of a parameter.
fn parameter(line: &str) -> Result<Parameter, String> {
    let mut words = line.split_whitespace();
    let mut next = |what: &str| {
        let word = words.next();
        word.ok_or_else(|| format!("a parameter without {what}"))
    };
    let name = next("a name")?.to_string();
    let kind = next("a kind")?.to_string();
    let direction = match next("a direction")? {
        "in" => Direction::In,
        "out" => Direction::Out,
        "inout" => Direction::InOut,
        other => return Err(format!("'{other}' is none of in, out and inout")),
    };
    let mut parameter = Parameter {
        name,
        kind,
        direction,
        ..Parameter::default()
    };
    while let Some(word) = words.next() {
        match word {
            "function" => parameter.function = words.next().map(str::to_string),
            "async" => parameter.asynchronous = true,
            "no-intent" => parameter.no_intent = true,
            "root" => parameter.root = true,
            "pointer" => parameter.pointer = true,
            "large" => parameter.large = true,
            "hidden" => parameter.hidden = true,
            _ => {
                let inner = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
                let inner = inner.ok_or_else(|| format!("'{word}' is no mark of a parameter"))?;
                parameter.length = Some(inner.to_string());
            }
        }
    }
    Ok(parameter)
}

/// Parses `constants.txt`.
pub fn constants(text: &str) -> Result<Vec<Constant>, String> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
    lines
        .map(|(number, line)| {
            let wrong = || format!("constants.txt, line {}: not NAME VALUE TYPE", number + 1);
            let mut words = line.split_whitespace();
            let (Some(name), Some(value), Some(of)) = (words.next(), words.next(), words.next())
            else {
                return Err(wrong());
            };
            Ok(Constant {
                name: name.to_string(),
                value: value.parse().map_err(|_| wrong())?,
                of: of.to_string(),
            })
        })
        .collect()
}

/// The tables of procedures and constants.
#[derive(Debug)]
pub struct Tables {
    pub procedures: Vec<Procedure>,
    pub constants: Vec<Constant>,
}

/// Reads both tables from the folder `fortran/api`.
pub fn read(api: &Path) -> Result<Tables, String> {
    let text = |name: &str| {
        let path = api.join(name);
        std::fs::read_to_string(&path)
            .map_err(|e| format!("{} cannot be read: {e}", path.display()))
    };
    Ok(Tables {
        procedures: procedures(&text("procedures.txt")?)?,
        constants: constants(&text("constants.txt")?)?,
    })
}

impl Tables {
    /// Returns the procedures that programs call; callbacks are not included.
    pub fn calls(&self) -> impl Iterator<Item = &Procedure> {
        self.procedures
            .iter()
            .filter(|p| !p.callback && p.predefined.is_none())
    }
}
