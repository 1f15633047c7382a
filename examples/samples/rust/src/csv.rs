//! A read, and a file that is put in place whole.

use deedbox_guest::prelude::*;

#[data]
struct Import {
    source_url: String,
    path: String,
}

#[data]
#[derive(PartialEq)]
struct Summary {
    rows: u64,
    total_cents: i64,
}

/// Sums the amounts of a CSV file and writes the summary.
#[activity]
fn import_csv(ctx: &Context, input: Import) -> Result<Summary, Failure> {
    let answer = ctx.http().get(&input.source_url).send()?.error_for_status()?;
    let summary = sum(answer.text()?)?;
    let file = format!("rows,total_cents\n{},{}\n", summary.rows, summary.total_cents);
    ctx.files().write(&input.path, file).effect("summary").send()?;
    Ok(summary)
}

/// Of `name,amount_cents` below a header.
fn sum(text: &str) -> Result<Summary, Failure> {
    let mut summary = Summary { rows: 0, total_cents: 0 };
    for (number, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let amount = line.rsplit_once(',').and_then(|(_, amount)| amount.trim().parse::<i64>().ok());
        summary.total_cents += amount.ok_or_else(|| bad(number + 1))?;
        summary.rows += 1;
    }
    Ok(summary)
}

fn bad(line: usize) -> Failure {
    Failure::permanent("bad-csv", format!("line {line} is not a name and an amount in cents"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_summed_and_a_bad_line_is_named() {
        assert_eq!(sum("name,amount_cents\na,1\nb,-3\n\n").unwrap(), Summary { rows: 2, total_cents: -2 });
        let failure = sum("name,amount_cents\na,1\nb,x\n").unwrap_err();
        assert_eq!((failure.code(), failure.is_retryable()), ("bad-csv", false));
        assert!(failure.message().contains("line 3"), "{failure}");
    }
}
