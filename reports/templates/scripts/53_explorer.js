// The explorer: one figure of a study's checkpoints whose axes, targets, tasks and solvers the
// reader chooses. What it shows is kept in the page's address, so that a view can be linked.
const Explorer = (() => {
  const { initial, viewOf, describe, csvOf, textOf, choiceOf } = explorerViews;
  const KEY = "explore";
  const REACH_PX = 48; // the pointer means a curve no farther than this
  const STRIDE_PX = 8; // an arrow key moves at least so far
  const NARROWEST_PX = 280;
  const LISTS = ["task", "value", "cost", "target"];
  const RADIOS = ["view", "runs"];
  const BOXES = ["logx", "logy", "best"];
  const SIDEWAYS = { ArrowLeft: -1, ArrowRight: 1 };
  const UPWARDS = { ArrowUp: -1, ArrowDown: 1 };
  const HINT = "Point at a curve, or use the arrow keys in the figure, to read its values.";
  const CURVE_NOTE = "Lines are medians over the runs, bands are quartiles; of fewer than five runs "
    + "each is a thin line. A dashed line that ends in a cross is a failed run, in no median. A lone "
    + "marker is a solver that is seen only at its end. After its end a run keeps its final value.";
  const PROFILE_NOTE = "A run that failed, or never gets there, counts as not there. Runs without "
    + "the target, and solvers without this cost, are left out: the legend says how many of how many. "
    + "A run that is there at its first checkpoint may have been there before.";

  /** The places with one more, or one fewer. */
  function toggled(places, place) {
    const found = new Set(places);
    if (!found.delete(place)) found.add(place);
    return found;
  }

  /** A new element with a text, which is never read as markup. */
  function element(tag, text = "", properties = {}) {
    const made = Object.assign(document.createElement(tag), properties);
    made.textContent = text;
    return made;
  }

  /** The next place along a curve that is seen to be another one. */
  function along(mark, place, step) {
    const last = mark.xs.length - 1;
    let next = place;
    do next += step;
    while (next > 0 && next < last && Math.abs(mark.xs[next] - mark.xs[place]) < STRIDE_PX);
    return Math.min(Math.max(next, 0), last);
  }

  const placeOf = (mark, place) => ({ mark, at: { place, x: mark.xs[place], y: mark.ys[place] } });

  /** The place of a curve that the pointer may mean, and how far it is. */
  function beside(mark, px, py) {
    if (mark.series.kind === "end") {
      const found = placeOf(mark, 0);
      return { ...found, far: Math.hypot(found.at.x - px, found.at.y - py) };
    }
    const at = explorerFigure.pixelsAt(mark, px);
    return { mark, at, far: at ? Math.abs(at.y - py) : Infinity };
  }

  function download(name, type, text) {
    const href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    element("a", "", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10000);
  }

  /** The explorer of a page. */
  return class {
    /**
     * @param {Element} root its element, made by templates/explore.html
     * @param {object} data of reports/explorer.py
     */
    constructor(root, data) {
      Object.assign(this, { root, data });
      this.plot = this.find("plot");
      this.svg = this.plot.querySelector("svg");
      this.choice = choiceOf(data, marginbench.hash.get(KEY) ?? "");
      this.fill();
      this.listen();
      this.show();
      const asked = marginbench.hash.get(KEY) !== null && marginbench.hash.anchor() === null;
      if (asked) root.closest("section").scrollIntoView();
    }

    find(name) {
      return this.root.querySelector(`.explorer-${name}`);
    }

    control(name, value) {
      const which = value === undefined ? "" : `[value="${value}"]`;
      return this.root.querySelector(`[name="explorer-${name}"]${which}`);
    }

    // ---- controls

    /** Put tasks, solvers, costs, values and targets into the controls. */
    fill() {
      const { tasks, solvers, values, costs, targets } = this.data;
      const words = { task: tasks, value: values, cost: costs, target: targets };
      for (const name of LISTS) {
        const options = words[name].map((item, place) => new Option(item.label || item.words, place));
        this.control(name).replaceChildren(...options);
      }
      this.control("view").closest("fieldset").hidden = !targets.length;
      this.find("tasks").append(...tasks.map((task, place) => this.taskBox(task, place)));
      this.find("legend").append(...solvers.map((solver, place) => this.entry(solver, place)));
    }

    taskBox(task, place) {
      const [label, box] = [element("label"), element("input", "", { type: "checkbox" })];
      box.addEventListener("change", () =>
        this.choose({ without: toggled(this.choice.without, place) }));
      label.append(box, " ", element("span", task.label));
      return label;
    }

    /** A solver in the legend: one button hides or shows it, the other leaves it alone. */
    entry(solver, place) {
      const toggle = element("button", "", { type: "button" });
      const only = element("button", "only", { type: "button" });
      toggle.append(explorerFigure.swatch(solver, this.svg.namespaceURI), element("span", solver.label),
        element("span", "", { className: "note" }));
      only.setAttribute("aria-label", `Only ${solver.label}`);
      toggle.addEventListener("click", () =>
        this.choose({ hidden: toggled(this.choice.hidden, place) }));
      only.addEventListener("click", () => this.isolate(place));
      const item = element("li");
      item.append(toggle, only);
      return item;
    }

    listen() {
      for (const name of LISTS) this.control(name).addEventListener("change", (event) => {
        this.choose({ [name]: Number(event.target.value) });
      });
      for (const name of BOXES) this.control(name).addEventListener("change", (event) => {
        this.choose({ [name]: event.target.checked });
      });
      for (const name of RADIOS) this.control(name).closest("fieldset")
        .addEventListener("change", (event) => this.choose({ [name]: event.target.value }));
      const pressed = {
        all: () => this.choose({ hidden: new Set(), without: new Set() }),
        reset: () => this.choose(initial(this.data)),
        link: () => this.copyLink(),
        svg: () => download("marginbench-explore.svg", "image/svg+xml", this.standalone()),
        csv: () => download("marginbench-explore.csv", "text/csv", csvOf(this.data, this.choice, this.view)),
      };
      for (const [name, action] of Object.entries(pressed)) {
        this.control(name).addEventListener("click", action);
      }
      this.listenToFigure();
      window.addEventListener("marginbench:hash", () => this.follow());
    }

    listenToFigure() {
      for (const name of ["pointermove", "pointerdown"]) {
        this.plot.addEventListener(name, (event) => this.pointed(event));
      }
      for (const name of ["pointerleave", "blur"]) {
        this.plot.addEventListener(name, () => this.read(null));
      }
      this.plot.addEventListener("keydown", (event) => this.moved(event));
      new ResizeObserver(() => {
        if (this.width() !== Number(this.svg.getAttribute("width"))) this.draw();
      }).observe(this.plot);
    }

    isAlone(place) {
      return this.choice.hidden.size === this.data.solvers.length - 1 && !this.choice.hidden.has(place);
    }

    isolate(place) {
      const others = this.data.solvers.map((_, other) => other).filter((other) => other !== place);
      this.choose({ hidden: new Set(this.isAlone(place) ? [] : others) });
    }

    // ---- showing a choice

    choose(changes) {
      this.choice = { ...this.choice, ...changes };
      this.find("said").textContent = "";
      marginbench.hash.set(KEY, textOf(this.data, this.choice), true);
      this.show();
    }

    /** Take over the view of the address. */
    follow() {
      const said = marginbench.hash.get(KEY) ?? "";
      if (said === textOf(this.data, this.choice)) return;
      this.choice = choiceOf(this.data, said);
      this.show();
    }

    show() {
      const { choice } = this;
      for (const name of LISTS) this.control(name).value = choice[name];
      for (const name of BOXES) this.control(name).checked = choice[name];
      for (const name of RADIOS) this.control(name, choice[name]).checked = true;
      this.root.dataset.view = choice.view;
      for (const [place, box] of this.find("tasks").querySelectorAll("input").entries()) {
        box.checked = !choice.without.has(place);
      }
      this.view = viewOf(this.data, choice);
      this.find("title").textContent = this.view.title;
      this.find("note").textContent = this.notes().filter(Boolean).join(" ");
      for (const [place, item] of [...this.find("legend").children].entries()) this.showEntry(place, item);
      this.draw();
    }

    notes() {
      const { choice, data } = this;
      const left = data.shown_seeds < data.all_seeds
        ? `So that the page stays small, this figure knows the first ${data.shown_seeds} of `
          + `${data.all_seeds} ${data.words.seed}s: its medians, spread and targets are those of these.`
        : "";
      if (choice.view === "profile") return [PROFILE_NOTE, this.timesNote(), left];
      const thinned = `${data.thinned} runs with more than ${data.most} checkpoints show about `
        + `${data.most} of them: the first, the last, the best, those that decide the targets, and `
        + "others evenly spread.";
      return [CURVE_NOTE, this.timesNote(), left, data.thinned ? thinned : ""];
    }

    timesNote() {
      return this.data.costs[this.choice.cost].format === "seconds" ? this.data.times : "";
    }

    showEntry(place, item) {
      const [toggle, only] = item.children;
      const hidden = this.choice.hidden.has(place);
      toggle.setAttribute("aria-pressed", String(!hidden));
      toggle.classList.toggle("off", hidden);
      only.setAttribute("aria-pressed", String(this.isAlone(place)));
      toggle.querySelector(".note").textContent = hidden ? "" : this.entryNote(place);
    }

    entryNote(place) {
      const first = this.view.series.find((one) => one.solver === place);
      if (!first) return "nothing to show";
      if (first.kind === "profile") return `${first.reached} of ${first.n}`;
      const runs = first.n < first.planned ? `${first.n} of ${first.planned} runs` : "";
      return [this.view.task.notes[place], runs].filter(Boolean).join(", ");
    }

    width() {
      return Math.max(this.plot.clientWidth, NARROWEST_PX);
    }

    draw() {
      this.figure = explorerFigure.draw(this.svg, this.view, this.width());
      this.read(null);
    }

    // ---- reading values

    /** Mark a place of a curve and say its values; without a place undo it. */
    read(found) {
      this.cursor = found;
      const solver = found && this.data.solvers[found.mark.series.solver];
      explorerFigure.point(this.figure, found && found.mark, solver, found && found.at);
      this.find("readout").textContent = found
        ? describe(this.data, this.choice, this.view, found.mark.series, found.at.place)
        : HINT;
    }

    /** The curves that can be read: not those of single runs beside their median. */
    stops() {
      return this.figure.marks.filter((mark) => !mark.series.aside && mark.xs.length);
    }

    pointed(event) {
      const box = this.svg.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const near = this.stops().map((mark) => beside(mark, px, py)).filter((one) => one.far <= REACH_PX);
      this.read(near.sort((a, b) => a.far - b.far)[0] || null);
    }

    moved(event) {
      const { key } = event;
      const known = key in SIDEWAYS || key in UPWARDS || ["Home", "End", "Escape"].includes(key);
      const all = this.stops();
      if (!known || !all.length || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.read(key === "Escape" ? null : this.next(key, all));
    }

    /** Where a key leads from the place that is read now. */
    next(key, all) {
      if (!this.cursor) return placeOf(all[0], key === "End" ? all[0].xs.length - 1 : 0);
      const from = all.indexOf(this.cursor.mark);
      const mark = all[(from + (UPWARDS[key] || 0) + all.length) % all.length];
      const place = Math.max(explorerNumbers.lastAtMost(mark.xs, this.cursor.at.x + 1e-9), 0);
      if (key === "Home") return placeOf(mark, 0);
      if (key === "End") return placeOf(mark, mark.xs.length - 1);
      return placeOf(mark, SIDEWAYS[key] ? along(mark, place, SIDEWAYS[key]) : place);
    }

    // ---- taking away

    /** The figure as a file of its own, in the colours of the page's present scheme. */
    standalone() {
      this.read(null);
      const copy = this.svg.cloneNode(true);
      const [title, ground] = ["title", "rect"].map((tag) => document.createElementNS(copy.namespaceURI, tag));
      title.textContent = this.view.title;
      ground.setAttribute("width", "100%");
      ground.setAttribute("height", "100%");
      ground.style.fill = "var(--card)";
      copy.prepend(title, ground);
      copy.setAttribute("font-family", "sans-serif");
      copy.setAttribute("font-size", "12");
      const style = getComputedStyle(document.documentElement);
      return new XMLSerializer().serializeToString(copy)
        .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    }

    async copyLink() {
      const link = location.href;
      const said = this.find("said");
      try {
        await navigator.clipboard.writeText(link);
        said.textContent = "The link to this view is copied.";
      } catch {
        // Where a page may not write to the clipboard, the reader copies the selected link.
        said.textContent = link;
        getSelection().selectAllChildren(said);
      }
    }
  };
})();

if (document.querySelector(".explorer")) {
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  new Explorer(document.querySelector(".explorer"), data);
}
