//! Long tables: data that the script shows page by page, with a filter for some columns.

use std::collections::BTreeMap;

use serde::Serialize;

use super::page::Page;
use crate::report::RenderError;

/// A long table.
#[derive(Debug)]
pub(super) struct Paged {
    /// The table's id; that of its data and of its parts begins like it.
    pub(super) id: &'static str,
    /// What it is called where it is not seen.
    pub(super) label: &'static str,
    /// The headings, from left to right.
    pub(super) columns: &'static [&'static str],
    /// Columns that can be chosen by, with the words beside the choice. They may lie behind the
    /// columns that are shown.
    pub(super) filters: &'static [(&'static str, usize)],
    /// Long texts from this column on are folded behind their first line.
    pub(super) folds_from: usize,
}

/// Rows as numbers of texts: what many of them say stands in the page once.
#[derive(Debug, Default, Serialize)]
pub(super) struct Packed {
    texts: Vec<String>,
    rows: Vec<Vec<usize>>,
    #[serde(skip)]
    known: BTreeMap<String, usize>,
}

impl Packed {
    /// Adds a row.
    pub(super) fn push(&mut self, row: Vec<String>) {
        let row = row.into_iter().map(|text| self.number(text)).collect();
        self.rows.push(row);
    }

    fn number(&mut self, text: String) -> usize {
        if let Some(number) = self.known.get(&text) {
            return *number;
        }
        let number = self.texts.len();
        self.texts.push(text.clone());
        self.known.insert(text, number);
        number
    }
}

impl Paged {
    /// Writes the table without its rows, and the rows as data.
    pub(super) fn write(&self, page: &mut Page, rows: &Packed) -> Result<(), RenderError> {
        page.raw("<div class=\"paged\" id=\"");
        page.raw(self.id);
        page.raw("\" data-columns=\"");
        page.text(&self.columns.len().to_string());
        page.raw("\" data-folds=\"");
        page.text(&self.folds_from.to_string());
        page.raw("\">\n<form>");
        for (words, column) in self.filters {
            page.raw("<label>");
            page.raw(words);
            page.raw(" <select data-column=\"");
            page.text(&column.to_string());
            page.raw("\"></select></label> ");
        }
        page.raw("<span role=\"status\"></span></form>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
        page.raw(self.label);
        page.raw("\"><table><thead><tr>");
        for column in self.columns {
            page.raw("<th scope=\"col\">");
            page.raw(column);
            page.raw("</th>");
        }
        page.raw(
            "</tr></thead><tbody></tbody></table></div>\n\
             <p><button type=\"button\" class=\"earlier\">Earlier</button> \
             <button type=\"button\" class=\"later\">Later</button></p>\n\
             <noscript><p>The rows are shown by a script.</p></noscript>\n",
        );
        page.data(rows)?;
        page.raw("</div>\n");
        Ok(())
    }
}
