//! Detects import cycles among the files of a crate.
//!
//! An import is a path in the code, outside of tests, from the crate root, from a parent module
//! or from a module that a `use` names.
//! It refers to the file that defines the name: re-exports are followed,
//! so a `pub use` alone is not an import. A module's imports from its parents are not counted:
//! a module and its parent are one unit, as in the compiler's privacy rules.
//! Names without a path, such as methods, are not found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

type Names = Vec<String>;

/// An import cycle: its files, and its imports as (importing file, defining file, name).
pub struct Circle {
    pub files: Vec<PathBuf>,
    pub ties: Vec<(PathBuf, PathBuf, String)>,
}

#[derive(Default)]
struct Module {
    file: PathBuf,
    defines: BTreeSet<String>,
    brought: Vec<Brought>,
    globs: Vec<Names>,
    /// All paths in the code, as the source has them.
    paths: Vec<Names>,
    /// The names of inherent methods, each with the path that names the type.
    methods: Vec<(Names, String)>,
}

/// A name that a `use` declaration imports.
struct Brought {
    alias: String,
    from: Names,
    /// True if the `use` re-exports the name.
    handed_on: bool,
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Names, Module>,
}

/// An import: the importing file, the defining file, the name.
pub type Import = (PathBuf, PathBuf, String);

/// The cached contents and imports of a crate:
/// several tests need the same crates, and parsing them takes most of the tests' time.
#[derive(Default)]
struct Kept {
    tree: OnceLock<Crate>,
    imports: OnceLock<Vec<Import>>,
}

impl Kept {
    /// Returns the cache entry of the crate with this root file; concurrent tests share the entry.
    fn of(root: &Path) -> Arc<Kept> {
        static CRATES: Mutex<BTreeMap<PathBuf, Arc<Kept>>> = Mutex::new(BTreeMap::new());
        let mut crates = CRATES.lock().expect("no test panics here");
        crates.entry(root.to_owned()).or_default().clone()
    }

    fn tree(&self, root: &Path) -> &Crate {
        self.tree.get_or_init(|| Crate::of(root))
    }
}

/// Returns the imports between files of a crate; `root` is its root file.
pub fn imports(root: &Path) -> Vec<Import> {
    let kept = Kept::of(root);
    let imports = kept.imports.get_or_init(|| kept.tree(root).ties());
    imports.clone()
}

/// Returns the methods of each type of a crate, by the type's file and name.
pub fn methods(root: &Path) -> BTreeMap<(PathBuf, String), Vec<String>> {
    let kept = Kept::of(root);
    let tree = kept.tree(root);
    let mut found: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (at, module) in &tree.modules {
        for (path, method) in &module.methods {
            let file = tree.resolve(at, path, 0);
            let name = path.last().cloned().unwrap_or_default();
            let file = file.unwrap_or_else(|| module.file.clone());
            found.entry((file, name)).or_default().push(method.clone());
        }
    }
    found
}

/// Returns the import cycles of a crate; `root` is its root file.
pub fn circles(root: &Path) -> Vec<Circle> {
    let ties = imports(root);
    let mut next: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for (from, to, _) in &ties {
        next.entry(from).or_default().insert(to);
    }
    let reach: BTreeMap<&Path, BTreeSet<&Path>> = next
        .keys()
        .map(|&from| (from, reached(from, &next)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (&file, reached) in &reach {
        if !reached.contains(file) || seen.contains(file) {
            continue;
        }
        let mutual = |other: &Path| reach.get(other).is_some_and(|back| back.contains(file));
        let files: BTreeSet<&Path> = reached.iter().copied().filter(|to| mutual(to)).collect();
        seen.extend(files.iter().copied());
        let inside = |path: &PathBuf| files.contains(path.as_path());
        let ties = ties
            .iter()
            .filter(|(from, to, _)| inside(from) && inside(to));
        found.push(Circle {
            ties: ties.cloned().collect(),
            files: files.into_iter().map(Path::to_owned).collect(),
        });
    }
    found
}

fn reached<'a>(
    from: &'a Path,
    next: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
) -> BTreeSet<&'a Path> {
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(file) = open.pop() {
        let fresh = next.get(file).into_iter().flatten();
        open.extend(fresh.copied().filter(|to| seen.insert(*to)));
    }
    seen
}

impl Crate {
    fn of(root: &Path) -> Crate {
        let mut tree = Crate::default();
        let beside = root.parent().expect("a file lies in a folder");
        tree.read(root, beside, Names::new());
        tree
    }

    /// Parses the file of a module; `folder` contains the files of its submodules.
    fn read(&mut self, file: &Path, folder: &Path, name: Names) {
        let text = super::read(file);
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        self.items(&parsed.items, file, folder, name);
    }

