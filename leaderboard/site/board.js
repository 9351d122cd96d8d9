/* The leaderboard's data, and what follows from them: values, ranks, the Pareto front. */
"use strict";

const board = (() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const models = page.models.map((model, index) => ({
    ...model,
    index,
    searched: [model.display, model.id, ...Object.values(model.facts ?? {})]
      .filter((value) => typeof value === "string")
      .join("\n")
      .toLowerCase(),
  }));
  const categories = page.categories.map((label, index) => ({
    label,
    index,
    tasks: page.tasks.filter((task) => task.category === index).length,
  }));
  const tasks = page.tasks.map((task, index) => ({
    ...task,
    index,
    category: categories[task.category],
    searched: `${task.label}\n${task.id}\n${categories[task.category].label}`.toLowerCase(),
  }));

  /* A measure is what a model can be ranked by: macro, micro, a category, a task. */
  const macro = { key: "macro", label: "Macro", pick: (scores) => scores.macro };
  const micro = { key: "micro", label: "Micro", pick: (scores) => scores.micro };
  const ofCategory = categories.map(({ label, index }) => ({
    key: `category:${label}`,
    label,
    pick: (scores) => scores.categories[index],
  }));
  const ofTask = tasks.map(({ id, label, index }) => ({
    key: `task:${id}`,
    label,
    pick: (scores) => scores.tasks[index],
  }));
  const measures = new Map(
    [macro, micro, ...ofCategory, ...ofTask].map((measure) => [measure.key, measure]),
  );

  /** A model's value in full precision, or null where it has none. */
  function value(model, measure, { regime, metric }) {
    const scores = page.scores[regime][metric][model.index];
    return scores === null ? null : measure.pick(scores);
  }

  /**
   * Rank values: one more than the number of larger ones, so that equal values share a rank and
   * the next is left out (1, 2, 2, 4). Values are compared in full precision; null has no rank.
   */
  function ranks(values) {
    const sorted = values.filter((one) => one !== null).sort((a, b) => b - a);
    const first = new Map();
    sorted.forEach((one, position) => {
      if (!first.has(one)) first.set(one, position + 1);
    });
    return values.map((one) => (one === null ? null : first.get(one)));
  }

  /** Model -> rank by a measure, among the given models. */
  function rankOf(among, measure, choice) {
    const places = ranks(among.map((model) => value(model, measure, choice)));
    return new Map(among.map((model, position) => [model, places[position]]));
  }

  /** The models of the highest value; several where they are equal, none without values. */
  function leaders(among, measure, choice) {
    const places = rankOf(among, measure, choice);
    return among.filter((model) => places.get(model) === 1);
  }

  /** Whether each word of a search is somewhere in what a model or a task is searched by. */
  function matches({ searched }, search) {
    return search
      .toLowerCase()
      .split(/\s+/)
      .every((word) => searched.includes(word));
  }

  /** Whether the filters of a state let a model through. */
  function passes(model, { q, min, max, hide }) {
    return (
      matches(model, q) &&
      (min === "" || model.params >= Number(min) * 1e6) &&
      (max === "" || model.params <= Number(max) * 1e6) &&
      !hide.includes(model.provenance)
    );
  }

  /** Points (params, value) that no other point beats in one and equals or beats in the other. */
  function paretoFront(points) {
    return points.filter((point) =>
      points.every(
        (other) =>
          other.params > point.params ||
          other.value < point.value ||
          (other.params === point.params && other.value === point.value),
      ),
    );
  }

  return Object.freeze({
    name: page.name,
    protocol: page.protocol,
    regimes: page.regimes,
    metrics: page.metrics,
    provenances: [...new Set(models.map((model) => model.provenance))].sort(),
    models,
    categories,
    tasks,
    macro,
    micro,
    ofCategory,
    ofTask,
    measures,
    value,
    ranks,
    rankOf,
    leaders,
    matches,
    passes,
    paretoFront,
    findModel: (id) => models.find((model) => model.id === id),
    findTask: (id) => tasks.find((task) => task.id === id),
    findCategory: (label) => categories.find((category) => category.label === label),
  });
})();
