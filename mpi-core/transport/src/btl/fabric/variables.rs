//! Environment variables through which a network library is configured.
//!
//! A variable that the user has set keeps its value.

use mpi_base::environment;

/// Names and values of environment variables.
pub type Variables = &'static [(&'static str, &'static str)];

/// Sets the variables that the user has not set, and returns their names.
pub fn set(variables: Variables) -> Vec<&'static str> {
    let unset = variables
        .iter()
        .filter(|(name, _)| !environment::is_set(name));
    unset
        .map(|(name, value)| {
            crate::rte::set_variable(name, value);
            *name
        })
        .collect()
}

/// Variables that are set until this value is dropped, so that programs which this process starts do not inherit them.
#[must_use]
pub struct Temporary(Vec<&'static str>);

impl Temporary {
    pub fn set(variables: Variables) -> Temporary {
        Temporary(set(variables))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.0
            .iter()
            .for_each(|name| crate::rte::remove_variable(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_variables_are_removed_and_those_of_the_user_keep_their_values() {
        const NAMES: Variables = &[("PORTCULLIS_TEST_TEMPORARY", "new"), ("PATH", "new")];
        let path = environment::text("PATH");
        let variables = Temporary::set(NAMES);
        assert_eq!(environment::text(NAMES[0].0).as_deref(), Some("new"));
        assert_eq!(environment::text("PATH"), path);
        drop(variables);
        assert_eq!(environment::text(NAMES[0].0), None);
        assert_eq!(environment::text("PATH"), path);
    }
}
