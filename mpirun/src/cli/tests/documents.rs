//! Tests of the options in `docs/from-openmpi-and-mpich.md`, both existing and unsupported ones.

/// Returns the cells of the last column of a document's tables.
fn last_cells(document: &str) -> impl Iterator<Item = &str> {
    let rows = document.lines().filter(|line| line.starts_with('|'));
    rows.filter_map(|row| row.trim_end_matches(['|', ' ']).rsplit(" | ").next())
}

#[test]
fn the_options_that_users_of_other_launchers_are_sent_to_exist() {
    let document = include_str!("../../../../docs/from-openmpi-and-mpich.md");
    let mut seen = 0;
    for cell in last_cells(document) {
        for code in cell.split('`').skip(1).step_by(2) {
            let Some(option) = code
                .split_whitespace()
                .next()
                .filter(|w| w.starts_with("--"))
            else {
                continue;
            };
            let name = option
                .trim_start_matches('-')
                .split('=')
                .next()
                .unwrap_or_default();
            // The parser of mpirun does not know the options of mpicc and mpi-info.
            if name.is_empty() || cell.contains("mpi-info") || cell.contains("mpicc") {
                continue;
            }
            let command = <super::super::options::Options as clap::CommandFactory>::command();
            let is_option = command.get_arguments().any(|known| {
                let aliases = known.get_all_aliases().unwrap_or_default();
                known.get_long() == Some(name) || aliases.contains(&name)
            });
            assert!(
                is_option || super::super::translated::find(name).is_some(),
                "{option} in {cell}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen} options");
}

const REFUSED: (&str, &str) = ("<!-- refused: begin -->\n", "<!-- refused: end -->\n");

/// `README_UPDATE=1` rewrites the table in the document.
#[test]
fn the_document_lists_every_option_that_is_refused_by_name() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/from-openmpi-and-mpich.md"
    );
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(REFUSED.0).expect("a first marker");
    let (written, after) = rest.split_once(REFUSED.1).expect("a second marker");
    let mut table =
        String::from("| option | what it does elsewhere | what to do here |\n|---|---|---|\n");
    for option in super::super::refused::all() {
        let (spelling, what, instead) = (option.spelling(), option.what, option.instead);
        table.push_str(&format!("| `{spelling}` | {what} | {instead} |\n"));
    }
    if std::env::var_os("README_UPDATE").is_some() {
        let text = format!("{before}{}{table}{}{after}", REFUSED.0, REFUSED.1);
        return std::fs::write(path, text).unwrap();
    }
    assert_eq!(written, table, "README_UPDATE=1 writes it");
}
