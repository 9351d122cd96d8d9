/* What is shown, kept in the address after "#", so that a link restores a view. */
"use strict";

const state = (() => {
  const COMPARED_AT_MOST = 5;
  const MODEL_VIEWS = ["overall", "categories", "tasks", "chart"];
  const DETAIL_VIEWS = ["category", "task", "model", "compare", "help"];
  const ONE_OF = {
    view: [...MODEL_VIEWS, ...DETAIL_VIEWS],
    regime: board.regimes,
    metric: board.metrics,
    among: ["all", "shown"],
    cells: ["score", "rank"],
    colour: ["column", "table"],
    axis: [...board.measures.keys()],
    dir: ["", "ascending", "descending"],
  };
  const TEXTS = ["q", "tq", "sort", "category", "task", "model"];
  const NUMBERS = ["min", "max"];
  /* Whatever a number field lets through that is not negative. */
  const NUMBER = /^(\d+(\.\d+)?|\.\d+)(e[+-]?\d{1,2})?$/i;
  const LISTS = ["hide", "compare"];
  /* What belongs to one view and is forgotten on the way to another. */
  const LOCAL = ["sort", "dir", "category", "task", "model"];
  /* What keeps models out or changes what ranks count. */
  const FILTERS = ["q", "min", "max", "hide", "among"];

  const DEFAULTS = Object.freeze({
    ...Object.fromEntries(Object.entries(ONE_OF).map(([key, values]) => [key, values[0]])),
    ...Object.fromEntries([...TEXTS, ...NUMBERS].map((key) => [key, ""])),
    ...Object.fromEntries(LISTS.map((key) => [key, []])),
  });

  /** Read a state from an address; what is not understood falls back to the default. */
  function parse(hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const found = { ...DEFAULTS };
    for (const [key, allowed] of Object.entries(ONE_OF)) {
      if (allowed.includes(given.get(key))) found[key] = given.get(key);
    }
    for (const key of TEXTS) found[key] = given.get(key) ?? "";
    for (const key of NUMBERS) {
      const text = given.get(key) ?? "";
      found[key] = NUMBER.test(text) ? text : "";
    }
    for (const key of LISTS) found[key] = [...new Set(given.getAll(key))];
    found.compare = found.compare.filter(board.findModel).slice(0, COMPARED_AT_MOST);
    return found;
  }

  /** The address of a state; defaults are left out. */
  function format(wanted) {
    const pairs = [];
    for (const key of Object.keys(DEFAULTS)) {
      if (LISTS.includes(key)) pairs.push(...wanted[key].map((item) => [key, item]));
      else if (wanted[key] !== DEFAULTS[key]) pairs.push([key, wanted[key]]);
    }
    return `#${new URLSearchParams(pairs)}`;
  }

  /** The address of another view under the same filters. */
  function link(current, changes) {
    const forgotten = Object.fromEntries(LOCAL.map((key) => [key, DEFAULTS[key]]));
    return format({ ...current, ...forgotten, ...changes });
  }

  /**
   * Change what is shown, in place: the back button skips it.
   *
   * @param {function(Object): Object} changes - State -> what becomes different. It gets the
   *   address's state, because a page is drawn a moment after its address has changed.
   */
  function change(changes) {
    const now = parse(location.hash);
    location.replace(format({ ...now, ...changes(now) }));
  }

  /** How many filters of models are set. */
  function filtersSet(current) {
    return FILTERS.filter((key) => String(current[key]) !== String(DEFAULTS[key])).length;
  }

  /** Show all models and tasks again. */
  function clearFilters() {
    change(() => Object.fromEntries([...FILTERS, "tq"].map((key) => [key, DEFAULTS[key]])));
  }

  /** Take a model into the comparison, or out of it. */
  function toggleCompared(id) {
    change(({ compare }) => ({
      compare: compare.includes(id) ? compare.filter((other) => other !== id) : [...compare, id],
    }));
  }

  /** Whether two states show the same page, filters apart. */
  function samePage(one, other) {
    return ["view", "category", "task", "model"].every((key) => one[key] === other[key]);
  }

  return Object.freeze({
    COMPARED_AT_MOST,
    parse,
    link,
    change,
    filtersSet,
    clearFilters,
    toggleCompared,
    samePage,
  });
})();
