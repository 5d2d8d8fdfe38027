// The explorer: what a reader chooses is written into the one Vega-Lite specification, which is
// drawn again. The choice is kept in the address, so that a view can be linked.
(() => {
  const root = document.querySelector(".explorer");
  if (!root) return;
  const [data, empty] = ["data", "spec"].map((name) => JSON.parse(
    document.getElementById(`explorer-${name}`).textContent));
  const lists = { task: data.tasks, value: data.values, cost: data.costs };
  const FAR_BELOW = 15;
  const usual = { task: "0", value: "0", cost: "0", logx: "true", logy: "true", only: "" };
  const choice = { ...usual };
  const plot = root.querySelector(".explorer-plot");
  const controls = [...root.querySelectorAll("select, input")];
  const alone = () => choice.only.split(",").filter((place) => place in data.solvers).map(Number);
  let view;

  /** The rows that are drawn, the line across them, and where zero is on a logarithmic axis. */
  function rows(value, cost) {
    const only = alone();
    const shown = data.series.filter((one) => (!only.length || only.includes(one.solver))
      && ["task", "value", "cost"].every((name) => one[name] === Number(choice[name])));
    const positive = shown.flatMap((one) => [...one.y, ...(one.low || [])]).filter((y) => y > 0);
    const floor = choice.logy === "true" ? Math.min(...positive, 1) / 2 : -Infinity;
    const above = (y) => Math.max(y, floor);
    const [read, spent] = [value, cost].map((axis) => vegaLite.format(axis.said));
    const found = shown.flatMap((one) => one.x.map((x, i) => {
      const { label } = data.solvers[one.solver];
      const [y, low, high] = ["y", "low", "high"].map((name) => (one[name] || one.y)[i]);
      const around = low === high ? "" : `, ${read(low)} to ${read(high)}`;
      const runs = one.status ? one.status[i] : `median of ${one.n} of ${one.of} runs`;
      return {
        kind: one.kind, solver: label, last: i === one.x.length - 1, x, y: above(y), low: above(low),
        high: above(high), x_low: one.x_low?.[i], x_high: one.x_high?.[i],
        said: `${label}: ${read(y)}${around} at ${spent(x)} ${cost.words}; ${runs}`,
      };
    }));
    // A line far below every curve would only squeeze them.
    const lines = [data.tasks[choice.task].lines[choice.value]].filter((line) => line
      && (choice.logy !== "true" || line[0] <= 0 || line[0] >= floor / FAR_BELOW));
    return { found, floor, lines: lines.map(([y, words]) => ({ y: above(y), words })) };
  }

  function draw() {
    const [task, value, cost] = Object.keys(lists).map((name) => lists[name][choice[name]]);
    const { found, floor, lines } = rows(value, cost);
    const zero = found.some((row) => row.low === floor) ? " (zero at the lower edge)" : "";
    const spec = structuredClone(empty);
    const axis = (log, { words, ticks }, also = "") => ({
      scale: log === "true" ? { type: "log", nice: false } : { zero: false, nice: false },
      title: words + also,
      axis: {
        format: log === "true" ? ticks : ticks.replace("e", "g"), labelExpr: "replace(datum.label, '+', '')",
        gridOpacity: { condition: { test: "datum.label != ''", value: 1 }, value: 0 },
      },
    });
    Object.assign(spec.encoding.x, axis(choice.logx, cost));
    Object.assign(spec.layer[0].encoding.y, axis(choice.logy, value, zero));
    const domain = data.solvers.map((one) => one.label);
    for (const name of ["color", "shape"]) {
      const range = data.solvers.map((one) => one[name]);
      const layers = [spec, ...spec.layer].map((layer) => layer.encoding);
      layers.find((encoding) => encoding[name])[name].scale = { domain, range };
    }
    spec.width = plot.clientWidth;
    spec.data.values = found;
    for (const layer of spec.layer.filter((one) => one.data)) layer.data.values = lines;
    view?.finalize();
    const { expressionInterpreter: expr, Handler } = vegaLite;
    const runtime = vegaLite.parse(vegaLite.compile(spec).spec, null, { ast: true });
    view = new vegaLite.View(runtime, { expr, container: plot, renderer: "svg", hover: true });
    view.tooltip(new Handler().call).run();
    const title = `${task.label}: ${value.words} against ${cost.words}`;
    const ends = found.filter((row) => row.last).map((row) => row.said);
    plot.firstElementChild.setAttribute("aria-hidden", "true");
    plot.setAttribute("aria-label", [title, ...ends].join(". "));
    root.querySelector("figcaption").textContent = title;
  }

  /** Take over what the address asks for; what it does not know is as at first. */
  function restore() {
    const link = new URLSearchParams(location.hash.slice(1)).get("explore") || "";
    const asked = new Map(link.split(";").map((part) => part.split(":")));
    for (const name of Object.keys(usual)) {
      const value = asked.get(name);
      const known = name in lists ? Object.hasOwn(lists[name], value) : value !== undefined;
      choice[name] = known ? value : usual[name];
    }
    show();
  }

  function show() {
    for (const control of controls) {
      if (control.type === "checkbox") control.checked = choice[control.name] === "true";
      else control.value = choice[control.name];
    }
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", alone().includes(place)));
    if (plot.clientWidth) draw();
  }

  function choose(changes) {
    Object.assign(choice, changes);
    const unlike = Object.keys(usual).filter((name) => choice[name] !== usual[name]);
    const link = unlike.map((name) => `${name}:${choice[name]}`).join(";");
    try {
      history.replaceState(null, "", location.pathname + location.search + (link ? `#explore=${link}` : ""));
    } catch {
      // A page inside another may not be allowed to change its address.
    }
    show();
  }

  const buttons = data.solvers.map(({ label, color }, place) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: label });
    button.style.setProperty("--solver", color);
    button.addEventListener("click", () => {
      const only = alone();
      choose({ only: (only.includes(place) ? only.filter((one) => one !== place) : [...only, place]).join() });
    });
    return button;
  });
  root.querySelector("fieldset").append(...buttons);
  for (const control of controls) {
    if (control.name in lists) {
      control.append(...lists[control.name].map((item, place) => new Option(item.label || item.words, place)));
    }
    control.addEventListener("change", () =>
      choose({ [control.name]: String(control.type === "checkbox" ? control.checked : control.value) }));
  }
  addEventListener("hashchange", () => location.hash.includes("explore=") && restore());
  restore();
  // Also once a folded part of the page is opened.
  let width = plot.clientWidth;
  new ResizeObserver(() => {
    if (plot.clientWidth && plot.clientWidth !== width) draw();
    width = plot.clientWidth;
  }).observe(plot);
})();
