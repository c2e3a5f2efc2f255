//! Parsed C prototypes, with the names and types of their parameters in Rust.

/// Names of C parameters that are reserved words in Rust.
const RESERVED: [&str; 4] = ["type", "in", "ref", "move"];

/// A function of the C interface.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name, such as `MPI_Send`.
    pub name: String,
    /// The chapter's index in [`Functions::chapters`](crate::Functions::chapters).
    pub chapter: usize,
    /// The version of the standard that introduced the function, or `x` for an extension.
    pub since: String,
    /// The version of the standard that deprecated the function.
    pub deprecated: Option<String>,
    /// The C return type.
    pub returns: String,
    /// The parameters. Variable arguments are last.
    pub params: Vec<Param>,
}

impl Function {
    /// Returns true if the C function returns its result, as `MPI_Wtime` does.
    /// All other functions return an error code.
    pub fn returns_value(&self) -> bool {
        self.returns != "int"
            || self.name.ends_with("_toint")
            || self.name.starts_with("MPIX_Query_")
    }

    /// Returns true for a function of the tool interface, which calls no error handler.
    pub fn is_tool(&self) -> bool {
        self.name.starts_with("MPI_T_")
    }

    /// Returns the parameters without the variable arguments.
    pub fn fixed_params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|p| !p.is_variable())
    }

    /// Returns the C prototype with the function name `name`.
    /// The text is split into the parts between which a line may break.
    pub fn prototype(&self, name: &str) -> Vec<String> {
        let mut words = vec![format!("{} {name}(", self.returns)];
        if self.params.is_empty() {
            words.push("void);".to_string());
        }
        for (i, p) in self.params.iter().enumerate() {
            let end = if i + 1 == self.params.len() {
                ");"
            } else {
                ", "
            };
            words.push(format!("{}{end}", p.declaration));
        }
        words
    }
}

/// A parameter of a C function.
#[derive(Clone, Debug, Default)]
pub struct Param {
    /// The C declaration of the parameter, such as `const int recvcounts[]`.
    pub declaration: String,
    /// The name; empty for variable arguments.
    pub name: String,
    /// The type without pointers, such as `int` or `MPI_Comm`, or `...` for variable arguments.
    pub base: String,
    /// True if the type without pointers is `const`.
    pub is_const: bool,
    /// The number of `*` in the declaration.
    pub stars: usize,
    /// The array suffix after the name: nothing, `[]` or `[][3]`.
    pub array: String,
    /// True if the function reads the scalar or handle behind the pointer, and may write it, too.
    pub inout: bool,
    /// The length of an array or buffer: a parameter's name, a constant, or a name and `+1`.
    /// Empty if the length depends on an MPI object, such as the size of a communicator.
    pub length: String,
    /// The name of the in-out parameter that holds the size of this character buffer, or empty.
    /// On return, that parameter holds the length of the string.
    pub length_behind: String,
    /// True for a `void *` that is really a `void **`: the function stores a pointer there.
    pub is_pointer_address: bool,
}

impl Param {
    /// Returns true for a parameter passed by value.
    pub fn by_value(&self) -> bool {
        self.stars == 0 && self.array.is_empty()
    }

    /// Returns true for a pointer to one scalar or handle that the function writes.
    pub fn scalar_out(&self) -> bool {
        self.stars == 1 && self.array.is_empty() && !self.is_const
    }

    /// Returns true for variable arguments, `...`.
    pub fn is_variable(&self) -> bool {
        self.base == "..."
    }

    /// Returns the parameter's name in Rust.
    pub fn rust_name(&self) -> String {
        match RESERVED.contains(&self.name.as_str()) {
            true => format!("r#{}", self.name),
            false => self.name.clone(),
        }
    }

    /// Returns the parameter's type in Rust. `base` is the Rust type of its base type.
    pub fn rust_type(&self, base: &str) -> String {
        let mut rust = base.to_string();
        let mut levels = self.stars;
        match self.array.as_str() {
            "" => {}
            "[]" => levels += 1,
            inner => {
                let len = inner.trim_start_matches("[][").trim_end_matches(']');
                rust = format!("[{rust}; {len}]");
                levels += 1;
            }
        }
        for level in 0..levels {
            let qualifier = if level == 0 && self.is_const {
                "const"
            } else {
                "mut"
            };
            rust = format!("*{qualifier} {rust}");
        }
        rust
    }
}

/// Parses a prototype such as `int MPI_X(int a, const int b[])`.
/// Returns the return type, the name and the parameters.
pub fn parse_prototype(text: &str) -> Option<(String, String, Vec<Param>)> {
    let (head, tail) = text.split_once('(')?;
    let (returns, name) = head.rsplit_once(' ')?;
    let list = tail.strip_suffix(')')?;
    let params = match list {
        "void" => Vec::new(),
        list => list
            .split(", ")
            .map(parse_param)
            .collect::<Option<Vec<_>>>()?,
    };
    Some((returns.to_string(), name.to_string(), params))
}

fn parse_param(text: &str) -> Option<Param> {
    let declaration = text.to_string();
    if text == "..." {
        return Some(Param {
            base: declaration.clone(),
            declaration,
            ..Param::default()
        });
    }
    let (declared, array) = match text.find('[') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let name_at = declared.rfind([' ', '*'])? + 1;
    let (ctype, name) = declared.split_at(name_at);
    let is_const = ctype.starts_with("const ");
    let ctype = ctype.trim_start_matches("const ");
    Some(Param {
        declaration,
        name: name.to_string(),
        base: ctype.trim_end_matches(['*', ' ']).to_string(),
        is_const,
        stars: ctype.matches('*').count(),
        array: array.to_string(),
        ..Param::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Vec<Param> {
        parse_prototype(text).expect("a prototype").2
    }

    #[test]
    fn parameters_have_their_types_of_rust() {
        let text = "int MPI_X(const int counts[], int ranges[][3], char ***type, MPI_Comm comm)";
        let types: Vec<_> = params(text)
            .iter()
            .map(|p| format!("{}: {}", p.rust_name(), p.rust_type(&p.base)))
            .collect();
        let expected = [
            "counts: *const int",
            "ranges: *mut [int; 3]",
            "r#type: *mut *mut *mut char",
            "comm: MPI_Comm",
        ];
        assert_eq!(types, expected);
    }

    #[test]
    fn variable_arguments_have_no_name() {
        let params = params("int MPI_Pcontrol(const int level, ...)");
        assert!(params[0].by_value() && !params[0].is_variable());
        assert!(params[1].is_variable() && params[1].name.is_empty());
    }

    #[test]
    fn what_is_no_prototype_is_refused() {
        for text in ["", "MPI_X", "int MPI_X(int a", "int MPI_X(int)"] {
            assert!(parse_prototype(text).is_none(), "{text}");
        }
    }
}
