/* Columns that several sheets share, and what a sheet tells of how it was made. */
"use strict";

const columns = (() => {
  function choose(current, model) {
    const chosen = current.compare.includes(model.id);
    const full = current.compare.length === state.COMPARED_AT_MOST;
    return dom.element("input", {
      type: "checkbox",
      checked: chosen,
      disabled: full && !chosen,
      "data-key": `compare:${model.id}`,
      "aria-label": `Compare ${model.display}`,
      title: full && !chosen ? "Five models are chosen; remove one first" : "Compare",
      onchange: () => state.toggleCompared(model.id),
    });
  }

  /** A button that takes a model out of the comparison. */
  function remover(model) {
    return dom.element(
      "button",
      {
        type: "button",
        class: "remove",
        "aria-label": `Remove ${model.display} from the comparison`,
        onclick: () => state.toggleCompared(model.id),
      },
      "×",
    );
  }

  function modelLink(current, model) {
    return dom.element(
      "a",
      { href: state.link(current, { view: "model", model: model.id }) },
      dom.name(model.display),
    );
  }

  /** A link whose text may be short, in a place that says what it is about. */
  function detailLink(address, label, text) {
    const named = text === label ? null : `${text}: ${label}`;
    return dom.element("a", { href: address, "aria-label": named }, text);
  }

  function taskLink(current, task, text = task.label) {
    return detailLink(state.link(current, { view: "task", task: task.id }), task.label, text);
  }

  function categoryLink(current, category, text = category.label) {
    const address = state.link(current, { view: "category", category: category.label });
    return detailLink(address, category.label, text);
  }

  /** The row heading of a table of models, with its box for comparing. */
  function model(current) {
    return {
      key: "model",
      label: "Model",
      kind: "text",
      heading: true,
      value: (row) => row.display,
      node: (row) =>
        dom.element("span", { class: "model" }, choose(current, row), modelLink(current, row)),
      exported: [
        ["model_id", (row) => row.id],
        ["model", (row) => row.display],
      ],
    };
  }

  function parameters() {
    return {
      key: "params",
      label: "Parameters",
      kind: "parameters",
      value: (row) => row.params,
    };
  }

  function provenance() {
    return {
      key: "provenance",
      label: "Provenance",
      kind: "text",
      hint: "Who made the scores",
      value: (row) => row.provenance,
      node: (row) =>
        dom.element(
          "span",
          { class: "level", title: words.provenance(row.provenance) },
          dom.name(row.provenance),
        ),
    };
  }

  /** Models' scores by a measure. */
  function score(measure, choice, more = {}) {
    return {
      key: measure.key,
      label: measure.label,
      kind: "score",
      value: (row) => board.value(row, measure, choice),
      ...more,
    };
  }

  /** Models' ranks by a measure among a pool. */
  function rank(measure, choice, pool, more = {}) {
    const places = board.rankOf(pool, measure, choice);
    return {
      key: "rank",
      label: "Rank",
      kind: "rank",
      value: (row) => places.get(row) ?? null,
      ...more,
    };
  }

  /** What a download says of a table that no filter of models touches. */
  function aboutAll(current) {
    return {
      protocol: board.protocol,
      regime: current.regime,
      metric: current.metric,
      ranks: "among all models",
    };
  }

  /** What a download says of its table besides rows and columns. */
  function about(current) {
    return {
      ...aboutAll(current),
      ranks: current.among === "all" ? "among all models" : "among the models shown",
      search: current.q,
      parameters_in_millions: [current.min, current.max].map((text) =>
        text === "" ? null : Number(text),
      ),
      provenance_left_out: current.hide,
    };
  }

  function title(current) {
    return `${words.metric(current.metric)}, ${words.regime(current.regime).toLowerCase()}`;
  }

  return Object.freeze({
    model,
    parameters,
    provenance,
    score,
    rank,
    aboutAll,
    about,
    title,
    remover,
    modelLink,
    taskLink,
    categoryLink,
  });
})();
