//! `mpi-info --json`: the content of all other listings as JSON.

use super::VERSION;
use crate::frameworks::{self, Component, Framework};
use mpi_base::param::{About, Level, Params};
use serde_json::{Value, json};

pub(super) fn whole(params: &Params, level: Level) -> String {
    let prefix = crate::prefix::prefix().map(|prefix| prefix.display().to_string());
    let functions = mpi_abi::functions().iter();
    let functions: Vec<Value> = functions
        .map(|function| {
            json!({
                "name": function.name,
                "chapter": function.chapter,
                "implemented": function.implemented,
            })
        })
        .collect();
    let of = |abouts: &[&'static About]| -> Vec<Value> {
        let wanted = abouts.iter().filter(|about| about.level <= level);
        wanted.map(|about| parameter(about, params)).collect()
    };
    let component = |component: &Component| {
        json!({
            "name": component.name,
            "version": component.version,
            "file": component.file.as_ref().map(|file| file.display().to_string()),
            "parameters": of(&component.params),
        })
    };
    let framework = |framework: &Framework| {
        json!({
            "name": framework.name,
            "what": framework.what,
            "parameters": of(&framework.params),
            "components": framework.components.iter().map(component).collect::<Vec<_>>(),
        })
    };
    let (all, not_used) = frameworks::all_and_not_used(params);
    let not_used = not_used.iter().map(|not_used| {
        json!({
            "file": not_used.file.display().to_string(),
            "reason": not_used.reason,
        })
    });
    let whole = json!({
        "package": "Portcullis",
        "version": VERSION,
        "mpi": "5.0",
        "prefix": prefix,
        "cores": mpi_base::cpu::Cores::of_this_process().usable,
        "warnings": params.complaints().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "frameworks": all.iter().map(framework).collect::<Vec<_>>(),
        "not_used": not_used.collect::<Vec<_>>(),
        "functions": functions,
    });
    printable::json(&format!("{whole:#}\n")).into_owned()
}

fn parameter(about: &About, params: &Params) -> Value {
    json!({
        "name": about.full_name(),
        "value": params.text(about),
        "default": about.default,
        "source": params.source(about).to_string(),
        "level": about.level.0,
        "type": about.kind.to_string(),
        "help": about.help,
    })
}
