/* Charts drawn by Observable Plot; each stands beside a table of the same numbers. */
"use strict";

const charts = (() => {
  /* Okabe and Ito's colours, told apart by colour-blind readers, and a shape for each. */
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];
  const SHAPES = ["circle", "square", "triangle", "diamond2", "star"];
  const INK = "var(--ink)";
  const QUIET = "var(--quiet)";
  const ACCENT = "var(--accent)";
  const NARROW = 560;
  const LINE_HEIGHT = 14;

  /**
   * A figure that is drawn again whenever its width changes.
   *
   * @param {string} description - What the chart shows, for those who do not see it.
   * @param {function(number): Object} options - Width in pixels -> Plot's options.
   * @param {function(SVGElement)} [finish] - Called with what was drawn.
   */
  function figure(description, options, finish = () => {}) {
    const holder = dom.element("div", { class: "chart" });
    const draw = (width) => {
      const drawn = Plot.plot({ ...options(width), width, className: "plot" });
      // Its style sheet would need a hole in the content security policy; ours has those rules.
      drawn.querySelectorAll("style").forEach((style) => style.remove());
      drawn.setAttribute("role", "img");
      drawn.setAttribute("aria-label", "Chart, described below");
      // Labels of its parts are for nobody once the whole is one picture; they become classes.
      for (const part of drawn.querySelectorAll("g[aria-label]")) {
        part.setAttribute("class", part.getAttribute("aria-label"));
        part.removeAttribute("aria-label");
      }
      finish(drawn);
      holder.replaceChildren(drawn);
    };
    let last = 0;
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width !== last && width > 0) draw((last = width));
    }).observe(holder);
    return dom.element("figure", {}, holder, dom.element("figcaption", {}, description));
  }

  function labels(points, anchor) {
    return Plot.text(points, {
      x: "params",
      y: "value",
      text: (d) => words.short(d.label),
      textAnchor: anchor,
      dx: anchor === "start" ? 7 : -7,
      dy: -8,
      fill: INK,
      stroke: "var(--surface)",
      strokeWidth: 4,
    });
  }

  /** Move names on the front up where they would stand on the one before; it only rises. */
  function spread(drawn) {
    let ceiling = Infinity;
    for (const text of drawn.querySelectorAll("g.text text")) {
      const place = text.transform.baseVal.getItem(0).matrix;
      const y = Math.min(place.f, ceiling - LINE_HEIGHT);
      text.setAttribute("transform", `translate(${place.e},${y})`);
      ceiling = y;
    }
  }

  /**
   * Score against parameters, with the Pareto front.
   *
   * @param {Array<{label, params, value, front, chosen}>} points
   */
  function scatter(points, label, onpick) {
    const front = points.filter((point) => point.front).sort((a, b) => a.params - b.params);
    const middle = Math.sqrt(d3.min(points, (d) => d.params) * d3.max(points, (d) => d.params));
    const described =
      `${label} against the number of parameters of ${points.length} models. ` +
      `On the Pareto front (no model is as small and as good): ` +
      `${front.map((point) => point.label).join(", ")}.`;
    const options = (width) => ({
      height: width < NARROW ? 380 : 520,
      marginLeft: 48,
      marginRight: 24,
      marginTop: 32,
      marginBottom: 44,
      style: "font-size: 12px",
      x: { type: "log", label: "Parameters →", tickFormat: words.parameters, ticks: 5, inset: 12 },
      y: { label: `↑ ${label}`, grid: true, nice: true, ticks: 8 },
      marks: [
        Plot.line(front, {
          x: "params",
          y: "value",
          curve: "step-after",
          stroke: ACCENT,
          strokeWidth: 1.5,
        }),
        Plot.dot(points, { x: "params", y: "value", r: 4.5, fill: QUIET, fillOpacity: 0.55 }),
        Plot.dot(front, { x: "params", y: "value", r: 6, fill: ACCENT, symbol: "diamond2" }),
        Plot.dot(
          points.filter((point) => point.chosen),
          {
            x: "params",
            y: "value",
            r: 9,
            stroke: INK,
            strokeWidth: 1.5,
          },
        ),
        labels(
          front.filter((point) => point.params < middle),
          "start",
        ),
        labels(
          front.filter((point) => point.params >= middle),
          "end",
        ),
        Plot.tip(
          points,
          Plot.pointer({
            x: "params",
            y: "value",
            fill: "var(--surface)",
            stroke: "var(--line)",
            title: (d) =>
              `${d.label}\n${words.score(d.value)} at ${words.parameters(d.params)} parameters`,
          }),
        ),
      ],
    });
    return figure(described, options, (drawn) => {
      spread(drawn);
      drawn.addEventListener("click", () => drawn.value && onpick(drawn.value));
    });
  }

  /**
   * Models' scores in every category, on the background of all others'.
   *
   * @param {Array<{label, values: Array<number|null>}>} profiles - At most five.
   * @param {Array<Array<number|null>>} others - Every other model's values, as context.
   */
  function profile(profiles, others, label) {
    const names = board.categories.map((category) => category.label);
    const flat = (values, which) =>
      values
        .map((value, index) => ({ category: names[index], value, which }))
        .filter((point) => point.value !== null);
    const context = others.flatMap((values) => flat(values, -1));
    const described =
      `${label} of ${profiles.map((one) => one.label).join(", ")} in ${names.length} ` +
      `categories; grey strokes are the other models.`;
    const options = (width) => ({
      height: 480,
      marginLeft: width < NARROW ? 96 : 120,
      marginRight: 16,
      marginTop: 32,
      marginBottom: 36,
      style: "font-size: 12px",
      x: { label: `${label} →`, grid: true, nice: true },
      y: { type: "band", domain: names, label: null, tickSize: 0 },
      marks: [
        Plot.ruleY(names, { stroke: "var(--line)" }),
        Plot.tickX(context, {
          x: "value",
          y: "category",
          stroke: QUIET,
          strokeOpacity: 0.4,
          inset: 9,
        }),
        profiles.map((one, index) => [
          Plot.line(flat(one.values, index), {
            x: "value",
            y: "category",
            stroke: COLOURS[index],
            strokeWidth: 1.5,
            strokeOpacity: 0.7,
          }),
          Plot.dot(flat(one.values, index), {
            x: "value",
            y: "category",
            r: 5,
            fill: COLOURS[index],
            symbol: SHAPES[index],
          }),
        ]),
      ],
    });
    return figure(described, options);
  }

  /** The mark of the nth profile, for a legend. */
  function mark(index) {
    const shape = { circle: d3.symbolCircle, square: d3.symbolSquare, triangle: d3.symbolTriangle };
    const type =
      shape[SHAPES[index]] ?? { diamond2: d3.symbolDiamond2, star: d3.symbolStar }[SHAPES[index]];
    const svg = d3.create("svg").attr("class", "mark").attr("viewBox", "-8 -8 16 16");
    svg.attr("aria-hidden", "true").append("path").attr("d", d3.symbol(type, 90)());
    return svg.attr("fill", COLOURS[index]).node();
  }

  return Object.freeze({ scatter, profile, mark });
})();
