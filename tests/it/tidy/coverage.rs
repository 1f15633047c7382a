//! Every line of the requirements and of the known faults that this version answers for is named by a test, or has a row in
//! `docs/coverage.md` that says why not.

use std::collections::BTreeSet;

/// Ranges of lines, first and last.
const ASKED: [(&str, u32, u32); 9] = [
    ("R-A", 1, 12),
    ("R-B", 1, 15),
    ("R-C", 1, 29),
    ("R-D", 1, 44),
    ("R-E", 1, 23),
    ("R-K", 1, 29),
    ("R-L", 1, 18),
    ("R-L", 23, 28),
    ("R-Z", 1, 11),
];

/// Of the faults, those that are described.
const FAULTS: [&str; 105] = [
    "F-A01", "F-A03", "F-A05", "F-A06", "F-A07", "F-A08", "F-A10", "F-A12", "F-A14", "F-A15", "F-A17", "F-A18",
    "F-A20", "F-A21", "F-B01", "F-B02", "F-B03", "F-B04", "F-B05", "F-B07", "F-B08", "F-B09", "F-B10", "F-B12",
    "F-B15", "F-B16", "F-B17", "F-B18", "F-B19", "F-C01", "F-C03", "F-C04", "F-C05", "F-C06", "F-C08", "F-C10",
    "F-C11", "F-C12", "F-C13", "F-C15", "F-D01", "F-D03", "F-D04", "F-D05", "F-D08", "F-D09", "F-D11", "F-E01",
    "F-E02", "F-E04", "F-E06", "F-E07", "F-E08", "F-E09", "F-E11", "F-E12", "F-E14", "F-E16", "F-E17", "F-E19",
    "F-E21", "F-E22", "F-F01", "F-F03", "F-F05", "F-F06", "F-F08", "F-F09", "F-F10", "F-F11", "F-F12", "F-F14",
    "F-F15", "F-F17", "F-G01", "F-G02", "F-G03", "F-G05", "F-G07", "F-G08", "F-G09", "F-G11", "F-H01", "F-H03",
    "F-H04", "F-H06", "F-I01", "F-I04", "F-I05", "F-I07", "F-I09", "F-I11", "F-I12", "F-I13", "F-J01", "F-J02",
    "F-J04", "F-J06", "F-J07", "F-J08", "F-K01", "F-K03", "F-K04", "F-K05", "F-K08",
];

/// The ids that must be answered for.
pub fn asked() -> BTreeSet<String> {
    let lines = ASKED.iter().flat_map(|(kind, first, last)| (*first..=*last).map(move |n| format!("{kind}{n:02}")));
    lines.chain(FAULTS.map(str::to_owned)).collect()
}

/// The ids that a text names: `R-D04`, `R-D04, R-D07`, `R-D04 to R-D13`.
pub fn named(text: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut last: Option<(String, usize)> = None;
    for (at, id) in positions(text) {
        if let Some((first, end)) = &last
            && text[*end..at].trim() == "to"
            && first[..3] == id[..3]
        {
            let number = |id: &str| id[3..].parse::<u32>().unwrap_or_default();
            ids.extend((number(first)..=number(&id)).map(|n| format!("{}{n:02}", &id[..3])));
        }
        last = Some((id.clone(), at + id.len()));
        ids.insert(id);
    }
    ids
}

fn positions(text: &str) -> Vec<(usize, String)> {
    let bytes = text.as_bytes();
    let is_id = |at: usize| {
        let Some(id) = bytes.get(at..at + 5) else { return false };
        matches!(id[0], b'R' | b'F')
            && id[1] == b'-'
            && id[2].is_ascii_uppercase()
            && id[3..].iter().all(u8::is_ascii_digit)
    };
    (0..bytes.len()).filter(|at| is_id(*at)).map(|at| (at, text[at..at + 5].to_owned())).collect()
}

#[test]
fn ids_are_found_alone_in_lists_and_in_ranges() {
    let found: Vec<String> = named("/// R-D04, R-E10: x. R-L01 to R-L03 and F-B01.").into_iter().collect();
    assert_eq!(found, ["F-B01", "R-D04", "R-E10", "R-L01", "R-L02", "R-L03"]);
    assert!(named("R-D4 R_D04 XR-d04").is_empty());
    assert_eq!(asked().len(), 12 + 15 + 29 + 44 + 23 + 29 + 18 + 6 + 11 + 105);
}
