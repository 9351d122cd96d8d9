/* CSV and JSON files of a sheet: its rows and columns as shown, its numbers in full precision. */
"use strict";

const downloads = (() => {
  /* A spreadsheet takes text that begins so for a formula. */
  const FORMULA = /^[=+\-@\t\r]/;

  function fields(sheet) {
    return sheet.columns.flatMap((column) => column.exported ?? [[column.label, column.value]]);
  }

  function cell(value) {
    if (value === null) return "";
    if (typeof value !== "string") return String(value);
    const safe = FORMULA.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function csv(sheet) {
    const columns = fields(sheet);
    const lines = [
      columns.map(([label]) => cell(label)),
      ...sheet.rows.map((row) => columns.map(([, value]) => cell(value(row)))),
    ];
    return lines.map((line) => `${line.join(",")}\r\n`).join("");
  }

  function json(sheet) {
    const columns = fields(sheet);
    const document = {
      benchmark: board.name,
      table: sheet.caption,
      ...sheet.about,
      columns: columns.map(([label]) => label),
      rows: sheet.rows.map((row) => columns.map(([, value]) => value(row))),
    };
    return `${JSON.stringify(document, null, 1)}\n`;
  }

  function save(text, type, fileName) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    const anchor = dom.element("a", { href: address, download: fileName });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  /** The two buttons of a sheet. */
  function buttons(sheet) {
    const what = `: ${sheet.caption}`;
    const make = (label, type, text) =>
      dom.element(
        "button",
        {
          type: "button",
          "data-key": `${label}:${sheet.file}`,
          title: "The rows and columns as shown, numbers in full precision",
          onclick: () => save(text(sheet), type, `${sheet.file}.${label.toLowerCase()}`),
        },
        label,
        dom.element("span", { class: "unseen" }, what),
      );
    return dom.element(
      "div",
      { class: "downloads" },
      dom.element("span", {}, "Download"),
      make("CSV", "text/csv;charset=utf-8", csv),
      make("JSON", "application/json", json),
    );
  }

  return Object.freeze({ buttons, csv, json });
})();
