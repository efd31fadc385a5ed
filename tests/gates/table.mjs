// Prints the table of the gates from the rows that they wrote: node tests/gates/table.mjs ROWS
import { existsSync, readFileSync } from "node:fs";

const path = process.argv[2];
const rows = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n").filter(Boolean).map((line) => JSON.parse(line)) : [];
const words = { true: "yes", false: "**not met**", null: "skipped" };
const cells = rows.map(({ name, found, asked, met }) => [name, found, asked, words[met]].map((text) => text.replaceAll("|", "\\|")));
const table = [["gate", "found", "asked", "met"], ...cells];
const cut = (text) => (text.length > 100 ? `${text.slice(0, 99)}…` : text);
const width = (column) => Math.max(...table.map((row) => cut(row[column]).length));
const widths = [0, 1, 2, 3].map(width);
const line = (row) => `| ${row.map((text, at) => cut(text).padEnd(widths[at])).join(" | ")} |`;
console.log([line(table[0]), `|${widths.map((w) => "-".repeat(w + 2)).join("|")}|`, ...table.slice(1).map(line)].join("\n"));
const count = (met) => rows.filter((row) => row.met === met).length;
console.log(`\n${count(true)} met, ${count(false)} not met, ${count(null)} skipped`);
