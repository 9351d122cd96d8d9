/* Sheets: semantic tables that can be sorted, coloured, scrolled by keyboard and downloaded.
 *
 * A sheet is {caption, file, columns, rows, sort, about, tools}; rows are in the order they have
 * without sorting. A column is
 *   key, label        its name in addresses and in its heading
 *   kind              "text", "score", "rank", "parameters" or "count"
 *   value(row)        text or number; null where there is none
 *   node(row)         what a cell shows, where that is more than the value's text
 *   heading           the row's own name (th instead of td)
 *   heat              "column" or "table": coloured by the values of its column, or of all such
 *   upright           the heading is written upwards
 *   under             a node below the heading
 *   hint              what the heading's tooltip says
 *   exported          [[label, value(row)], ...] where a download needs other fields
 */
"use strict";

const sheets = (() => {
  const TEXT = { score: words.score, parameters: words.parameters };

  function shownText(column, value) {
    if (value === null) return "–";
    return (TEXT[column.kind] ?? String)(value);
  }

  /** What a first press on a heading sorts by: best first, names from A. */
  function firstDirection(column) {
    return ["score", "parameters", "count"].includes(column.kind) ? "descending" : "ascending";
  }

  function compare(a, b) {
    if (typeof a === "string") {
      const [first, second] = [a.toLowerCase(), b.toLowerCase()];
      return first < second ? -1 : Number(first > second);
    }
    return a - b;
  }

  /** Sort stably; rows without a value stand last in either direction. */
  function sorted(rows, column, direction) {
    const sign = direction === "ascending" ? 1 : -1;
    return [...rows].sort((one, other) => {
      const [a, b] = [column.value(one), column.value(other)];
      if (a === null || b === null) return Number(a === null) - Number(b === null);
      return sign * compare(a, b);
    });
  }

  /** Column key -> function from a value to its place between 0 (worst) and 1 (best). */
  function heatScales(sheet) {
    const heated = sheet.columns.filter((column) => column.heat);
    const valuesOf = (columns) =>
      columns.flatMap((column) => sheet.rows.map(column.value)).filter((value) => value !== null);
    const whole = d3.extent(valuesOf(heated.filter((column) => column.heat === "table")));
    return new Map(
      heated.map((column) => {
        const [low, high] = column.heat === "table" ? whole : d3.extent(valuesOf([column]));
        const place = (value) => (high > low ? (value - low) / (high - low) : 1);
        return [column.key, column.kind === "rank" ? (value) => 1 - place(value) : place];
      }),
    );
  }

  function heading(sheet, column, order) {
    const direction = order.column === column ? order.direction : "none";
    const opposite = direction === "ascending" ? "descending" : "ascending";
    const next = direction === "none" ? firstDirection(column) : opposite;
    const press = () => state.change(() => ({ sort: column.key, dir: next }));
    const label = dom.element("span", { class: "label" }, column.label);
    const inside = sheet.sort
      ? dom.element(
          "button",
          { type: "button", "data-key": `sort:${column.key}`, onclick: press },
          label,
          dom.element("span", { class: "arrow", "aria-hidden": "true" }),
        )
      : label;
    return dom.element(
      "th",
      {
        scope: "col",
        class: `${column.kind}${column.upright ? " upright" : ""}`,
        "aria-sort": sheet.sort ? direction : null,
        title: column.hint ?? null,
      },
      inside,
      column.under ?? null,
    );
  }

  function bodyCell(column, row, scales) {
    const value = column.value(row);
    const attributes = { class: column.kind };
    if (column.heading) attributes.scope = "row";
    if (column.heat && value !== null) {
      attributes.class += " heat";
      attributes["--place"] = scales.get(column.key)(value).toFixed(3);
    }
    const content = column.node ? column.node(row) : shownText(column, value);
    return dom.element(column.heading ? "th" : "td", attributes, content);
  }

  function table(sheet, order) {
    const scales = heatScales(sheet);
    const head = sheet.columns.map((column) => heading(sheet, column, order));
    const body = sheet.rows.map((row) =>
      dom.element(
        "tr",
        {},
        sheet.columns.map((column) => bodyCell(column, row, scales)),
      ),
    );
    return dom.element(
      "table",
      {},
      dom.element("caption", { class: "unseen" }, sheet.caption),
      dom.element("thead", {}, dom.element("tr", {}, head)),
      dom.element("tbody", {}, body),
    );
  }

  function orderOf(sheet, current) {
    const asked = sheet.columns.find((column) => column.key === current.sort);
    if (asked) return { column: asked, direction: current.dir || firstDirection(asked) };
    const column = sheet.columns.find(({ key }) => key === sheet.sort);
    return { column, direction: firstDirection(column) };
  }

  function nothing() {
    return dom.element(
      "p",
      { class: "nothing" },
      "Nothing passes these filters. ",
      dom.element("button", { type: "button", onclick: state.clearFilters }, "Show all"),
    );
  }

  /** The nodes of a sheet, sorted as the state asks; `sort` names the column to begin with. */
  function render(sheet, current) {
    const order = sheet.sort ? orderOf(sheet, current) : {};
    const rows = sheet.sort ? sorted(sheet.rows, order.column, order.direction) : sheet.rows;
    const shown = { ...sheet, rows };
    return dom.element(
      "section",
      { class: "sheet", "data-sheet": sheet.file },
      dom.element(
        "div",
        { class: "sheet-bar" },
        dom.element("p", { class: "count" }, sheet.count ?? sheet.caption),
        ...(sheet.tools ?? []),
        downloads.buttons(shown),
      ),
      dom.element(
        "div",
        { class: "scroll", role: "region", tabindex: "0", "aria-label": sheet.caption },
        rows.length ? table(shown, order) : nothing(),
      ),
    );
  }

  return Object.freeze({ render });
})();
