// The drawing of the explorer: from series of numbers to SVG elements.
const explorerFigure = (() => {
  const { logTicks, linearTicks, tickLabel, lastAtMost, FEWEST_FOR_QUARTILES } = explorerNumbers;
  const LINE = 14; // px between labels at line ends
  const FEWEST_PX = 0.5; // steps closer than this are drawn as one
  const MARKERS = 5; // on a curve
  // Outlines of markers around the origin, by the letters that name them in reports/drawing.
  const SHAPES = {
    s: "M-3.4-3.4h6.8v6.8h-6.8z",
    "^": "M0-4.4L4.2 3.4h-8.4z",
    v: "M0 4.4L4.2-3.4h-8.4z",
    "<": "M-4.4 0L3.4-4.2v8.4z",
    ">": "M4.4 0L-3.4-4.2v8.4z",
    D: "M0-4.6L4.6 0 0 4.6-4.6 0z",
    P: "M-1.5-4.2h3v2.7h2.7v3h-2.7v2.7h-3v-2.7h-2.7v-3h2.7z",
    X: "M0-2.1L2.3-4.4 4.4-2.3 2.1 0 4.4 2.3 2.3 4.4 0 2.1-2.3 4.4-4.4 2.3-2.1 0-4.4-2.3-2.3-4.4z",
    p: "M0-4.3L4.1-1.3 2.5 3.5h-5L-4.1-1.3z",
    o: "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0z",
  };
  const CROSS = "M-4-4L4 4M-4 4L4-4";

  // ---- elements

  /** A child element in SVG; a colour is a CSS property, so that the page's scheme decides. */
  function add(parent, name, attributes = {}, styles = {}) {
    const element = document.createElementNS(parent.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    for (const [key, value] of Object.entries(styles)) element.style.setProperty(key, value);
    parent.append(element);
    return element;
  }

  function addText(parent, x, y, text, anchor = "start", color = "--muted") {
    const element = add(parent, "text", { x, y, "text-anchor": anchor }, { fill: `var(${color})` });
    element.textContent = text;
    return element;
  }

  /** A marker of a solver. */
  function addMarker(parent, solver, x, y, size = 1) {
    const d = SHAPES[solver.marker] || SHAPES.o;
    const transform = `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`;
    return add(parent, "path", { d, transform, "stroke-width": 0.8 },
      { fill: `var(${solver.color})`, stroke: "var(--card)" });
  }

  /** A short piece of a solver's line, for the legend. */
  function swatch(solver, namespace) {
    const svg = document.createElementNS(namespace, "svg");
    svg.setAttribute("viewBox", "0 0 30 12");
    svg.setAttribute("aria-hidden", "true");
    addLine(svg, "M1 6H29", solver, 1.8);
    addMarker(svg, solver, 15, 6);
    return svg;
  }

  function addLine(parent, d, solver, width, opacity = 1) {
    return add(parent, "path", {
      d, fill: "none", "stroke-width": width, "stroke-opacity": opacity,
      "stroke-dasharray": solver.dashes.map((length) => length * width).join(" "),
    }, { stroke: `var(${solver.color})` });
  }

  // ---- scales

  /** Limits around numbers, with a margin in fractions of their range. */
  function padded(numbers, log, below, above) {
    let low = Infinity;
    let high = -Infinity;
    for (const number of numbers) {
      if (number < low) low = number;
      if (number > high) high = number;
    }
    if (low > high) return log ? [1, 10] : [0, 1];
    if (log) {
      const span = Math.max(Math.log10(high / low), 0.3);
      return [low / 10 ** (below * span), high * 10 ** (above * span)];
    }
    const span = high - low || Math.abs(high) || 1;
    return [low >= 0 ? Math.max(low - below * span, 0) : low - below * span, high + above * span];
  }

  /** From numbers between the limits to pixels, and back. */
  function scale(limits, log, from, to) {
    const warp = log ? Math.log10 : (value) => value;
    const [low, high] = limits.map(warp);
    const at = (value) => from + ((warp(value) - low) / (high - low)) * (to - from);
    const back = (px) => {
      const value = low + ((px - from) / (to - from)) * (high - low);
      return log ? 10 ** value : value;
    };
    return { at, back, limits, ticks: (log ? logTicks : linearTicks)(...limits) };
  }

  // ---- paths

  /** The places of a step curve that differ on the screen. */
  function distinct(xs) {
    return xs.map((_, i) => i).filter((i) =>
      i === 0 || i === xs.length - 1 || Math.round(xs[i] / FEWEST_PX) !== Math.round(xs[i + 1] / FEWEST_PX));
  }

  /** A step curve in pixels: each value holds until the next cost. */
  function steps(xs, ys) {
    return distinct(xs).map((i, k) =>
      (k ? `H${xs[i].toFixed(1)}V${ys[i].toFixed(1)}` : `M${xs[i].toFixed(1)} ${ys[i].toFixed(1)}`))
      .join("");
  }

  /** The area between two step curves. */
  function band(xs, lows, highs) {
    const kept = distinct(xs);
    let back = "";
    for (let k = kept.length - 1; k >= 0; k -= 1) {
      const end = k + 1 < kept.length ? kept[k + 1] : kept[k];
      back += `L${xs[end].toFixed(1)} ${lows[kept[k]].toFixed(1)}H${xs[kept[k]].toFixed(1)}`;
    }
    return `${steps(xs, highs)}${back}Z`;
  }

  // ---- the figure

  /**
   * Draw a view.
   * @param {SVGElement} svg emptied first
   * @param {object} view `series` (of 52_explorer_views.js), `solvers`, the axes `x` and `y` (words,
   *     format, log; y may have `floor`, where values without a logarithm are drawn, and
   *     `floorWords`) and `lines` (value and words)
   * @param {number} width in pixels
   * @returns {{marks: object[], x: object, y: object, cursor: Element, plot: object}} for each
   *     series its group and its pixels, the scales, and a group for the cursor
   */
  function draw(svg, view, width) {
    svg.replaceChildren();
    const names = new Set(view.series.map((one) => one.solver));
    const height = Math.max(width < 560 ? 300 : 400, names.size * LINE + 70);
    const longest = Math.max(0, ...[...names].map((place) => widthOf(svg, view.solvers[place].label)));
    const labels = Math.min(0.3 * width, 180, longest + 16);
    const plot = { left: 54, right: width - labels, top: 26, bottom: height - 44 };
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    addText(svg, 0, 12, view.y.words);
    addText(svg, plot.left, height - 6, view.x.words);
    if (!view.series.length) {
      addText(svg, width / 2, height / 2, "Nothing to show with these choices.", "middle");
      return { marks: [], plot };
    }
    const drawn = (value) => (view.y.log && value <= 0 ? view.y.floor : value);
    const costs = view.series.flatMap((one) => one.costs).filter((cost) => !view.x.log || cost > 0);
    const x = scale(padded(costs, view.x.log, 0.025, 0.035), view.x.log, plot.left, plot.right);
    const values = [...view.series.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])])
      .map(drawn), ...view.lines.map((line) => line.value)];
    const y = scale(view.y.limits || padded(values, view.y.log, 0.1, 0.05), view.y.log,
      plot.bottom, plot.top);
    drawAxes(svg, view, x, y, plot);
    const scales = {
      x: (cost) => x.at(Math.max(cost, x.limits[0])),
      y: (value) => y.at(drawn(value)),
    };
    const marks = view.series.map((one) => drawSeries(svg, one, view.solvers[one.solver], scales, plot));
    labelEnds(svg, marks, view.solvers, plot, width);
    return { marks, x, y, plot, cursor: add(svg, "g", { class: "cursor" }) };
  }

  /** The width of a text in the figure. */
  function widthOf(svg, text) {
    const element = addText(svg, 0, 0, text);
    const width = element.getComputedTextLength();
    element.remove();
    return width;
  }

  /** A text, or as much of it as fits into a width. */
  function fitting(svg, text, room) {
    if (widthOf(svg, text) <= room) return text;
    const letters = [...text];
    let [fits, over] = [0, letters.length];
    while (over - fits > 1) {
      const middle = (fits + over) >> 1;
      if (widthOf(svg, `${letters.slice(0, middle).join("")}\u2026`) <= room) fits = middle;
      else over = middle;
    }
    return `${letters.slice(0, fits).join("")}\u2026`;
  }

  function drawAxes(svg, view, x, y, plot) {
    for (const tick of y.ticks) {
      const at = y.at(tick).toFixed(1);
      add(svg, "path", { d: `M${plot.left} ${at}H${plot.right}`, "stroke-width": 0.8 },
        { stroke: "var(--rule)" });
      addText(svg, plot.left - 6, Number(at) + 4, tickLabel(tick, view.y.format, view.y.log), "end", "--ink");
    }
    add(svg, "path", { d: `M${plot.left} ${plot.bottom}H${plot.right}`, "stroke-width": 0.8 },
      { stroke: "var(--muted)" });
    let free = -Infinity; // ticks whose labels would touch have none
    for (const tick of x.ticks) {
      const at = x.at(tick);
      add(svg, "path", { d: `M${at.toFixed(1)} ${plot.bottom}v4`, "stroke-width": 0.8 },
        { stroke: "var(--muted)" });
      const text = tickLabel(tick, view.x.format, view.x.log);
      const half = 3.5 * text.length;
      if (at - half < free) continue;
      addText(svg, at.toFixed(1), plot.bottom + 17, text, "middle", "--ink");
      free = at + half + 6;
    }
    for (const line of view.lines) drawLine(svg, y.at(line.value), line.words, plot);
    if (view.y.floorWords) drawLine(svg, y.at(view.y.floor), view.y.floorWords, plot);
  }

  function drawLine(svg, at, words, plot) {
    add(svg, "path", { d: `M${plot.left} ${at.toFixed(1)}H${plot.right}`, "stroke-dasharray": "4 3" },
      { stroke: "var(--muted)" });
    addText(svg, plot.left + 4, (at + 12).toFixed(1), words).setAttribute("font-size", 11);
  }

  /** One series in a group of its own; returns its pixels. */
  function drawSeries(svg, one, solver, scales, plot) {
    const group = add(svg, "g", { class: `series ${one.kind}` });
    const xs = one.x.map(scales.x);
    const ys = one.y.map(scales.y);
    const last = xs.length - 1;
    if (one.kind === "end") drawEnd(group, one, solver, scales);
    else if (one.kind === "profile") drawProfile(group, xs, ys, solver, scales, plot);
    else if (one.kind === "median") {
      if (one.n >= FEWEST_FOR_QUARTILES) {
        add(group, "path", { d: band(xs, one.low.map(scales.y), one.high.map(scales.y)), "fill-opacity": 0.13 },
          { fill: `var(${solver.color})` });
      }
      addLine(group, steps(xs, ys), solver, 1.7);
      const places = Array.from({ length: MARKERS }, (_, k) => Math.round((last * (k + 1)) / MARKERS));
      for (const place of new Set(places)) addMarker(group, solver, xs[place], ys[place]);
    } else if (one.kind === "failed") {
      addLine(group, steps(xs, ys), { ...solver, dashes: [3, 3] }, 1.1, 0.8);
      add(group, "path", { d: CROSS, transform: `translate(${xs[last].toFixed(1)} ${ys[last].toFixed(1)})`,
        "stroke-width": 1.7 }, { stroke: `var(${solver.color})` });
    } else {
      addLine(group, steps(xs, ys), solver, one.aside ? 0.7 : 1.3, one.aside ? 0.5 : 0.9);
      if (!one.aside) addMarker(group, solver, xs[last], ys[last], 0.8);
    }
    return { series: one, group, xs, ys };
  }

  /** The final state of a solver that is seen only at its end, with range bars. */
  function drawEnd(group, one, solver, scales) {
    const [x, y] = [scales.x(one.x[0]), scales.y(one.y[0])];
    const bars = `M${scales.x(one.costs[0]).toFixed(1)} ${y.toFixed(1)}H${scales.x(one.costs[1]).toFixed(1)}`
      + `M${x.toFixed(1)} ${scales.y(one.low[0]).toFixed(1)}V${scales.y(one.high[0]).toFixed(1)}`;
    addLine(group, bars, { ...solver, dashes: [] }, 1);
    addMarker(group, solver, x, y, 1.5);
  }

  /** A distribution function, from no run to the right end of the figure. */
  function drawProfile(group, xs, ys, solver, scales, plot) {
    const all = [plot.left, ...xs, plot.right];
    const shares = [scales.y(0), ...ys, ys.length ? ys[ys.length - 1] : scales.y(0)];
    addLine(group, steps(all, shares), solver, 1.7);
    for (const place of new Set([0, xs.length >> 1, xs.length - 1])) {
      if (xs.length) addMarker(group, solver, xs[place], ys[place]);
    }
  }

  // ---- labels

  /** Each solver's name at the right, beside its end as far as there is room. */
  function labelEnds(svg, marks, solvers, plot, width) {
    const ends = new Map();
    for (const mark of marks) {
      const kept = ends.get(mark.series.solver);
      if (!mark.series.aside && !kept) {
        const last = mark.ys[mark.ys.length - 1];
        ends.set(mark.series.solver, { mark, wanted: last === undefined ? plot.bottom : last });
      }
    }
    const sorted = [...ends.values()].sort((a, b) => a.wanted - b.wanted);
    spread(sorted, plot);
    const room = width - plot.right - 11;
    for (const end of sorted) {
      const { series, xs } = end.mark;
      const solver = solvers[series.solver];
      const from = series.kind === "profile" || !xs.length ? plot.right : xs[xs.length - 1];
      // After its end a run keeps its final value.
      const d = `M${from.toFixed(1)} ${end.wanted.toFixed(1)}H${plot.right}L${plot.right + 7} ${end.y.toFixed(1)}`;
      add(end.mark.group, "path", { d, fill: "none", "stroke-width": 0.8, "stroke-opacity": 0.55,
        "stroke-dasharray": "1 2.5" }, { stroke: `var(${solver.color})` });
      const text = fitting(svg, solver.label, room);
      addText(end.mark.group, plot.right + 9, (end.y + 4).toFixed(1), text, "start", solver.color);
    }
  }

  /** Places for labels, in their order, a line apart and inside the plot. */
  function spread(sorted, plot) {
    let least = plot.top;
    for (const end of sorted) {
      end.y = Math.max(end.wanted, least);
      least = end.y + LINE;
    }
    let most = plot.bottom + 8;
    for (const end of [...sorted].reverse()) {
      end.y = Math.min(end.y, most);
      most = end.y - LINE;
    }
  }

  // ---- the cursor

  /** The pixels of a series at a horizontal place; null where it has none. */
  function pixelsAt(mark, px) {
    const place = lastAtMost(mark.xs, px + 1e-9);
    return place < 0 ? null : { place, x: mark.xs[place], y: mark.ys[place] };
  }

  /** Mark a place of a series and let the other series step back; without a mark undo it. */
  function point(figure, mark, solver, at) {
    if (!figure.cursor) return;
    figure.cursor.replaceChildren();
    for (const other of figure.marks) {
      const same = mark && other.series.solver === mark.series.solver;
      other.group.classList.toggle("aside", Boolean(mark) && !same);
    }
    if (!mark) return;
    add(figure.cursor, "path", { d: `M${at.x.toFixed(1)} ${figure.plot.top}V${figure.plot.bottom}`,
      "stroke-width": 0.8 }, { stroke: "var(--muted)" });
    addMarker(figure.cursor, solver, at.x, at.y, 1.6);
  }

  return { draw, swatch, pixelsAt, point };
})();
