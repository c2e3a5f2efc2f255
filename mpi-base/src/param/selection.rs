//! The selection of components as users write it: `self,sm,tcp` takes these, `^hwbarr` takes all but these.

use std::fmt;

/// Which components of a framework may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Nothing was said.
    #[default]
    All,
    /// Only these, in the order in which they were named.
    Only(Vec<String>),
    /// All but these.
    Except(Vec<String>),
}

/// Why a selection is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionError {
    /// `a,^b`: either all names are taken or all are left out.
    CaretInside {
        /// The whole selection.
        text: String,
    },
    /// `a,,b` or a lone `^`.
    EmptyName {
        /// The whole selection.
        text: String,
    },
    /// `only` names something that does not exist.
    Unknown {
        /// The framework that was to choose.
        framework: String,
        /// The name that none of its components has.
        name: String,
        /// The names that would have done.
        known: Vec<String>,
    },
}

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionError::CaretInside { text } => write!(
                f,
                "in the selection \"{}\" the ^ is not the first character; it stands once, in front of all names, and leaves all of them out",
                printable::name(text)
            ),
            SelectionError::EmptyName { text } => {
                let text = printable::name(text);
                write!(f, "the selection \"{text}\" has an empty name")
            }
            SelectionError::Unknown {
                framework,
                name,
                known,
            } => {
                let are = if known.len() == 1 { "is" } else { "are" };
                write!(
                    f,
                    "there is no {framework} component \"{}\"; there {are} {}",
                    printable::name(name),
                    known.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for SelectionError {}

impl Selection {
    /// Reads `a,b` or `^a,b`; an empty text selects everything.
    pub fn parse(text: &str) -> Result<Selection, SelectionError> {
        let (list, except) = match text.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if list.contains('^') {
            return Err(SelectionError::CaretInside { text: text.into() });
        }
        if list.is_empty() && !except {
            return Ok(Selection::All);
        }
        let names: Vec<String> = list
            .split(',')
            .map(|name| name.trim().to_string())
            .collect();
        if names.iter().any(String::is_empty) {
            return Err(SelectionError::EmptyName { text: text.into() });
        }
        Ok(if except {
            Selection::Except(names)
        } else {
            Selection::Only(names)
        })
    }

    /// Whether the component may run.
    pub fn allows(&self, component: &str) -> bool {
        match self {
            Selection::All => true,
            Selection::Only(names) => names.iter().any(|name| name == component),
            Selection::Except(names) => names.iter().all(|name| name != component),
        }
    }

    /// A component that is asked for and does not exist is an error; one that is left out and does not exist is not,
    /// because a setting made for one installation should serve another.
    pub fn check(&self, framework: &str, known: &[&str]) -> Result<(), SelectionError> {
        let Selection::Only(names) = self else {
            return Ok(());
        };
        match names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(SelectionError::Unknown {
                framework: framework.into(),
                name: name.clone(),
                known: known.iter().map(|name| name.to_string()).collect(),
            }),
        }
    }
}
