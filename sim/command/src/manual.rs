//! `hwbarr manual`: the manual page, with a section for each command.

use crate::{Cli, Failure, say};
use clap::{Args, CommandFactory as _};
use clap_mangen::Man;

#[derive(Args)]
pub struct Manual {}

impl Manual {
    pub fn execute(self) -> Result<(), Failure> {
        let program = Cli::command();
        let mut page = Vec::new();
        Man::new(program.clone()).render(&mut page)?;
        let mut page = String::from_utf8(page)?.replace("hwbarr\\-help(1)", "hwbarr help");
        let commands = program.get_subcommands();
        for command in commands.filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            // clap refers to one manual page per subcommand, as for git;
            // this manual has a single page.
            page = page.replace(&format!("hwbarr\\-{name}(1)"), &format!("hwbarr {name}"));
            let mut section = Vec::new();
            let man = Man::new(command.clone());
            man.render_description_section(&mut section)?;
            man.render_options_section(&mut section)?;
            let section = String::from_utf8(section)?;
            page += &format!(".SH \"hwbarr {name}\"\n");
            page += &section
                .replace("\n.SH ", "\n.SS ")
                .replacen(".SH ", ".SS ", 1);
        }
        say(&page)
    }
}
