//! Tables of results, printed as text, CSV or JSON from the same rows.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For spreadsheets: RFC 4180.
    Csv,
    /// For programs.
    Json,
}

/// For tools instead of for people.
#[derive(Args, Clone, Copy)]
pub struct Tool {
    /// Print JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values.
    #[arg(long)]
    csv: bool,
}

impl Tool {
    pub fn format(self) -> Format {
        match self {
            Self { json: true, .. } => Format::Json,
            Self { csv: true, .. } => Format::Csv,
            _ => Format::Text,
        }
    }
}

/// A table: names of columns, and rows of values.
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self {
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Value>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the table as JSON: one object per row.
    pub fn to_json(&self) -> Value {
        let object = |row: &Vec<Value>| {
            let fields = self.columns.iter().cloned().zip(row.iter().cloned());
            Value::Object(fields.collect::<Map<_, _>>())
        };
        Value::Array(self.rows.iter().map(object).collect())
    }

    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        let mut line = |cells: Vec<String>| {
            let quoted: Vec<_> = cells.iter().map(|cell| quote(cell)).collect();
            text.push_str(&quoted.join(","));
            text.push_str("\r\n");
        };
        line(self.columns.clone());
        for row in &self.rows {
            line(row.iter().map(plain).collect());
        }
        text
    }

    /// Formats the table as text: the first column is aligned left, the others right.
    pub fn to_text(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(plain).collect())
            .collect();
        let all = || std::iter::once(&self.columns).chain(&rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = all().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in all() {
            let mut line = String::new();
            for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a String cannot fail.
                let _ = match place {
                    0 => write!(line, "{cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Returns a value as text, without JSON's quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["what", "n"]);
        table.row([Value::from("say \"no\", please"), Value::from(12)]);
        table.row([Value::from("b"), Value::Null]);
        table
    }

    #[test]
    fn csv_quotes_what_would_end_a_cell() {
        assert_eq!(
            table().to_csv(),
            "what,n\r\n\"say \"\"no\"\", please\",12\r\nb,\r\n"
        );
    }

    #[test]
    fn text_is_aligned_and_json_is_named() {
        assert_eq!(
            table().to_text(),
            "what               n\nsay \"no\", please  12\nb\n"
        );
        assert_eq!(table().to_json()[0]["n"], 12);
    }
}
