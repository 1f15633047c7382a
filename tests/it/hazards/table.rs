//! The table in `examples/hazards/README.md`, which readers and tests share.

const README: &str = include_str!("../../../examples/hazards/README.md");

/// What a second run of the naive twin does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    Doubles,
    AsksAgain,
    None,
}

#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub harm: Harm,
}

/// In the order of the table.
pub fn rows() -> Vec<Row> {
    README.lines().filter(|line| line.starts_with("| [")).map(read).collect()
}

/// The row of that name.
pub fn row(name: &str) -> Row {
    rows().into_iter().find(|row| row.name == name).unwrap_or_else(|| panic!("the table has no row {name}"))
}

fn read(line: &'static str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [link, _, _, twin] = cells[..] else { panic!("a row has four cells: {line}") };
    let (name, target) = link.trim_start_matches('[').split_once("](").unwrap();
    assert_eq!(target, format!("src/{name}.rs)"), "the link of {name}");
    let harm = match twin {
        "doubles" => Harm::Doubles,
        "asks again" => Harm::AsksAgain,
        "the same" => Harm::None,
        other => panic!("`{other}` is no harm"),
    };
    Row { name, harm }
}
