/* Views of one task, one model, or a few models side by side. */
"use strict";

const details = (() => {
  const { element } = dom;

  function facts(pairs) {
    return element(
      "dl",
      { class: "facts" },
      pairs
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([label, value]) =>
          element("div", {}, element("dt", {}, label), element("dd", {}, value)),
        ),
    );
  }

  function task(current) {
    const found = board.findTask(current.task);
    if (!found) return views.missing(current, "task", "tasks");
    const measure = board.ofTask[found.index];
    const shown = board.models.filter((model) => board.passes(model, current));
    const byRegime = board.regimes.map((regime) =>
      columns.score(
        measure,
        { ...current, regime },
        {
          key: `regime:${regime}`,
          label: words.regime(regime),
          heat: "column",
        },
      ),
    );
    const sheet = {
      caption: `${found.label}: ${words.metric(current.metric)} of all models shown`,
      file: `task-${found.index + 1}-${current.metric}`,
      count: `${shown.length} of ${words.counted(board.models.length, "model")}`,
      sort: `regime:${current.regime}`,
      about: { ...columns.about(current), task: found.id },
      rows: shown,
      columns: [
        columns.model(current),
        columns.rank(measure, current, views.pool(current), {
          hint: `Rank in this task, ${columns.title(current)}`,
        }),
        ...byRegime,
        columns.parameters(),
        columns.provenance(),
      ],
    };
    return {
      title: found.label,
      nodes: [
        facts([
          ["Category", columns.categoryLink(current, found.category)],
          ["Subject", words.category(found.category.label)],
          ["Task id", element("code", {}, found.id)],
          ["Test sequences", found.test_rows?.toLocaleString("en-GB") ?? "not known for certain"],
          ["Ranked by", columns.title(current)],
        ]),
        sheets.render(sheet, current),
      ],
    };
  }

  function knownFacts(model) {
    const known = model.facts ?? {};
    const hub = `https://huggingface.co/${known.hub_id}`;
    return facts([
      ["Model id", element("code", {}, dom.name(model.id))],
      ["Parameters", `${words.parameters(model.params)} (${model.params.toLocaleString("en-GB")})`],
      [
        "Provenance of the scores",
        [dom.name(model.provenance), `: ${words.provenance(model.provenance)}`],
      ],
      ["Zero-shot", model.zero_shot ? "yes" : null],
      ["Architecture", words.spelled(known.architecture)],
      ["Tokenization", words.spelled(known.tokenization)],
      ["Pretraining data", known.pretraining_data],
      ["Weights", known.hub_id ? dom.outward(hub, known.hub_id) : known.weights_note],
      ["About the weights", known.hub_id ? known.weights_note : null],
      ["Page", known.url ? dom.outward(known.url, known.url) : null],
      ["Licence of the weights", model.facts ? (known.licence ?? "none found") : null],
      ["Licence of the code", known.code_licence],
      ["About the licence", known.licence_note],
      ["Published facts", model.facts ? null : "none are known beyond the submission"],
    ]);
  }

  function summarySheet(model, current) {
    const cells = board.metrics.flatMap((metric) => {
      const choice = (row) => ({ regime: row.regime, metric });
      return [board.macro, board.micro]
        .map((measure) => ({
          key: `${measure.key}:${metric}`,
          label: `${measure.label} ${words.metric(metric)}`,
          kind: "score",
          value: (row) => board.value(model, measure, choice(row)),
        }))
        .concat({
          key: `rank:${metric}`,
          label: `Rank by macro ${words.metric(metric)}`,
          kind: "rank",
          value: (row) => board.rankOf(board.models, board.macro, choice(row)).get(model) ?? null,
        });
    });
    return {
      caption: "Overall scores in every regime",
      file: `model-${model.index + 1}-overall`,
      about: { protocol: board.protocol, ranks: "among all models", model_id: model.id },
      rows: board.regimes.map((regime) => ({ regime })),
      columns: [
        {
          key: "regime",
          label: "Regime",
          kind: "text",
          heading: true,
          value: (row) => words.regime(row.regime),
        },
        ...cells,
      ],
    };
  }

  function categorySheet(model, current) {
    const measure = (row) => board.ofCategory[row.index];
    const best = (row) => board.leaders(board.models, measure(row), current);
    return {
      caption: `Categories: ${columns.title(current)}`,
      file: `model-${model.index + 1}-categories-${current.regime}-${current.metric}`,
      about: { ...columns.aboutAll(current), model_id: model.id },
      rows: board.categories,
      columns: [
        {
          key: "category",
          label: "Category",
          kind: "text",
          heading: true,
          value: (row) => row.label,
          node: (row) => columns.categoryLink(current, row),
        },
        { key: "tasks", label: "Tasks", kind: "count", value: (row) => row.tasks },
        {
          key: "score",
          label: "Score",
          kind: "score",
          value: (row) => board.value(model, measure(row), current),
        },
        {
          key: "rank",
          label: "Rank",
          kind: "rank",
          value: (row) => board.rankOf(board.models, measure(row), current).get(model) ?? null,
        },
        {
          key: "top",
          label: "Best score",
          kind: "score",
          value: (row) =>
            best(row).length ? board.value(best(row)[0], measure(row), current) : null,
        },
        {
          key: "best",
          label: "Best model",
          kind: "text",
          value: (row) =>
            best(row)
              .map((one) => one.display)
              .join("; ") || null,
          node: (row) =>
            element(
              "span",
              {},
              best(row).map((one) => columns.modelLink(current, one)),
            ),
        },
      ],
    };
  }

  function taskSheet(model, current) {
    const rows = board.tasks.filter((one) => board.matches(one, current.tq));
    const measure = (row) => board.ofTask[row.index];
    const ranks = new Map(
      rows.map((row) => [
        row,
        board.rankOf(board.models, measure(row), current).get(model) ?? null,
      ]),
    );
    const scores = board.regimes.flatMap((regime) =>
      board.metrics.map((metric) => ({
        key: `${regime}:${metric}`,
        label: `${words.regime(regime)}: ${words.metric(metric)}`,
        kind: "score",
        value: (row) => board.value(model, measure(row), { regime, metric }),
      })),
    );
    return {
      caption: "Tasks: all scores",
      file: `model-${model.index + 1}-tasks`,
      count: `${rows.length} of ${words.counted(board.tasks.length, "task")}`,
      sort: "category",
      about: { ...columns.aboutAll(current), model_id: model.id, task_search: current.tq },
      rows,
      columns: [
        {
          key: "task",
          label: "Task",
          kind: "text",
          heading: true,
          value: (row) => row.label,
          node: (row) => columns.taskLink(current, row),
          exported: [
            ["task_id", (row) => row.id],
            ["task", (row) => row.label],
          ],
        },
        { key: "category", label: "Category", kind: "text", value: (row) => row.category.label },
        {
          key: "rank",
          label: `Rank: ${columns.title(current)}`,
          kind: "rank",
          value: (row) => ranks.get(row),
        },
        ...scores,
      ],
    };
  }

  function valuesOf(model, current) {
    return board.ofCategory.map((measure) => board.value(model, measure, current));
  }

  function profileOf(models, current) {
    const others = board.models.filter((model) => !models.includes(model));
    return charts.profile(
      models.map((model) => ({ label: model.display, values: valuesOf(model, current) })),
      others.map((model) => valuesOf(model, current)),
      words.metric(current.metric),
    );
  }

  function model(current) {
    const found = board.findModel(current.model);
    if (!found) return views.missing(current, "model", "overall");
    const chosen = current.compare.includes(found.id);
    const full = current.compare.length === state.COMPARED_AT_MOST;
    const offer = full ? "Five models are chosen for comparison" : "Compare with others";
    const choose = element(
      "button",
      {
        type: "button",
        "data-key": "choose",
        disabled: full && !chosen,
        onclick: () => state.toggleCompared(found.id),
      },
      chosen ? "Remove from the comparison" : offer,
    );
    return {
      title: found.display,
      nodes: [
        knownFacts(found),
        element("p", {}, choose),
        sheets.render(summarySheet(found, current), current),
        element(
          "div",
          { class: "beside" },
          profileOf([found], current),
          sheets.render(categorySheet(found, current), current),
        ),
        sheets.render(taskSheet(found, current), current),
      ],
    };
  }

  function picker(current, models) {
    const options = board.models
      .filter((one) => !models.includes(one))
      .map((one) => element("option", { value: one.id }, one.display));
    return element(
      "label",
      { class: "axis" },
      "Add a model ",
      element(
        "select",
        {
          "data-key": "add",
          disabled: models.length === state.COMPARED_AT_MOST,
          onchange: (event) => state.toggleCompared(event.target.value),
        },
        element("option", { value: "" }, "Choose…"),
        options,
      ),
    );
  }

  function legend(current, models) {
    const items = models.map((one, index) =>
      element("li", {}, charts.mark(index), columns.modelLink(current, one), columns.remover(one)),
    );
    return element("ul", { class: "legend" }, items);
  }

  function compareSheet(models, current) {
    const measures = [board.macro, board.micro, ...board.ofCategory];
    const rows = measures.map((measure, position) => ({
      measure,
      category: board.categories[position - 2] ?? null,
      ranks: board.rankOf(board.models, measure, current),
      best: board.leaders(models, measure, current),
    }));
    const cells = models.map((one) => {
      const score = (row) => board.value(one, row.measure, current);
      const rank = (row) => row.ranks.get(one) ?? null;
      return {
        key: `model:${one.id}`,
        label: one.display,
        kind: "score",
        value: score,
        node: (row) =>
          score(row) === null
            ? "–"
            : element(
                row.best.includes(one) ? "strong" : "span",
                {},
                words.score(score(row)),
                element("span", { class: "place" }, rank(row) === null ? "" : ` #${rank(row)}`),
              ),
        exported: [
          [one.display, score],
          [`rank of ${one.display}`, rank],
        ],
      };
    });
    return {
      caption: `Side by side: ${columns.title(current)}`,
      file: `compare-${current.regime}-${current.metric}`,
      about: { ...columns.aboutAll(current), model_ids: models.map((one) => one.id) },
      rows,
      columns: [
        {
          key: "measure",
          label: "Score",
          kind: "text",
          heading: true,
          value: (row) => row.measure.label,
          node: (row) =>
            row.category ? columns.categoryLink(current, row.category) : row.measure.label,
        },
        {
          key: "tasks",
          label: "Tasks",
          kind: "count",
          value: (row) => row.category?.tasks ?? board.tasks.length,
        },
        ...cells,
      ],
    };
  }

  function compare(current) {
    const models = current.compare.map(board.findModel);
    const shown = models.length
      ? [
          legend(current, models),
          element(
            "p",
            { class: "note" },
            "Bold: the best of those compared. #: the rank among all models, in full precision.",
          ),
          element(
            "div",
            { class: "beside" },
            profileOf(models, current),
            sheets.render(compareSheet(models, current), current),
          ),
        ]
      : [element("p", {}, "Choose up to five models, here or by the boxes in any table.")];
    return {
      title: "Compare",
      lead: `${models.length} of at most ${state.COMPARED_AT_MOST} models.`,
      nodes: [picker(current, models), ...shown],
    };
  }

  return Object.freeze({ task, model, compare });
})();
