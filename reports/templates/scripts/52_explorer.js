// The explorer: one figure of a study's checkpoints whose axes, targets, tasks and solvers the
// reader chooses. What it shows is kept in the page's address, so that a view can be linked.
const explorer = (() => {
  const { say, summary, stepCurve, medianCurve, distribution, lastAtMost, FEWEST_FOR_QUARTILES } =
    explorerNumbers;
  const PREFIX = "#explore:";
  const REACH_PX = 48; // the pointer means a curve no farther than this
  const STRIDE_PX = 8; // an arrow key moves at least so far
  const FAR_BELOW = 30; // a reference line farther below every value would only squeeze them
  const CURVE_NOTE = "Lines are medians over the runs, bands are quartiles; of fewer than five runs "
    + "each is a thin line. A dashed line that ends in a cross is a failed run, in no median. A lone "
    + "marker is a solver that is seen only at its end. After its end a run keeps its final value.";
  const PROFILE_NOTE = "A run that failed, or never gets there, counts as not there. Runs without "
    + "the target, and solvers without this cost, are left out: the legend says how many of how many.";

  // ---- series

  const columnOf = (run, place) => {
    const column = run.columns[place];
    return typeof column === "number" ? run.columns[column] : column;
  };

  /** What a run had spent at its checkpoints; null where that is not known. */
  function costsOf(run, cost) {
    const column = columnOf(run, cost.column);
    if (!column || !cost.power) return column;
    return run.n ? column.map((value) => (value === null ? null : value / run.n ** cost.power)) : null;
  }

  function curveOf(run, cost, value, best) {
    const [costs, values] = [costsOf(run, cost), columnOf(run, value.column)];
    const curve = costs && values ? stepCurve(costs, values, best) : { x: [], y: [] };
    return { ...curve, run };
  }

  /** The part of a curve that has a place on the axis. */
  function visiblePart(curve, log) {
    const kept = curve.x.map((_, i) => i).filter((i) => !log || curve.x[i] > 0);
    return { x: kept.map((i) => curve.x[i]), y: kept.map((i) => curve.y[i]) };
  }

  /** The series of a solver on a task. */
  function solverCurves(runs, solver, cost, value, choice) {
    const best = choice.best ? value.better || "lower" : "";
    const curves = runs.map((run) => curveOf(run, cost, value, best)).filter((c) => c.x.length);
    const ended = curves.filter((curve) => curve.run.ok);
    const shared = { solver, n: ended.length, planned: runs.length };
    const few = ended.length > 1 && ended.length < FEWEST_FOR_QUARTILES;
    const atEnd = ended.every((curve) => curve.x.length === 1);
    const found = [];
    if (choice.runs === "single") found.push(...singles(ended, "run", shared, choice));
    else if (ended.length && atEnd) found.push(endSeries(ended, shared));
    else if (ended.length) {
      const middle = medianCurve(ended, choice.logx);
      found.push({ ...shared, kind: "median", ...middle, costs: middle.x });
      if (few) found.push(...singles(ended, "run", { ...shared, aside: true }, choice));
    }
    found.push(...singles(curves.filter((curve) => !curve.run.ok), "failed", shared, choice));
    return found.filter((one) => one.x.length && (!choice.logx || one.x[one.x.length - 1] > 0));
  }

  function singles(curves, kind, shared, choice) {
    return curves.map((curve) => {
      const part = visiblePart(curve, choice.logx);
      return { ...shared, kind, ...part, costs: part.x, seed: curve.run.seed, status: curve.run.status };
    });
  }

  /** Final states: medians with the range of the cost and of the value. */
  function endSeries(curves, shared) {
    const all = { x: curves.map((c) => c.x[0]), y: curves.map((c) => c.y[0]) };
    const ends = (values) => [Math.min(...values), Math.max(...values)];
    const [low, high] = ends(all.y);
    return { ...shared, kind: "end", x: [summary(all.x).median], y: [summary(all.y).median],
      low: [low], high: [high], costs: ends(all.x) };
  }

  /** What each run of a solver spent until it reached a target, of those that have it. */
  function costsToTarget(runs, cost, target, best) {
    return runs.filter((run) => run.reach[target]).map((run) => {
      const place = run.reach[target][best ? 1 : 0];
      if (place < 0) return Infinity;
      const costs = costsOf(run, cost);
      return costs ? costs[place] : null;
    }).filter((spent) => spent !== null);
  }

  function profileSeries(runs, solver, cost, target, best) {
    const spent = costsToTarget(runs, cost, target, best);
    const steps = distribution(spent);
    const reached = spent.filter(Number.isFinite).length;
    return { kind: "profile", solver, ...steps, costs: steps.x, n: spent.length, reached };
  }

  // ---- views

  /** All that is drawn for a choice, and what stands beside it. */
  function viewOf(data, choice) {
    const shown = data.solvers.map((_, place) => place).filter((place) => !choice.hidden.has(place));
    const cost = data.costs[choice.cost];
    const x = { words: cost.words, format: cost.format, log: choice.logx };
    const view = choice.view === "profile" ? profileView : curvesView;
    return { solvers: data.solvers, x, ...view(data, choice, shown, cost) };
  }

  function curvesView(data, choice, shown, cost) {
    const [task, value] = [data.tasks[choice.task], data.values[choice.value]];
    const series = shown.flatMap((solver) => {
      const runs = data.runs.filter((run) => run.task === choice.task && run.solver === solver);
      return solverCurves(runs, solver, cost, value, choice);
    });
    const values = series.flatMap((one) => [...one.y, ...(one.low || [])]);
    const least = values.reduce((low, v) => (v > 0 && v < low ? v : low), Infinity);
    const floor = task.zeros[value.name] || (least === Infinity ? 1 : least / 2);
    const lines = task.lines[value.name] ? [task.lines[value.name]] : [];
    const y = { words: value.words + (choice.best ? ", best so far" : ""), format: value.format,
      log: choice.logy, floor };
    if (y.log && values.some((v) => v <= 0)) {
      y.floorWords = values.some((v) => v < 0) ? "zero or less" : "zero";
    }
    return {
      series, y, title: `${task.label}: ${y.words} against ${cost.words}`, task,
      lines: lines.filter(([at]) => !y.log || at <= 0 || at >= least / FAR_BELOW)
        .map(([at, words]) => ({ value: y.log && at <= 0 ? floor : at, words })),
    };
  }

  function profileView(data, choice, shown, cost) {
    const target = data.targets[choice.target];
    const among = data.runs.filter((run) => !choice.without.has(run.task));
    // A solver whose runs never count this cost has no profile, even if some of them failed.
    const counted = (solver) =>
      data.runs.some((run) => run.solver === solver && costsOf(run, cost));
    const series = shown.filter(counted).map((solver) =>
      profileSeries(among.filter((run) => run.solver === solver), solver, cost, choice.target,
        choice.best));
    const words = `share of runs ${choice.best ? target.first : target.stays}`;
    const axis = `share of runs${choice.best ? ", best so far" : ""}`;
    const tasks = data.tasks.length - choice.without.size;
    return {
      series: series.filter((one) => one.n),
      y: { words: axis, format: "percent", log: false, limits: [0, 1.04] },
      lines: [],
      title: `${tasks} of ${data.tasks.length} ${data.words.task}s: ${words}, against ${cost.words}`,
    };
  }

  /** A place of a series in words. */
  function describe(data, choice, view, one, place) {
    const cost = data.costs[choice.cost];
    const at = `${cost.words} ${say(cost.format, one.x[place])}`;
    const name = data.solvers[one.solver].label;
    if (one.kind === "profile") {
      const count = Math.round(one.y[place] * one.n);
      return `${name}: ${say("percent", one.y[place])}, ${count} of ${one.n} runs, at ${at}.`;
    }
    const value = data.values[choice.value];
    const read = (number) => say(value.format, number);
    const head = `${name}: ${view.y.words} ${read(one.y[place])} at ${at}`;
    if (one.kind === "run" || one.kind === "failed") {
      return `${head}; ${data.words.seed} ${one.seed}, ${one.status}.`;
    }
    const [low, high] = [read(one.low[place]), read(one.high[place])];
    const kind = one.n < FEWEST_FOR_QUARTILES || one.kind === "end" ? "range" : "quartiles";
    const left = one.running ? one.running[place] : 0;
    const running = left && left < one.n ? `, ${left} still running` : "";
    const around = low === high ? "" : `, ${kind} ${low} to ${high}`;
    return `${head}; median of ${one.n} of ${one.planned} runs${around}${running}.`;
  }

  /** The numbers that a view draws, as comma-separated values. */
  function csvOf(data, choice, view) {
    const profile = choice.view === "profile";
    const header = [data.words.task, data.words.solver, data.words.seed, "drawn",
      data.costs[choice.cost].name, profile ? "share" : data.values[choice.value].name,
      "low", "high", "n_runs"];
    const rows = view.series.flatMap((one) => one.x.map((x, i) => [
      view.task ? view.task.label : "", data.solvers[one.solver].label, one.seed ?? "", one.kind, x,
      one.y[i], one.low ? one.low[i] : "", one.high ? one.high[i] : "", one.seed === undefined ? one.n : 1,
    ]));
    return [header, ...rows].map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
  }

  function csvField(value) {
    if (typeof value === "number") return String(value);
    // A spreadsheet would run a label that begins like a formula.
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  // ---- choices, as the address has them

  function initial(data) {
    return {
      view: "curves", task: 0, value: 0, target: 0, runs: "medians", best: false,
      cost: Math.max(data.costs.findIndex((cost) => cost.format !== "seconds"), 0),
      logx: true, logy: true, hidden: new Set(), without: new Set(),
    };
  }

  /** Where a choice is a place in a list, that list and what names an item of it. */
  const listsOf = (data) => ({
    task: [data.tasks, "label"], value: [data.values, "name"], cost: [data.costs, "name"],
    target: [data.targets, "name"], hidden: [data.solvers, "label"], without: [data.tasks, "label"],
  });

  /** The part of the address that says what is unlike the first view. */
  function hashOf(data, choice) {
    const usual = initial(data);
    const lists = listsOf(data);
    const said = new URLSearchParams();
    for (const [key, value] of Object.entries(choice)) {
      const [list, name] = lists[key] || [];
      if (value instanceof Set) for (const place of value) said.append(key, list[place][name]);
      else if (value !== usual[key]) said.set(key, list ? list[value][name] : String(value));
    }
    said.sort();
    return PREFIX + said;
  }

  /** The choice that an address asks for; what it does not know is left as in the first view. */
  function choiceOf(data, hash) {
    const choice = initial(data);
    const lists = listsOf(data);
    const words = { view: ["curves", "profile"], runs: ["medians", "single"] };
    for (const [key, text] of new URLSearchParams(hash.slice(PREFIX.length))) {
      if (Object.hasOwn(lists, key)) {
        const [list, name] = lists[key];
        const place = list.findIndex((item) => item[name] === text);
        if (place >= 0 && choice[key] instanceof Set) choice[key].add(place);
        else if (place >= 0) choice[key] = place;
      } else if (Object.hasOwn(words, key)) {
        if (words[key].includes(text)) choice[key] = text;
      } else if (["logx", "logy", "best"].includes(key) && ["true", "false"].includes(text)) {
        choice[key] = text === "true";
      }
    }
    if (!data.targets.length) choice.view = "curves";
    return choice;
  }

  // ---- the section

  /**
   * Make the explorer of a page work.
   * @param {Element} root
   * @param {object} data of reports/explorer.py
   */
  function start(root, data) {
    const find = (name) => root.querySelector(`.explorer-${name}`);
    const control = (name) => root.querySelector(`[name="explorer-${name}"]`);
    const plot = find("plot");
    const svg = plot.querySelector("svg");
    const readout = find("readout");
    let choice = choiceOf(data, location.hash.startsWith(PREFIX) ? location.hash : "");
    let view = null;
    let figure = null;
    let cursor = null; // the mark that is read out, and where

    // -- controls

    function fill(name, items) {
      control(name).replaceChildren(...items.map((words, place) => new Option(words, place)));
      control(name).addEventListener("change", (event) => {
        choose({ [name]: Number(event.target.value) });
      });
    }

    function listen() {
      fill("task", data.tasks.map((task) => task.label));
      fill("value", data.values.map((value) => value.words));
      fill("cost", data.costs.map((cost) => cost.words));
      fill("target", data.targets.map((target) => target.words));
      for (const name of ["view", "runs"]) {
        for (const radio of root.querySelectorAll(`[name="explorer-${name}"]`)) {
          radio.addEventListener("change", () => choose({ [name]: radio.value }));
        }
      }
      for (const name of ["logx", "logy", "best"]) {
        control(name).addEventListener("change", () => choose({ [name]: control(name).checked }));
      }
      control("view").closest("fieldset").hidden = !data.targets.length;
      const press = (name, action) => control(name).addEventListener("click", action);
      press("all", () => choose({ hidden: new Set(), without: new Set() }));
      press("reset", () => choose(initial(data)));
      press("link", copyLink);
      press("svg", () => download("marginbench-explore.svg", "image/svg+xml", standalone()));
      press("csv", () => download("marginbench-explore.csv", "text/csv", csvOf(data, choice, view)));
      for (const [place, task] of data.tasks.entries()) find("tasks").append(taskBox(place, task));
      for (const [place, solver] of data.solvers.entries()) find("legend").append(entry(place, solver));
    }

    function taskBox(place, task) {
      const [label, box, name] = ["label", "input", "span"].map((tag) => document.createElement(tag));
      box.type = "checkbox";
      box.addEventListener("change", () => choose({ without: toggled(choice.without, place) }));
      name.textContent = task.label;
      label.append(box, " ", name);
      return label;
    }

    /** A solver in the legend: one button hides or shows it, the other leaves it alone. */
    function entry(place, solver) {
      const item = document.createElement("li");
      const [toggle, only] = ["button", "button"].map((tag) => document.createElement(tag));
      const [name, note] = ["span", "span"].map((tag) => document.createElement(tag));
      name.textContent = solver.label;
      note.className = "note";
      toggle.append(explorerFigure.swatch(solver, svg.namespaceURI), name, note);
      only.textContent = "only";
      only.setAttribute("aria-label", `Only ${solver.label}`);
      toggle.type = only.type = "button";
      toggle.addEventListener("click", () => choose({ hidden: toggled(choice.hidden, place) }));
      only.addEventListener("click", () => isolate(place));
      item.append(toggle, only);
      return item;
    }

    function toggled(places, place) {
      const found = new Set(places);
      if (!found.delete(place)) found.add(place);
      return found;
    }

    const isAlone = (place) =>
      choice.hidden.size === data.solvers.length - 1 && !choice.hidden.has(place);

    function isolate(place) {
      const others = data.solvers.map((_, other) => other).filter((other) => other !== place);
      choose({ hidden: new Set(isAlone(place) ? [] : others) });
    }

    // -- showing a choice

    function choose(changes) {
      choice = { ...choice, ...changes };
      find("said").textContent = "";
      location.hash = hashOf(data, choice);
      show();
    }

    function show() {
      for (const name of ["task", "value", "cost", "target"]) control(name).value = choice[name];
      for (const name of ["logx", "logy", "best"]) control(name).checked = choice[name];
      for (const name of ["view", "runs"]) {
        root.querySelector(`[name="explorer-${name}"][value="${choice[name]}"]`).checked = true;
      }
      root.dataset.view = choice.view;
      for (const [place, box] of find("tasks").querySelectorAll("input").entries()) {
        box.checked = !choice.without.has(place);
      }
      view = viewOf(data, choice);
      find("title").textContent = view.title;
      find("note").textContent = notes().join(" ");
      for (const [place, item] of [...find("legend").children].entries()) showEntry(place, item);
      draw();
    }

    function notes() {
      const profile = choice.view === "profile";
      const timed = data.costs[choice.cost].format === "seconds" && data.times;
      const thinned = `${data.thinned} runs with more than ${data.most} checkpoints show about `
        + `${data.most} of them: the first, the last, the best, those that count for the targets, `
        + "and others evenly spread.";
      return [profile ? PROFILE_NOTE : CURVE_NOTE, timed || "", data.thinned && !profile ? thinned : ""]
        .filter(Boolean);
    }

    function showEntry(place, item) {
      const [toggle, only] = item.children;
      const hidden = choice.hidden.has(place);
      toggle.setAttribute("aria-pressed", String(!hidden));
      toggle.classList.toggle("off", hidden);
      only.setAttribute("aria-pressed", String(isAlone(place)));
      const mine = view.series.filter((one) => one.solver === place);
      toggle.querySelector(".note").textContent = hidden ? "" : entryNote(place, mine);
    }

    function entryNote(place, mine) {
      if (!mine.length) return "nothing to show";
      const [first] = mine;
      if (first.kind === "profile") return `${first.reached} of ${first.n}`;
      const runs = first.n < first.planned ? `${first.n} of ${first.planned} runs` : "";
      return [view.task.notes[place], runs].filter(Boolean).join(", ");
    }

    function draw() {
      figure = explorerFigure.draw(svg, view, Math.max(plot.clientWidth, 280));
      read(null);
    }

    // -- reading values

    function read(found) {
      cursor = found;
      const mark = found && found.mark;
      explorerFigure.point(figure, mark, mark && data.solvers[mark.series.solver], found && found.at);
      readout.textContent = mark
        ? describe(data, choice, view, mark.series, found.at.place)
        : "Point at a curve, or use the arrow keys in the figure, to read its values.";
    }

    const stops = () => figure.marks.filter((mark) => !mark.series.aside && mark.xs.length);

    function pointed(event) {
      const box = svg.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const near = stops().map((mark) => {
        const at = explorerFigure.pixelsAt(mark, px);
        const end = mark.series.kind === "end" && { place: 0, x: mark.xs[0], y: mark.ys[0] };
        return { mark, at: end || at, far: end ? Math.hypot(end.x - px, end.y - py) : at && Math.abs(at.y - py) };
      }).filter((one) => one.at && one.far <= REACH_PX).sort((a, b) => a.far - b.far);
      read(near[0] || null);
    }

    /** The next place along a curve that is seen to be another one. */
    function along(mark, place, step) {
      const last = mark.xs.length - 1;
      let next = place;
      do next += step;
      while (next > 0 && next < last && Math.abs(mark.xs[next] - mark.xs[place]) < STRIDE_PX);
      return Math.min(Math.max(next, 0), last);
    }

    function moved(event) {
      const keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "Escape"];
      const all = stops();
      if (!keys.includes(event.key) || !all.length || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      if (event.key === "Escape") return void read(null);
      const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key] || 0;
      const upward = { ArrowUp: -1, ArrowDown: 1 }[event.key] || 0;
      const before = cursor ? all.indexOf(cursor.mark) : 0;
      const mark = all[(before + (cursor ? upward : 0) + all.length) % all.length];
      let place = cursor ? Math.max(lastAtMost(mark.xs, cursor.at.x + 1e-9), 0) : 0;
      if (sideways && cursor) place = along(mark, place, sideways);
      if (event.key === "Home") place = 0;
      if (event.key === "End") place = mark.xs.length - 1;
      read({ mark, at: { place, x: mark.xs[place], y: mark.ys[place] } });
    }

    // -- taking away

    /** The figure as a file of its own, in the colours of the page's present scheme. */
    function standalone() {
      read(null);
      const copy = svg.cloneNode(true);
      const style = getComputedStyle(document.documentElement);
      const title = document.createElementNS(svg.namespaceURI, "title");
      const ground = document.createElementNS(svg.namespaceURI, "rect");
      title.textContent = view.title;
      for (const [key, value] of [["width", "100%"], ["height", "100%"]]) ground.setAttribute(key, value);
      ground.style.fill = "var(--card)";
      copy.prepend(title, ground);
      copy.setAttribute("font-family", "sans-serif");
      copy.setAttribute("font-size", "12");
      return new XMLSerializer().serializeToString(copy)
        .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    }

    function download(name, type, text) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }

    async function copyLink() {
      const link = location.href.split("#")[0] + hashOf(data, choice);
      try {
        await navigator.clipboard.writeText(link);
        find("said").textContent = "The link to this view is copied.";
      } catch {
        // Where a page may not write to the clipboard, the reader copies the selected link.
        find("said").textContent = link;
        getSelection().selectAllChildren(find("said"));
      }
    }

    // -- beginning

    listen();
    show();
    plot.addEventListener("pointermove", pointed);
    plot.addEventListener("pointerdown", pointed);
    plot.addEventListener("pointerleave", () => read(null));
    plot.addEventListener("keydown", moved);
    plot.addEventListener("blur", () => read(null));
    new ResizeObserver(() => {
      if (Number(svg.getAttribute("width")) !== Math.max(plot.clientWidth, 280)) draw();
    }).observe(plot);
    window.addEventListener("hashchange", () => {
      const mine = location.hash.startsWith(PREFIX);
      // The address of another part of the page leaves the view as it is.
      if ((!mine && location.hash) || location.hash === hashOf(data, choice)) return;
      choice = choiceOf(data, mine ? location.hash : "");
      show();
    });
    if (location.hash.startsWith(PREFIX)) root.closest("section").scrollIntoView();
  }

  const root = document.querySelector(".explorer");
  if (root) start(root, JSON.parse(document.getElementById("explorer-data").textContent));
  return { viewOf, choiceOf, hashOf, csvOf, describe, initial };
})();
