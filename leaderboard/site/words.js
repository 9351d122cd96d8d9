/* How values and names are written. */
"use strict";

const words = (() => {
  /* Maps, not objects: a stranger's word must not find what every object has. */
  const REGIMES = new Map([
    ["full", "Full data"],
    ["10shot", "10 per class"],
    ["1shot", "1 per class"],
  ]);
  const METRICS = new Map([
    ["MCC", "MCC"],
    ["Acc", "Accuracy"],
    ["F1", "Macro-F1"],
  ]);
  const PROVENANCES = new Map([
    ["official", "scores made by the benchmark's authors"],
    ["verified", "scores made by others and computed again by the maintainers"],
    ["scores-verified", "scores made by others and computed again from their embeddings"],
    ["self-reported", "scores made by others, not computed again"],
  ]);

  /** A score with three decimals; zero has no sign. */
  function score(value) {
    const text = value.toFixed(3);
    return Number(text) === 0 ? text.replace("-", "") : text;
  }

  /** A number of parameters, with at most three digits. */
  function parameters(count) {
    for (const [unit, size] of [
      ["B", 1e9],
      ["M", 1e6],
      ["k", 1e3],
    ]) {
      if (count >= size) return `${Number((count / size).toPrecision(3))}${unit}`;
    }
    return String(count);
  }

  function counted(number, noun) {
    return `${number} ${noun}${number === 1 ? "" : "s"}`;
  }

  return Object.freeze({
    score,
    parameters,
    counted,
    regime: (id) => REGIMES.get(id) ?? id,
    metric: (id) => METRICS.get(id) ?? id,
    provenance: (level) => PROVENANCES.get(level) ?? "as the submission calls it",
  });
})();
