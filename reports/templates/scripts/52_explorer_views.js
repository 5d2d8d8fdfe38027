// What the explorer shows for a choice: series of numbers, their words, and the choice as a part
// of the page's address. Nothing here touches the page.
const explorerViews = (() => {
  const { say, summary, stepCurve, medianCurve, distribution, FEWEST_FOR_QUARTILES } = explorerNumbers;
  const FAR_BELOW = 30; // a reference line farther below every value would only squeeze them

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

  /** What is unlike the first view, as text for the address: "cost:cpu_s;view:profile". */
  function textOf(data, choice) {
    const usual = initial(data);
    const lists = listsOf(data);
    const said = new URLSearchParams();
    for (const [key, value] of Object.entries(choice)) {
      const [list, name] = lists[key] || [];
      if (value instanceof Set) for (const place of value) said.append(key, list[place][name]);
      else if (value !== usual[key]) said.set(key, list ? list[value][name] : String(value));
    }
    said.sort();
    return String(said).replaceAll("=", ":").replaceAll("&", ";");
  }

  /** The choice that a text asks for; what it does not know is left as in the first view. */
  function choiceOf(data, said) {
    const choice = initial(data);
    const lists = listsOf(data);
    const words = { view: ["curves", "profile"], runs: ["medians", "single"] };
    for (const [key, text] of new URLSearchParams(said.replaceAll(":", "=").replaceAll(";", "&"))) {
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

  return { initial, viewOf, describe, csvOf, textOf, choiceOf };
})();
