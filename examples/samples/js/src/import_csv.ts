// A read and a file: the sums of a table, put in place whole.

import { activity, Failure, s } from "@deedbox/guest";

export const importCsv = activity(
  {
    name: "import-csv",
    summary: "Reads a table and writes its sums to a file.",
    input: s.object({ source_url: s.string(), path: s.string() }),
    output: s.object({ rows: s.integer(), total_cents: s.integer() }),
  },
  (ctx, { source_url, path }) => {
    const amounts = amountsOf(ctx.http.get(source_url).errorForStatus().text());
    const rows = amounts.length;
    const total_cents = amounts.reduce((sum, amount) => sum + amount, 0);
    ctx.files.write(path, `rows,total_cents\n${rows},${total_cents}\n`, { effect: "summary" });
    return { rows, total_cents };
  },
);

/** The second column of each line after the first. */
function amountsOf(table: string): number[] {
  const lines = table.split("\n").map((line) => line.replace(/\r$/u, ""));
  if (lines.at(-1) === "") lines.pop();
  return lines.slice(1).map((line, i) => {
    const fields = line.split(",");
    const amount = Number(fields[1]);
    if (fields.length !== 2 || !/^-?[0-9]+$/u.test(fields[1]!) || !Number.isSafeInteger(amount)) {
      throw Failure.permanent("bad-csv", `line ${i + 2} is not \`name,amount_cents\``);
    }
    return amount;
  });
}
