//! The selection of components in the users' syntax:
//! `self,sm,tcp` selects exactly these components,
//! `^hwbarr` selects all components except this one.

use std::fmt;

/// The components of a framework that the user permits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// No selection was given, so all components are permitted.
    #[default]
    All,
    /// Only these components are permitted, in the order in which the user listed them.
    Only(Vec<String>),
    /// All components except these are permitted.
    Except(Vec<String>),
}

/// The reason why a selection is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionError {
    /// A caret inside of a list, as in `a,^b`: either all names are selected or all are excluded.
    CaretInside {
        /// The text of the whole selection.
        text: String,
    },
    /// An empty name, as in `a,,b` or a lone `^`.
    EmptyName {
        /// The text of the whole selection.
        text: String,
    },
    /// The selection names a component that does not exist.
    Unknown {
        /// The framework whose components were selected.
        framework: String,
        /// The name that no component has.
        name: String,
        /// The names of the existing components.
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
    /// Parses `a,b` or `^a,b`; an empty text selects all components.
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

    /// Returns true if the selection permits the component.
    pub fn allows(&self, component: &str) -> bool {
        match self {
            Selection::All => true,
            Selection::Only(names) => names.iter().any(|name| name == component),
            Selection::Except(names) => names.iter().all(|name| name != component),
        }
    }

    /// Returns an error if the selection names a component that does not exist.
    /// An excluded component need not exist:
    /// so the same setting is valid in installations without the component.
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
