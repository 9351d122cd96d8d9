/* From the address to the page: controls, the tray of chosen models, the view. */
"use strict";

(() => {
  const { element } = dom;
  const byId = (id) => document.getElementById(id);
  const WAIT_MS = 150;
  const VIEWS = {
    overall: views.overall,
    categories: views.categories,
    category: views.category,
    tasks: views.tasks,
    chart: views.chart,
    task: details.task,
    model: details.model,
    compare: details.compare,
    help: () => ({ title: "How to read this", nodes: [byId("help").content.cloneNode(true)] }),
  };
  const FILTERED = ["overall", "categories", "category", "tasks", "task", "chart"];
  const WITH_TASK_SEARCH = ["tasks", "category", "model"];
  const typing = new Map(); // id of a field -> timer, while its text is not yet in the state
  let current = null;

  function radios(holder, key, values, label, hint) {
    holder.append(
      ...values.map((value) =>
        element(
          "label",
          { title: hint(value) },
          element("input", {
            type: "radio",
            name: key,
            value,
            onchange: () => state.change(() => ({ [key]: value })),
          }),
          element("span", {}, label(value)),
        ),
      ),
    );
  }

  /** Take over what is typed once the typing pauses. */
  function typed(id, key) {
    byId(id).addEventListener("input", (event) => {
      clearTimeout(typing.get(id));
      const take = () => {
        typing.delete(id);
        state.change(() => ({ [key]: event.target.value.trim() }));
      };
      typing.set(id, setTimeout(take, WAIT_MS));
    });
  }

  function provenanceBoxes() {
    const box = (level) =>
      element(
        "label",
        { title: words.provenance(level) },
        element("input", {
          type: "checkbox",
          value: level,
          onchange: (event) => {
            const shown = event.target.checked;
            state.change(({ hide }) => ({
              hide: [...hide.filter((hidden) => hidden !== level), ...(shown ? [] : [level])],
            }));
          },
        }),
        dom.name(level),
      );
    byId("provenance").append(...board.provenances.map(box));
  }

  function buildControls() {
    radios(byId("regime"), "regime", board.regimes, words.regime, words.regimeHint);
    radios(byId("metric"), "metric", board.metrics, words.metric, words.metricHint);
    provenanceBoxes();
    typed("search", "q");
    typed("task-search", "tq");
    typed("min", "min");
    typed("max", "max");
    byId("among").addEventListener("change", (event) =>
      state.change(() => ({ among: event.target.checked ? "shown" : "all" })),
    );
    byId("reset").addEventListener("click", state.clearFilters);
  }

  /** Write a field unless somebody is typing in it, or it says the same already. */
  function fill(id, text) {
    if (!typing.has(id) && byId(id).value.trim() !== text) byId(id).value = text;
  }

  function showControls() {
    for (const key of ["regime", "metric"]) {
      for (const input of byId(key).querySelectorAll("input")) {
        input.checked = input.value === current[key];
      }
    }
    for (const input of byId("provenance").querySelectorAll("input")) {
      input.checked = !current.hide.includes(input.value);
    }
    fill("search", current.q);
    fill("task-search", current.tq);
    fill("min", current.min);
    fill("max", current.max);
    byId("among").checked = current.among === "shown";
    byId("controls").hidden = current.view === "help";
    const set = state.filtersSet(current);
    byId("filters-set").textContent = set ? ` (${set} set)` : "";
    byId("filters").hidden = !FILTERED.includes(current.view);
    byId("task-filter").hidden = !WITH_TASK_SEARCH.includes(current.view);
    for (const anchor of byId("views").querySelectorAll("a")) {
      anchor.href = state.link(current, { view: anchor.dataset.view });
      if (anchor.dataset.view === current.view) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
  }

  function showTray() {
    const chips = current.compare
      .map(board.findModel)
      .map((model) => element("li", {}, dom.name(model.display), columns.remover(model)));
    byId("chosen").replaceChildren(...chips);
    byId("chosen-count").textContent = `${chips.length} of ${state.COMPARED_AT_MOST}`;
    byId("compare").href = state.link(current, { view: "compare" });
    byId("tray").hidden = !chips.length || current.view === "compare";
  }

  /** Replace the view; keep the focus and the scrolling of what is there before and after. */
  function replaceView(nodes) {
    const key = document.activeElement?.dataset?.key;
    const places = [...byId("view").querySelectorAll(".scroll")].map((one) => [
      one.scrollLeft,
      one.scrollTop,
    ]);
    byId("view").replaceChildren(...nodes.filter((node) => node !== null));
    byId("view")
      .querySelectorAll(".scroll")
      .forEach((one, index) => {
        [one.scrollLeft, one.scrollTop] = places[index] ?? [0, 0];
      });
    if (key)
      byId("view")
        .querySelector(`[data-key="${CSS.escape(key)}"]`)
        ?.focus();
  }

  /** Give the focus a place if what had it went away, such as a model taken out of the tray. */
  function keepFocus(held, inTray) {
    if (held.isConnected || document.activeElement !== document.body) return;
    const chip = byId("chosen").querySelector("button");
    (inTray && chip ? chip : byId("title")).focus({ preventScroll: true });
  }

  function render() {
    const before = current;
    const held = document.activeElement;
    const inTray = byId("chosen").contains(held);
    current = state.parse(location.hash);
    const { title, lead, nodes } = VIEWS[current.view](current);
    showControls();
    showTray();
    byId("title").replaceChildren(dom.name(title));
    byId("lead").textContent = lead ?? "";
    document.title = `${title} · ${board.name}`;
    if (before && !state.samePage(before, current)) {
      byId("view").replaceChildren(...nodes.filter((node) => node !== null));
      byId("title").focus({ preventScroll: true });
      window.scrollTo(0, 0);
    } else {
      replaceView(nodes);
    }
    keepFocus(held, inTray);
    byId("status").textContent = byId("view").querySelector(".count")?.textContent ?? title;
    document.body.dataset.drawn = location.hash; // for whoever waits for a state to be shown
  }

  function remembered() {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // a page of a file may have no storage
    }
  }

  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    byId("theme").textContent = {
      auto: "Theme: system",
      light: "Theme: light",
      dark: "Theme: dark",
    }[theme];
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // as above: the choice lasts as long as the page
    }
  }

  function buildTheme() {
    const themes = ["auto", "light", "dark"];
    const first = remembered();
    setTheme(themes.includes(first) ? first : "auto");
    byId("theme").addEventListener("click", () => {
      const next = themes.indexOf(document.documentElement.dataset.theme) + 1;
      setTheme(themes[next % themes.length]);
    });
  }

  buildControls();
  buildTheme();
  byId("filters").open = matchMedia("(min-width: 40rem)").matches;
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the state, not a place in the page
    byId("title").focus();
  });
  window.addEventListener("hashchange", render);
  render();
})();
