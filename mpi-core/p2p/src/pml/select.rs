//! Selection of the PML component at startup, one for the whole process.
//!
//! If the requested component does not exist, or all are excluded, the error contains the request and the existing components.

use super::ob1::config;
use mpi_base::param::{About, Param, ParamError, Params, Selection, SelectionError};
use std::fmt;

/// A component of the PML framework.
pub struct Component {
    pub name: &'static str,
    /// The parameters that `mpi-info` lists for the component.
    pub params: &'static [&'static About],
}

/// The components of the library, in descending order of preference.
pub static BUILT_IN: &[Component] = &[Component {
    name: "ob1",
    params: config::PARAMS,
}];

/// The parameter that selects components, as in `--mca pml ob1`.
pub static SELECTION: Param<Selection> = Param::selection(
    "pml",
    "",
    "Messaging layers that may be used; the first available one is used; empty: all",
);

/// The reason why no component was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    Param(ParamError),
    Selection(SelectionError),
    /// The user's selection excludes every component.
    NothingLeft {
        /// The user's selection as text.
        text: String,
    },
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Param(error) => error.fmt(f),
            SelectError::Selection(error) => error.fmt(f),
            SelectError::NothingLeft { text } => write!(
                f,
                "the parameter pml is \"{text}\", which leaves no component; there is {}",
                names().join(", ")
            ),
        }
    }
}

impl std::error::Error for SelectError {}

fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|component| component.name).collect()
}

/// Returns the component that the user's parameters select.
pub fn select(params: &Params) -> Result<&'static Component, SelectError> {
    let selection = params.get(&SELECTION).map_err(SelectError::Param)?;
    selection
        .check("pml", &names())
        .map_err(SelectError::Selection)?;
    let mut allowed = BUILT_IN.iter().filter(|c| selection.allows(c.name));
    allowed.next().ok_or_else(|| SelectError::NothingLeft {
        text: params.text(SELECTION.about()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_base::param::Source;

    fn asked(text: &str) -> Result<&'static str, String> {
        let mut params = Params::default();
        params.set("pml", text, Source::Environment);
        let selected = select(&params).map(|component| component.name);
        selected.map_err(|error| error.to_string())
    }

    #[test]
    fn whatever_does_not_leave_it_out_selects_the_one_there_is() {
        for text in ["", "ob1", "^ucx"] {
            assert_eq!(asked(text), Ok("ob1"), "{text}");
        }
    }

    #[test]
    fn what_selects_nothing_is_answered_with_what_there_is() {
        for (text, sentence) in [
            ("ucx", "there is no pml component \"ucx\"; there is ob1"),
            ("ob1,cm", "there is no pml component \"cm\"; there is ob1"),
            (
                "^ob1",
                "the parameter pml is \"^ob1\", which leaves no component; there is ob1",
            ),
            (
                "ob1,^cm",
                "parameter pml has the value \"ob1,^cm\" (from environment), but a list such as self,sm or ^tcp, with ^ only as the first character, is expected",
            ),
        ] {
            assert_eq!(asked(text), Err(sentence.into()), "{text}");
        }
    }
}
