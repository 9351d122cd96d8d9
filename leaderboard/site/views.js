/* Views over all models: overall, categories, tasks, score against size. */
"use strict";

const views = (() => {
  const { element } = dom;

  function shownModels(current) {
    return board.models.filter((model) => board.passes(model, current));
  }

  /** The models that ranks are counted among. */
  function pool(current) {
    return current.among === "all" ? board.models : shownModels(current);
  }

  function countOf(shown) {
    return `${shown.length} of ${words.counted(board.models.length, "model")}`;
  }

  function names(current, models) {
    if (!models.length) return [element("span", {}, "–")];
    const more = models.length > 1 ? [` and ${models.length - 1} more`] : [];
    return [columns.modelLink(current, models[0]), ...more];
  }

  /** Who leads each category: what the overall number hides. */
  function leaderStrip(current, shown) {
    const cards = board.categories.map((category) => {
      const measure = board.ofCategory[category.index];
      const best = board.leaders(shown, measure, current);
      const value = best.length ? words.score(board.value(best[0], measure, current)) : "";
      return element(
        "li",
        {},
        columns.categoryLink(current, category),
        element("span", { class: "who" }, ...names(current, best)),
        element("span", { class: "what" }, value),
      );
    });
    if (!shown.length) return null;
    return element("ul", { class: "leaders", "aria-label": "Best model of each category" }, cards);
  }

  function finding(current, shown) {
    const first = board.leaders(shown, board.macro, current);
    if (!first.length) return null;
    const leading = board.ofCategory.map((measure) => board.leaders(shown, measure, current));
    const won = leading.filter((best) => best.includes(first[0])).length;
    const winners = new Set(leading.flat());
    return element(
      "p",
      { class: "finding" },
      columns.modelLink(current, first[0]),
      ` has the highest macro ${words.metric(current.metric)} of the models shown, and leads in `,
      element("strong", {}, `${won} of ${board.categories.length} categories`),
      `; ${words.counted(winners.size, "model")} lead${winners.size === 1 ? "s" : ""} at least ` +
        "one. Choose by the category of your task, not by the overall rank.",
    );
  }

  /** Columns of the best and the worst of a model's category ranks, and of all of them. */
  function categoryRanks(current, among) {
    const each = board.categories.map((category) =>
      columns.rank(board.ofCategory[category.index], current, among, {
        key: `rank:${category.label}`,
        label: category.label,
        heat: "table",
        upright: true,
        hint: `Rank in ${words.category(category.label)} (${words.counted(category.tasks, "task")})`,
        exported: [],
      }),
    );
    each.forEach((column) => {
      column.exported = [[`rank in ${column.label}`, column.value]];
    });
    const extreme = (pick) => (row) => {
      const ranks = each.map((column) => column.value(row)).filter((rank) => rank !== null);
      return ranks.length ? pick(...ranks) : null;
    };
    return [
      {
        key: "best",
        label: "Best category rank",
        kind: "rank",
        hint: "The best of its ranks in the categories",
        value: extreme(Math.min),
        exported: [["best category rank", extreme(Math.min)]],
      },
      {
        key: "worst",
        label: "Worst category rank",
        kind: "rank",
        hint: "The worst of its ranks in the categories",
        value: extreme(Math.max),
        exported: [["worst category rank", extreme(Math.max)]],
      },
      ...each,
    ];
  }

  function overall(current) {
    const shown = shownModels(current);
    const among = pool(current);
    const sheet = {
      caption: `Overall: ${columns.title(current)}, with ranks in every category`,
      file: `overall-${current.regime}-${current.metric}`,
      count: countOf(shown),
      sort: "macro",
      about: columns.about(current),
      rows: shown,
      columns: [
        columns.model(current),
        columns.rank(board.macro, current, among, { hint: "Rank by macro" }),
        columns.score(board.macro, current, { hint: "Mean of the categories" }),
        columns.score(board.micro, current, { hint: "Mean of the tasks" }),
        columns.parameters(),
        columns.provenance(),
        ...categoryRanks(current, among),
      ],
    };
    return {
      title: "Overall",
      nodes: [
        finding(current, shown),
        leaderStrip(current, shown),
        element(
          "p",
          { class: "note" },
          `Macro: the mean of ${board.categories.length} categories. ` +
            `Micro: the mean of ${board.tasks.length} tasks. ` +
            "Coloured: the rank in each category, deeper is better. All words and numbers: ",
          element("a", { href: state.link(current, { view: "help" }) }, "How to read this"),
          ".",
        ),
        sheets.render(sheet, current),
      ],
    };
  }

  function switcher(current, key, label, options) {
    const buttons = options.map(([value, text]) =>
      element(
        "button",
        {
          type: "button",
          "aria-pressed": String(current[key] === value),
          "data-key": `${key}:${value}`,
          onclick: () => state.change(() => ({ [key]: value })),
        },
        text,
      ),
    );
    return element("div", { class: "switch", role: "group", "aria-label": label }, buttons);
  }

  function heatmapTools(current) {
    return [
      switcher(current, "cells", "What cells show", [
        ["score", "Scores"],
        ["rank", "Ranks"],
      ]),
      switcher(current, "colour", "Range of the colours", [
        ["column", "Colour by column"],
        ["table", "by table"],
      ]),
    ];
  }

  /** A heat column of scores or ranks, as the state asks. */
  function heatColumn(measure, current, among, more) {
    const shared = { key: measure.key, label: measure.label, heat: current.colour, ...more };
    return current.cells === "score"
      ? columns.score(measure, current, shared)
      : columns.rank(measure, current, among, shared);
  }

  function categories(current) {
    const shown = shownModels(current);
    const among = pool(current);
    const cells = board.categories.map((category) =>
      heatColumn(board.ofCategory[category.index], current, among, {
        hint: words.category(category.label),
        under: columns.categoryLink(current, category, words.counted(category.tasks, "task")),
      }),
    );
    const sheet = {
      caption: `Models and categories: ${columns.title(current)}`,
      file: `categories-${current.regime}-${current.metric}`,
      count: countOf(shown),
      tools: heatmapTools(current),
      sort: "macro",
      about: { ...columns.about(current), cells: current.cells },
      rows: shown,
      columns: [
        columns.model(current),
        columns.score(board.macro, current, { hint: "Mean of the categories" }),
        ...cells,
      ],
    };
    return {
      title: "Categories",
      nodes: [
        element(
          "p",
          { class: "note" },
          "A category's score is the mean of its tasks. Press a heading to sort by it, or the " +
            "number below it to see its tasks. A deeper colour is better.",
        ),
        sheets.render(sheet, current),
      ],
    };
  }

  function category(current) {
    const found = board.findCategory(current.category);
    if (!found) return missing(current, "category", "categories");
    const shown = shownModels(current);
    const among = pool(current);
    const measure = board.ofCategory[found.index];
    const tasks = board.tasks.filter(
      (task) => task.category === found && board.matches(task, current.tq),
    );
    const cells = tasks.map((task) =>
      heatColumn(board.ofTask[task.index], current, among, {
        under: columns.taskLink(current, task, "task"),
      }),
    );
    const sheet = {
      caption: `Models and the tasks of ${found.label}: ${columns.title(current)}`,
      file: `category-${found.index + 1}-${current.regime}-${current.metric}`,
      count: countOf(shown),
      tools: heatmapTools(current),
      sort: measure.key,
      about: { ...columns.about(current), cells: current.cells, task_search: current.tq },
      rows: shown,
      columns: [
        columns.model(current),
        columns.rank(measure, current, among, { hint: `Rank in ${found.label}` }),
        columns.score(measure, current, { label: "Category", hint: "Mean of its tasks" }),
        columns.parameters(),
        ...cells,
      ],
    };
    const narrowed =
      tasks.length < found.tasks
        ? ` ${tasks.length} of them match the search; the category's score is the mean of all.`
        : "";
    return {
      title: found.label,
      lead: `${words.category(found.label)}: ${words.counted(found.tasks, "task")}.${narrowed}`,
      nodes: [sheets.render(sheet, current)],
    };
  }

  function median(models, measure, current) {
    const values = models.map((model) => board.value(model, measure, current));
    return d3.median(values.filter((value) => value !== null)) ?? null;
  }

  function taskColumns(current, shown) {
    const best = new Map(
      board.tasks.map((task) => [task, board.leaders(shown, board.ofTask[task.index], current)]),
    );
    const bestScore = (task) =>
      best.get(task).length
        ? board.value(best.get(task)[0], board.ofTask[task.index], current)
        : null;
    const bestNames = (task) =>
      best
        .get(task)
        .map((model) => model.display)
        .join("; ") || null;
    return [
      {
        key: "task",
        label: "Task",
        kind: "text",
        heading: true,
        value: (task) => task.label,
        node: (task) => columns.taskLink(current, task),
      },
      {
        key: "category",
        label: "Category",
        kind: "text",
        value: (task) => task.category.label,
        node: (task) => columns.categoryLink(current, task.category),
      },
      {
        key: "best",
        label: "Best model",
        kind: "text",
        value: bestNames,
        node: (task) => element("span", {}, ...names(current, best.get(task))),
      },
      { key: "score", label: "Best score", kind: "score", heat: "table", value: bestScore },
      {
        key: "median",
        label: "Median",
        kind: "score",
        heat: "table",
        value: (task) => median(shown, board.ofTask[task.index], current),
      },
      {
        key: "id",
        label: "Id",
        kind: "text",
        value: (task) => task.id,
        node: (task) => element("code", {}, task.id),
      },
    ];
  }

  function tasks(current) {
    const shown = shownModels(current);
    const rows = board.tasks.filter((task) => board.matches(task, current.tq));
    const sheet = {
      caption: `Tasks: ${columns.title(current)}, among ${countOf(shown)}`,
      file: `tasks-${current.regime}-${current.metric}`,
      count: `${rows.length} of ${words.counted(board.tasks.length, "task")}`,
      sort: "category",
      about: { ...columns.about(current), task_search: current.tq },
      rows,
      columns: taskColumns(current, shown),
    };
    return {
      title: "Tasks",
      nodes: [
        element(
          "p",
          { class: "note" },
          `The best and the median of ${countOf(shown)}, task by task.`,
        ),
        sheets.render(sheet, current),
      ],
    };
  }

  function axisChoice(current) {
    const option = (measure) =>
      element(
        "option",
        { value: measure.key, selected: measure.key === current.axis },
        measure.label,
      );
    const group = (label, measures) => element("optgroup", { label }, measures.map(option));
    return element(
      "label",
      { class: "axis" },
      "Score ",
      element(
        "select",
        {
          "data-key": "axis",
          onchange: (event) => state.change(() => ({ axis: event.target.value })),
        },
        option(board.macro),
        option(board.micro),
        group("Categories", board.ofCategory),
        group("Tasks", board.ofTask),
      ),
    );
  }

  function chart(current) {
    const measure = board.measures.get(current.axis);
    const scored = shownModels(current)
      .map((model) => ({
        model,
        params: model.params,
        value: board.value(model, measure, current),
      }))
      .filter((point) => point.value !== null);
    const front = new Set(board.paretoFront(scored));
    const points = scored.map((point) => ({
      ...point,
      label: point.model.display,
      front: front.has(point),
      chosen: current.compare.includes(point.model.id),
    }));
    const onFront = new Set(points.filter((point) => point.front).map((point) => point.model));
    const sheet = {
      caption: `${measure.label} against parameters: ${columns.title(current)}`,
      file: `score-by-size-${current.regime}-${current.metric}`,
      count: countOf(points),
      sort: "params",
      about: columns.about(current),
      rows: points.map((point) => point.model),
      columns: [
        columns.model(current),
        columns.parameters(),
        columns.score(measure, current),
        columns.rank(measure, current, pool(current)),
        {
          key: "front",
          label: "Pareto front",
          kind: "text",
          hint: "No model is as small and as good",
          value: (row) => (onFront.has(row) ? "yes" : "no"),
        },
      ],
    };
    const open = ({ model }) => {
      location.hash = state.link(current, { view: "model", model: model.id });
    };
    const label = `${measure.label} ${words.metric(current.metric)}`;
    return {
      title: "Score and size",
      nodes: [
        axisChoice(current),
        element(
          "div",
          { class: "beside" },
          points.length ? charts.scatter(points, label, open) : null,
          sheets.render(sheet, current),
        ),
      ],
    };
  }

  /** What a link to something unknown shows, with a way on. */
  function missing(current, what, view) {
    return {
      title: `No such ${what}`,
      nodes: [
        element(
          "p",
          {},
          `This leaderboard has no ${what} of that name. `,
          element("a", { href: state.link(current, { view }) }, "See all that there are"),
          ".",
        ),
      ],
    };
  }

  return Object.freeze({ overall, categories, category, tasks, chart, pool, missing });
})();
