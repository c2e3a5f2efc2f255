//! The folders that are searched for plugin files, in search order.

use crate::installation::{PRELOAD, QUEUES};
use crate::param::{Level, Param, Params};
use crate::privilege::is_raised;
use crate::{environment, text};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The parameter with the list of folders to search.
pub static PATH: Param<String> = Param::new(
    "mca",
    "component",
    "path",
    "USER:SYSTEM:INSTALLATION",
    Level::TUNER,
    "Folders of plugin files in search order, separated by colons; USER is ~/.portcullis/components, SYSTEM is /etc/portcullis/components, INSTALLATION is lib/portcullis of the installation",
);

/// The plugin folder of the host's administrator (keyword SYSTEM).
const SYSTEM: &str = "/etc/portcullis/components";

/// A folder that is searched for plugin files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// The path of the folder.
    pub path: PathBuf,
    /// True if the user has listed the path; then it is an error if the folder does not exist.
    pub is_named: bool,
}

/// The folders for the keywords of [`PATH`].
#[derive(Clone, Debug, Default)]
pub struct Places {
    user: Option<PathBuf>,
    installation: Option<PathBuf>,
    /// True in a program with more rights than its user, which reads only the installation's folder.
    raised: bool,
}

impl Places {
    /// Returns the folders for this process; `installation` is the installation's plugin folder.
    pub fn of_this_process(installation: Option<&Path>) -> Places {
        let home = environment::var("HOME").filter(|home| !home.is_empty());
        Places {
            user: home.map(|home| Path::new(&home).join(".portcullis/components")),
            installation: installation.map(Path::to_path_buf),
            raised: is_raised(),
        }
    }

    /// Returns the folders to search, and the folders of the keywords USER,
    /// SYSTEM and INSTALLATION that [`PATH`] omits.
    pub fn order(&self, params: &Params) -> (Vec<Folder>, Vec<PathBuf>) {
        let path = text::to_os(params.text(PATH.about()));
        let (mut search, mut passed) = (Vec::new(), self.words());
        for part in std::env::split_paths(&path) {
            match self.folder(part.as_os_str()) {
                Some(folder) if !search.contains(&folder) => search.push(folder),
                _ => {}
            }
        }
        passed.retain(|word| !search.iter().any(|folder| folder.path == *word));
        (search, passed)
    }

    fn words(&self) -> Vec<PathBuf> {
        let words = ["USER", "SYSTEM", "INSTALLATION"];
        let folders = words.iter().filter_map(|word| self.folder(word.as_ref()));
        folders.map(|folder| folder.path).collect()
    }

    /// Returns the folder for one item of [`PATH`];
    /// `None` if the keyword has no folder or if this process must not read it.
    fn folder(&self, part: &OsStr) -> Option<Folder> {
        let by_word = |path: Option<PathBuf>| {
            path.map(|path| Folder {
                path,
                is_named: false,
            })
        };
        match part.to_str() {
            Some("INSTALLATION") => by_word(self.installation.clone()),
            _ if self.raised => None,
            Some("USER") => by_word(self.user.clone()),
            Some("SYSTEM") => by_word(Some(SYSTEM.into())),
            Some("") => None,
            _ => Some(Folder {
                path: part.into(),
                is_named: true,
            }),
        }
    }
}

/// Returns the plugin files of a folder, sorted by name;
/// omits the installation's own libraries for programs and debuggers ([`PRELOAD`], [`QUEUES`]).
pub fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_ours = path
            .file_name()
            .is_some_and(|name| name == PRELOAD || name == QUEUES);
        if path.extension().is_some_and(|e| e == "so") && !is_ours {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the framework and the component from a file name `FRAMEWORK_COMPONENT.so`;
/// `None` if the name does not begin with a framework.
pub fn names_of(file: &Path) -> Option<(&str, &str)> {
    let (framework, component) = file.file_stem()?.to_str()?.split_once('_')?;
    (!framework.is_empty() && !component.is_empty()).then_some((framework, component))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Source;

    fn places(raised: bool) -> Places {
        Places {
            user: Some("/home/g/.portcullis/components".into()),
            installation: Some("/opt/p/lib/portcullis".into()),
            raised,
        }
    }

    fn order(raised: bool, path: Option<&str>) -> (Vec<String>, usize) {
        let mut params = Params::default();
        if let Some(path) = path {
            params.set("mca_component_path", path, Source::Environment);
        }
        let (search, passed) = places(raised).order(&params);
        let shown = |folder: Folder| {
            format!(
                "{}{}",
                folder.path.display(),
                if folder.is_named { "!" } else { "" }
            )
        };
        (search.into_iter().map(shown).collect(), passed.len())
    }

    #[test]
    fn the_path_is_the_search_order_and_words_stand_for_the_usual_folders() {
        let usual = [
            "/home/g/.portcullis/components",
            "/etc/portcullis/components",
            "/opt/p/lib/portcullis",
        ];
        assert_eq!(order(false, None), (usual.map(String::from).to_vec(), 0));
        let named = ["/opt/p/lib/portcullis", "/mine!"]
            .map(String::from)
            .to_vec();
        assert_eq!(order(false, Some("INSTALLATION:/mine::/mine")), (named, 2));
        assert_eq!(order(false, Some("")), (Vec::new(), 3));
    }

    #[test]
    fn a_program_with_more_rights_than_its_user_searches_the_installation_only() {
        let installation = vec!["/opt/p/lib/portcullis".to_string()];
        assert_eq!(order(true, None), (installation.clone(), 0));
        assert_eq!(
            order(true, Some("/mine:USER:INSTALLATION")),
            (installation, 0)
        );
    }

    #[test]
    fn files_are_listed_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["d.so", "a.so", "notes.txt", PRELOAD, QUEUES, "b.so"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let files = files(folder.path()).expect("a list");
        let names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
        assert_eq!(names, ["a.so", "b.so", "d.so"]);
        assert_eq!(
            names_of("x/coll_my_star.so".as_ref()),
            Some(("coll", "my_star"))
        );
        for nothing in ["star.so", "coll_.so", "_star.so"] {
            assert_eq!(names_of(nothing.as_ref()), None, "{nothing}");
        }
    }
}
