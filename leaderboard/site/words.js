/* How values and names are written. */
"use strict";

const words = (() => {
  /* Maps, not objects: a stranger's word must not find what every object has. */
  const REGIMES = new Map([
    ["full", ["Full data", "The probe is fitted on the whole train split"]],
    [
      "10shot",
      ["10 per class", "The probe is fitted on ten sequences of each class; mean of five draws"],
    ],
    [
      "1shot",
      ["1 per class", "The probe is fitted on one sequence of each class; mean of five draws"],
    ],
  ]);
  const METRICS = new Map([
    ["MCC", ["MCC", "Matthews correlation: 1 is perfect, 0 no better than chance"]],
    ["Acc", ["Accuracy", "Share of the test sequences that are right"]],
    ["F1", ["Macro-F1", "Mean of the F1 of all classes, each with the same weight"]],
  ]);
  const CATEGORIES = new Map([
    ["Histone Mod.", "Histone modifications"],
    ["DNA Methyl.", "DNA methylation"],
    ["lncRNA", "Long non-coding RNA"],
    ["Mouse Enh.", "Mouse enhancers"],
    ["TF Binding", "Transcription factor binding"],
    ["Species Clf.", "Species classification"],
    ["Regulatory", "Regulatory regions"],
    ["Virus/Phage", "Viruses and phages"],
    ["Coding/NC", "Coding and non-coding sequences"],
    ["Chromatin Acc.", "Chromatin accessibility"],
  ]);
  const ABBREVIATIONS = new Map([
    ["T-enc", "Transformer encoder"],
    ["T-dec", "Transformer decoder"],
    ["SN", "single nucleotides"],
    ["BPE", "byte-pair encoding"],
    ["k-mer", "words of k nucleotides"],
  ]);
  const PROVENANCES = new Map([
    ["official", "scores made by the benchmark's authors"],
    ["verified", "scores made by others and computed again by the maintainers"],
    ["scores-verified", "scores made by others and computed again from their embeddings"],
    ["self-reported", "scores made by others, not computed again"],
  ]);

  const LABEL_AT_MOST = 32;

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

  /** A published word with its meaning, where it is an abbreviation that is known here. */
  function spelled(text) {
    return ABBREVIATIONS.has(text) ? `${text} (${ABBREVIATIONS.get(text)})` : text;
  }

  /** Text that keeps its place in a chart. */
  function short(text) {
    const letters = [...text];
    return letters.length > LABEL_AT_MOST
      ? `${letters.slice(0, LABEL_AT_MOST - 1).join("")}…`
      : text;
  }

  function counted(number, noun) {
    return `${number} ${noun}${number === 1 ? "" : "s"}`;
  }

  return Object.freeze({
    score,
    parameters,
    counted,
    spelled,
    short,
    regime: (id) => REGIMES.get(id)?.[0] ?? id,
    regimeHint: (id) => REGIMES.get(id)?.[1] ?? null,
    metric: (id) => METRICS.get(id)?.[0] ?? id,
    metricHint: (id) => METRICS.get(id)?.[1] ?? null,
    category: (label) => CATEGORIES.get(label) ?? label,
    provenance: (level) => PROVENANCES.get(level) ?? "as the submission calls it",
  });
})();
