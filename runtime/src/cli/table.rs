//! Tables for people. A table that does not fit the terminal loses words of its wide columns; if that is not enough, each row
//! becomes a block of lines. What is copied from a table, such as an id, is never cut.

use std::io::IsTerminal;

use super::output::plain;

/// Words of a column that may be cut are kept at least this long.
const LEAST: usize = 8;
const GAP: usize = 2;

#[derive(Debug)]
pub(super) struct Table {
    heads: Vec<Head>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Head {
    title: &'static str,
    /// Whether its cells may be cut.
    flexible: bool,
}

impl Table {
    /// Titles from left to right; a title that ends in `…` is shown without it and its cells may be cut.
    pub(super) fn new(titles: &[&'static str]) -> Self {
        let head = |title: &&'static str| match title.strip_suffix('…') {
            Some(title) => Head { title, flexible: true },
            None => Head { title, flexible: false },
        };
        Self { heads: titles.iter().map(head).collect(), rows: Vec::new() }
    }

    /// Adds a row with one cell for each title.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// The table for this terminal, or `empty` when it has no rows. Where there is no terminal it is as wide as it is.
    pub(super) fn render(&self, empty: &str) -> String {
        if self.rows.is_empty() { empty.to_owned() } else { self.render_within(terminal_width()) }
    }

    fn render_within(&self, width: Option<usize>) -> String {
        match self.fit(width.unwrap_or(usize::MAX)) {
            Some(widths) => self.lines(&widths),
            None => self.blocks(),
        }
    }

    /// The columns' widths, or none when the table cannot be made to fit.
    fn fit(&self, width: usize) -> Option<Vec<usize>> {
        let mut widths: Vec<usize> = (0..self.heads.len()).map(|column| self.natural(column)).collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        loop {
            let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
            if over == 0 {
                return Some(widths);
            }
            let cuttable = |column: &usize| self.heads[*column].flexible && widths[*column] > LEAST;
            let widest = (0..widths.len()).filter(cuttable).max_by_key(|column| widths[*column])?;
            widths[widest] -= over.min(widths[widest] - LEAST);
        }
    }

    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell));
        cells.chain([length(self.heads[column].title)]).max().unwrap_or(0)
    }

    fn lines(&self, widths: &[usize]) -> String {
        let titles: Vec<String> = self.heads.iter().map(|head| head.title.to_uppercase()).collect();
        let line = |cells: &Vec<String>| {
            let padded = cells.iter().zip(widths).map(|(cell, width)| pad(&cut(cell, *width), *width));
            let line = padded.collect::<Vec<_>>().join(&" ".repeat(GAP));
            format!("{}\n", line.trim_end())
        };
        std::iter::once(&titles).chain(&self.rows).map(line).collect()
    }

    fn blocks(&self) -> String {
        let titles = self.heads.iter().map(|head| length(head.title)).max().unwrap_or(0);
        let block = |row: &Vec<String>| {
            let line = |(head, cell): (&Head, &String)| format!("{}  {cell}\n", pad(head.title, titles));
            self.heads.iter().zip(row).map(line).collect::<String>()
        };
        self.rows.iter().map(block).collect::<Vec<_>>().join("\n")
    }
}

/// Names and values below each other, without those that are empty.
pub(super) fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    let shown = pairs.iter().filter(|(_, value)| !value.is_empty());
    shown.map(|(name, value)| format!("{}  {value}\n", pad(name, width))).collect()
}

fn terminal_width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(length(text));
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["id", "words…"]);
        table.row(["0123456789".to_owned(), "many words that say little".to_owned()]);
        table.row(["x".to_owned(), "short".to_owned()]);
        table
    }

    #[test]
    fn a_table_that_fits_is_shown_whole() {
        let text = table().render_within(None);
        assert_eq!(text, "ID          WORDS\n0123456789  many words that say little\nx           short\n");
    }

    #[test]
    fn only_words_are_cut_to_fit() {
        let text = table().render_within(Some(30));
        assert_eq!(text.lines().nth(1), Some("0123456789  many words that s…"));
        assert!(text.lines().all(|line| line.chars().count() <= 30));
    }

    #[test]
    fn a_table_that_cannot_fit_becomes_blocks() {
        let text = table().render_within(Some(15));
        assert_eq!(text, "id     0123456789\nwords  many words that say little\n\nid     x\nwords  short\n");
    }

    #[test]
    fn a_cell_is_one_line() {
        let mut table = Table::new(&["a"]);
        table.row(["x\ny\u{1b}".to_owned()]);
        assert_eq!(table.render_within(None), "A\nx y\u{fffd}\n");
    }

    #[test]
    fn empty_values_are_left_out_of_pairs() {
        let shown = pairs(&[("run", "1".to_owned()), ("failure", String::new())]);
        assert_eq!(shown, "run      1\n");
    }
}
