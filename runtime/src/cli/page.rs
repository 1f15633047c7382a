//! Lists over the API, which come in pages: one page, as many items as were asked for, or all of them.

use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Output, items, text};

/// The most items that are asked for at once. A server that gives fewer is asked again.
const PAGE: usize = 500;

/// Which part of a list.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Page {
    /// At most so many.
    #[arg(long)]
    limit: Option<u32>,
    /// Go on after the page that named this.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

/// How much of a list is shown when nobody says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unasked {
    /// As many items as the server puts on a page: the list may be endless.
    OnePage,
    All,
}

impl Page {
    /// Prints the part of a list that was asked for, and says how to see more when there is more.
    pub(super) async fn show(
        &self,
        client: &Client,
        output: &Output,
        path: &[&str],
        filters: &[(&str, &Option<String>)],
        unasked: Unasked,
        table: impl FnOnce(&Value) -> String,
    ) -> anyhow::Result<()> {
        let ask = async |page: Self| client.get(path, &page.query(filters)).await;
        let list = self.gather(unasked, ask).await?;
        output.show(&list, table)?;
        note_more(output, &list);
        Ok(())
    }

    /// The part of a list that was asked for, as one page. `ask` gives one page of the server's.
    async fn gather(
        &self,
        unasked: Unasked,
        ask: impl AsyncFn(Self) -> anyhow::Result<Value>,
    ) -> anyhow::Result<Value> {
        if self.limit.is_none() && unasked == Unasked::OnePage {
            return ask(self.clone()).await;
        }
        let most = self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let (mut all, mut after) = (Vec::new(), self.after.clone());
        loop {
            // A limit of 0 is refused by the server, in its own words.
            let limit = u32::try_from((most - all.len()).min(PAGE)).ok();
            let page = ask(Self { limit, after }).await?;
            let count = items(&page).len();
            all.extend(items(&page).iter().take(most - all.len()).cloned());
            after = page.get("after").and_then(Value::as_str).map(str::to_owned);
            if after.is_none() || all.len() >= most || count == 0 {
                return Ok(json!({ "items": all, "after": after }));
            }
        }
    }

    /// The query's members for this page, after those that are given.
    pub(super) fn query<'a>(&self, filters: &[(&'a str, &Option<String>)]) -> Vec<(&'a str, String)> {
        let given = filters.iter().filter_map(|(name, value)| value.as_ref().map(|value| (*name, value.clone())));
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        given.chain(limit).chain(self.after.clone().map(|after| ("after", after))).collect()
    }
}

/// Says how to see more of a list, when there is more.
pub(super) fn note_more(output: &Output, list: &Value) {
    let after = text(list, "/after");
    if !after.is_empty() {
        output.note(&format!("there are more: add --after {after}"));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_page_is_asked_for_by_name() {
        let page = Page { limit: Some(5), after: Some("c".to_owned()) };
        let query = page.query(&[("state", &Some("failed".to_owned())), ("activity", &None)]);
        let text = |value: &str| value.to_owned();
        assert_eq!(query, [("state", text("failed")), ("limit", text("5")), ("after", text("c"))]);
    }

    /// A page of a server that has the numbers below 10, gives two if nothing is said and three at most, and takes a number for a
    /// cursor.
    fn numbers(page: &Page) -> Value {
        let from: u32 = page.after.as_ref().map_or(0, |after| after.parse().unwrap());
        let to = 10.min(from + page.limit.unwrap_or(2).min(3));
        json!({ "items": (from..to).collect::<Vec<_>>(), "after": (to < 10).then(|| to.to_string()) })
    }

    #[tokio::test]
    async fn as_many_items_come_as_were_asked_for_over_as_many_pages_as_it_takes() {
        for (limit, after, unasked, expected, next, requests) in [
            (None, None, Unasked::OnePage, 0..2, json!("2"), 1),
            (None, None, Unasked::All, 0..10, json!(null), 4),
            (Some(7), None, Unasked::OnePage, 0..7, json!("7"), 3),
            (Some(7), Some("5"), Unasked::All, 5..10, json!(null), 2),
            (Some(2), Some("5"), Unasked::All, 5..7, json!("7"), 1),
        ] {
            let page = Page { limit, after: after.map(str::to_owned) };
            let asked = RefCell::new(0);
            let ask = async |page: Page| {
                *asked.borrow_mut() += 1;
                Ok(numbers(&page))
            };
            let list = page.gather(unasked, ask).await.unwrap();
            assert_eq!(list["items"], json!(expected.collect::<Vec<u32>>()));
            assert_eq!((&list["after"], asked.into_inner()), (&next, requests));
        }
    }
}
