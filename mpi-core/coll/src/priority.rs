//! The parameter `coll_<component>_priority` that every component has: its entry in lists of parameters.
//!
//! [`select::priority`](super::select::priority) reads the parameter's value, also for plugins.

use mpi_base::param::{About, Kind, Level};

/// Returns the entry for one component, with its default priority as text.
pub const fn about(component: &'static str, default: &'static str) -> About {
    About {
        framework: "coll",
        component,
        name: "priority",
        default,
        help: "Priority of the component; the highest serves a call first, and a negative one leaves the component out",
        level: Level(6),
        kind: Kind::Int,
        check: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::built_in;

    #[test]
    fn every_component_lists_the_priority_that_it_has() {
        for component in built_in() {
            let name = format!("coll_{}_priority", component.name());
            let params = component.params();
            let about = params.iter().find(|about| about.is_called(&name));
            let listed = about.map(|about| about.default.to_string());
            assert_eq!(listed, Some(component.priority().to_string()), "{name}");
        }
    }
}