    fn items(&mut self, items: &[syn::Item], file: &Path, folder: &Path, name: Names) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items {
            if is_for_tests(attributes(item)) {
                continue;
            }
            match item {
                syn::Item::Mod(inner) => {
                    let ident = inner.ident.to_string();
                    module.defines.insert(ident.clone());
                    let mut inner_name = name.clone();
                    inner_name.push(ident.clone());
                    let below = folder.join(&ident);
                    match (&inner.content, path_attribute(&inner.attrs)) {
                        (Some((_, items)), _) => self.items(items, file, &below, inner_name),
                        (None, Some(path)) => {
                            let beside = file.parent().expect("a file lies in a folder");
                            let file = beside.join(path);
                            let below = file.parent().expect("a file lies in a folder").to_owned();
                            self.read(&file, &below, inner_name);
                        }
                        (None, None) => {
                            let flat = folder.join(format!("{ident}.rs"));
                            let deep = below.join("mod.rs");
                            let file = if flat.exists() { flat } else { deep };
                            self.read(&file, &below, inner_name);
                        }
                    }
                }
                syn::Item::Use(used) => {
                    let handed_on = !matches!(used.vis, syn::Visibility::Inherited);
                    brought(&used.tree, Names::new(), handed_on, &mut module);
                }
                other => {
                    if let syn::Item::Impl(item) = other {
                        methods_of(item, &mut module.methods);
                    }
                    module.defines.extend(defined(other));
                    let mut tokens = TokenStream::new();
                    other.to_tokens(&mut tokens);
                    paths(tokens, &mut module.paths);
                }
            }
        }
        self.modules.insert(name, module);
    }

    fn ties(&self) -> Vec<(PathBuf, PathBuf, String)> {
        let mut ties = BTreeSet::new();
        for (name, module) in &self.modules {
            let brought = module.brought.iter().filter(|brought| !brought.handed_on);
            let paths = brought.map(|brought| &brought.from).chain(&module.paths);
            for path in paths {
                let Some(to) = self.resolve(name, path, 0) else {
                    continue;
                };
                let is_above = |depth| self.modules[&name[..depth]].file == to;
                if !(0..=name.len()).any(is_above) {
                    let last = path.last().cloned().unwrap_or_default();
                    ties.insert((module.file.clone(), to, last));
                }
            }
        }
        ties.into_iter().collect()
    }

    /// Returns the file that defines `path`, resolved in module `at`;
    /// `None` if the path names a module or an external item.
    fn resolve(&self, at: &Names, path: &[String], depth: usize) -> Option<PathBuf> {
        if depth > 20 {
            return None;
        }
        let (mut at, mut rest) = (at.clone(), path);
        let mut rooted = false;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => at = Names::new(),
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                _ => break,
            }
            (rooted, rest) = (true, after);
        }
        // In each iteration, `rest` is resolved in module `at`.
        loop {
            let module = self.modules.get(&at)?;
            let (first, after) = rest.split_first()?;
            let mut below = at.clone();
            below.push(first.clone());
            if self.modules.contains_key(&below) {
                (at, rest, rooted) = (below, after, true);
                continue;
            }
            if module.defines.contains(first) {
                return Some(module.file.clone());
            }
            if let Some(brought) = module
                .brought
                .iter()
                .find(|brought| brought.alias == *first)
            {
                // The `use` imports an external item that has the name of its crate.
                if brought.from.first() == Some(first) {
                    return None;
                }
                let whole: Names = brought.from.iter().chain(after).cloned().collect();
                return self.resolve(&at, &whole, depth + 1);
            }
            let by_glob = module.globs.iter().find_map(|glob| {
                let whole: Names = glob.iter().chain(rest).cloned().collect();
                self.resolve(&at, &whole, depth + 1)
            });
            if by_glob.is_some() {
                return by_glob;
            }
            // Other names in a known module are defined by a macro call.
            let made = rooted && depth == 0 && module.globs.is_empty();
            return made.then(|| module.file.clone());
        }
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns true if the attributes restrict an item to tests.
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        text.starts_with("cfg (") && text.contains("test") && !text.contains("not (test")
    })
}

fn methods_of(item: &syn::ItemImpl, found: &mut Vec<(Names, String)>) {
    let (None, syn::Type::Path(of)) = (&item.trait_, &*item.self_ty) else {
        return;
    };
    let path: Names = of
        .path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    for item in &item.items {
        if let syn::ImplItem::Fn(method) = item
            && !is_for_tests(&method.attrs)
        {
            found.push((path.clone(), method.sig.ident.to_string()));
        }
    }
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

fn defined(item: &syn::Item) -> Option<String> {
    let ident = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn brought(tree: &syn::UseTree, mut from: Names, handed_on: bool, module: &mut Module) {
    let (alias, last) = match tree {
        syn::UseTree::Path(path) => {
            from.push(path.ident.to_string());
            return brought(&path.tree, from, handed_on, module);
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                brought(tree, from.clone(), handed_on, module);
            }
            return;
        }
        syn::UseTree::Glob(_) => return module.globs.push(from),
        syn::UseTree::Name(name) if name.ident == "self" => {
            (from.last().cloned().unwrap_or_default(), None)
        }
        syn::UseTree::Name(name) => (name.ident.to_string(), Some(&name.ident)),
        syn::UseTree::Rename(rename) => (rename.rename.to_string(), Some(&rename.ident)),
    };
    from.extend(last.map(|last| last.to_string()));
    module.brought.push(Brought {
        alias,
        from,
        handed_on,
    });
}

/// Collects all paths in the tokens, with `a::{b, c}` expanded; a single name counts as a path.
fn paths(tokens: TokenStream, found: &mut Vec<Names>) {
    let mut path = Names::new();
    let mut joined = false;
    let mut colons = 0;
    let mut end = |path: &mut Names| {
        if !path.is_empty() {
            found.push(std::mem::take(path));
        }
    };
    let mut groups = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if !joined {
                    end(&mut path);
                }
                path.push(ident.to_string());
                (joined, colons) = (false, 0);
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                colons += 1;
                joined = colons == 2;
            }
            TokenTree::Group(group) => {
                let taken_apart = joined && group.delimiter() == Delimiter::Brace;
                let before = if taken_apart {
                    path.clone()
                } else {
                    Names::new()
                };
                groups.push((before, group.stream()));
                if !taken_apart {
                    end(&mut path);
                }
                path.clear();
                (joined, colons) = (false, 0);
            }
            _ => {
                end(&mut path);
                (joined, colons) = (false, 0);
            }
        }
    }
    end(&mut path);
    for (before, stream) in groups {
        let first = found.len();
        paths(stream, found);
        for inner in &mut found[first..] {
            inner.splice(0..0, before.iter().cloned());
        }
    }
}
