//! Records on the rank's state page which plugin function the rank is executing,
//! so that tools can name a function that never returns or that ends the process.

use crate::clock::now_ns;
use crate::state::{FileCall, StatePage, file_name_words};

/// Calls a function of a plugin.
/// During the call, the state page names the plugin's file and the function.
///
/// If the function ends the process, the record stays on the page.
pub fn reported<R>(
    page: Option<&StatePage>,
    function: FileCall,
    file: &str,
    call: impl FnOnce() -> R,
) -> R {
    let Some(page) = page else { return call() };
    page.enters_file_call(function, now_ns(), &file_name_words(file));
    let result = call();
    page.leaves_file_call();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_the_function_while_it_runs() {
        let page = StatePage::default();
        let inside = reported(Some(&page), FileCall::PluginQuery, "coll_a.so", || {
            page.snapshot().in_file
        });
        let inside = inside.expect("a function");
        assert_eq!(
            (inside.call, &*inside.name),
            (FileCall::PluginQuery, "coll_a.so")
        );
        assert_eq!(page.snapshot().in_file, None);
    }
}
