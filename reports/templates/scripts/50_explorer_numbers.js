// Numbers of the explorer: how they read, ticks, and the statistics of runs. They are those of
// reports/formatting.py, drawing/axes.py and statistics/curves.py; the tests compare them.
const explorerNumbers = (() => {
  const THIN = "\u202f";
  const TIMES = "\u00d7";
  const MINUS = "\u207b";
  const SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const MULTIPLES = [[1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]];
  const FEWEST_TICKS = 3;
  const MOST_DECADES = 7;
  /** Of fewer runs each one is shown: quartiles would be guesses. */
  const FEWEST_FOR_QUARTILES = 5;

  // ---- how numbers read

  /**
   * Where a number lies in the middle between two decimals, Python takes the even one and
   * JavaScript the larger one.
   * @param {string} text the number as JavaScript rounds it
   * @param {string} exact the same number with more digits than a double can need
   * @returns {string} the number as Python rounds it
   */
  function evenTie(text, exact) {
    const digits = text.length + (text.includes(".") ? 0 : 1);
    const middle = /^50*$/.test(exact.slice(digits)) && /[13579]$/.test(text);
    return middle && exact.length > digits ? exact.slice(0, text.length) : text;
  }

  const fixed = (value, places) => evenTie(value.toFixed(places), value.toFixed(100));

  /** The mantissa, rounded to so many decimals, and the exponent of ten. */
  function exponential(value, places) {
    const [text, exponent] = value.toExponential(places).split("e");
    return [evenTie(text, value.toExponential(100).split("e")[0]), Number(exponent)];
  }

  const grouped = (value, places) => fixed(value, places).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

  function powerOfTen(exponent) {
    const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[digit]).join("");
    return `10${exponent < 0 ? MINUS : ""}${digits}`;
  }

  function threeDigits(value) {
    if (value === 0) return "0";
    const exponent = exponential(value, 2)[1];
    return fixed(value, Math.max(2 - exponent, 0));
  }

  /** Python's format g: so many digits, small numbers with an exponent. */
  function general(value, digits) {
    const [text, exponent] = exponential(value, digits - 1);
    const mantissa = Number(text);
    if (exponent >= -4 && exponent < digits) return String(Number(`${mantissa}e${exponent}`));
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${size}`;
  }

  function percent(value) {
    const scaled = 100 * value;
    if (value === 0) return `0${THIN}%`;
    const text = Math.abs(scaled) >= 0.1 ? fixed(scaled, 2) : general(scaled, 2);
    return `${text}${THIN}%`;
  }

  function count(value) {
    for (const [size, prefix] of PREFIXES) {
      if (Math.abs(value) >= size * 0.9995) return `${threeDigits(value / size)}${prefix}`;
    }
    return Number.isInteger(value) ? String(value) : fixed(value, 1);
  }

  function seconds(value) {
    if (value >= 999.5) return `${grouped(value, 0)}${THIN}s`;
    if (value >= 0.9995 || value === 0) return `${threeDigits(value)}${THIN}s`;
    return `${threeDigits(value * 1e3)}${THIN}ms`;
  }

  function scientific(value) {
    if (value === 0) return "0";
    const [mantissa, exponent] = exponential(value, 1);
    return `${mantissa}${TIMES}${powerOfTen(exponent)}`;
  }

  const FORMATS = {
    percent,
    count,
    seconds,
    scientific,
    integer: (value) => grouped(value, Number.isInteger(value) ? 0 : 1),
    megabytes: (value) => `${grouped(value, 0)}${THIN}MB`,
    number: (value) => general(value, 4),
  };

  /**
   * A value as the page writes it.
   * @param {string} format one of FORMATS
   * @param {number} value
   * @returns {string}
   */
  const say = (format, value) => (FORMATS[format] || FORMATS.number)(value);

  // ---- axes

  /** Round positions on a logarithmic axis: powers of ten, or their multiples where few fit. */
  function logTicks(low, high) {
    const decades = [];
    const last = Math.floor(Math.log10(high) + 1e-9);
    for (let k = Math.ceil(Math.log10(low) - 1e-9); k <= last; k += 1) decades.push(k);
    if (decades.length >= FEWEST_TICKS) {
      const stride = Math.ceil(decades.length / MOST_DECADES);
      return decades.filter((k) => k % stride === 0).map((k) => Number(`1e${k}`));
    }
    for (const multiples of MULTIPLES) {
      const ticks = [];
      for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k += 1) {
        for (const multiple of multiples) ticks.push(Number(`${multiple}e${k}`));
      }
      const inside = ticks.filter((tick) => low <= tick && tick <= high);
      if (inside.length >= FEWEST_TICKS) return inside;
    }
    return linearTicks(low, high).filter((tick) => tick > 0);
  }

  /** About five round positions on a linear axis. */
  function linearTicks(low, high) {
    const raw = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 2.5, 5, 10].find((multiple) => power * multiple >= raw * 0.999);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) {
      ticks.push(Number((k * step).toPrecision(12)));
    }
    return ticks;
  }

  /** The text of a tick: a power of ten on a logarithmic axis of counts, else a short number. */
  function tickLabel(value, format, log) {
    if (format === "percent") return `${Number((100 * value).toPrecision(4))}${THIN}%`;
    if (value === 0) return "0";
    const exponent = Math.floor(Math.log10(Math.abs(value)) + 1e-9);
    if (["seconds", "number"].includes(format) && exponent > -5 && exponent < 4) {
      return String(Number(value.toFixed(6)));
    }
    if (!log && exponent > -4 && exponent < 4) return String(Number(value.toPrecision(4)));
    if (!log && value >= 1e4) {
      const [size, prefix] = PREFIXES.find(([least]) => value >= least);
      return `${Number((value / size).toPrecision(4))}${prefix}`;
    }
    const mantissa = value / 10 ** exponent;
    const power = powerOfTen(exponent);
    if (Math.abs(mantissa - 1) < 1e-6) return power;
    return `${Number(mantissa.toPrecision(3))}${TIMES}${power}`;
  }

  // ---- statistics

  /** The quantile of ascending values, interpolated linearly between them. */
  function quantile(sorted, q) {
    const place = q * (sorted.length - 1);
    const below = Math.floor(place);
    const above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
  }

  /** Median and spread: quartiles, or least and largest of fewer than five values. */
  function summary(values) {
    const sorted = Float64Array.from(values).sort();
    const few = sorted.length < FEWEST_FOR_QUARTILES;
    return {
      median: quantile(sorted, 0.5),
      low: quantile(sorted, few ? 0 : 0.25),
      high: quantile(sorted, few ? 1 : 0.75),
    };
  }

  /** The place of the last of ascending numbers that is at most x; -1: all are larger. */
  function lastAtMost(ascending, x) {
    let low = 0;
    let high = ascending.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ascending[middle] <= x) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /**
   * The checkpoints of a run as a step curve.
   * @param {(number|null)[]} costs
   * @param {(number|null)[]} values null where unknown; such checkpoints are left out
   * @param {""|"lower"|"higher"} best which way the best value so far replaces the value, if any
   * @returns {{x: number[], y: number[]}} ascending in x
   */
  function stepCurve(costs, values, best) {
    const known = costs.map((_, i) => i).filter((i) => costs[i] !== null && values[i] !== null);
    known.sort((a, b) => costs[a] - costs[b] || a - b);
    const y = known.map((i) => values[i]);
    if (best) {
      const better = best === "higher" ? Math.max : Math.min;
      for (let i = 1; i < y.length; i += 1) y[i] = better(y[i - 1], y[i]);
    }
    return { x: known.map((i) => costs[i]), y };
  }

  /**
   * Median and spread of step curves, at every cost where one of them changes.
   *
   * It starts where every curve has a point and ends with the longest; a curve that has ended
   * keeps its final value.
   * @param {{x: number[], y: number[]}[]} curves
   * @param {boolean} log whether costs of zero have no place
   * @returns {{x: number[], y: number[], low: number[], high: number[], running: number[]}}
   */
  function medianCurve(curves, log) {
    const places = Float64Array.from(curves.flatMap((curve) => curve.x)).sort();
    const first = Math.max(...curves.map((curve) => curve.x[0]));
    const start = log && first <= 0 ? places.find((x) => x > 0) : first;
    const found = { x: [], y: [], low: [], high: [], running: [] };
    places.forEach((x, i) => {
      if (start === undefined || x < start || x === places[i + 1]) return;
      const { median, low, high } = summary(curves.map((c) => c.y[lastAtMost(c.x, x)]));
      found.x.push(x);
      found.y.push(median);
      found.low.push(low);
      found.high.push(high);
      found.running.push(curves.filter((c) => c.x[c.x.length - 1] > x).length);
    });
    return found;
  }

  /**
   * The share of runs that have reached a target at each cost.
   * @param {number[]} costs what each run spent until then; Infinity: never
   * @returns {{x: number[], y: number[]}} a step at each cost, to the share from there on
   */
  function distribution(costs) {
    const reached = Float64Array.from(costs.filter(Number.isFinite)).sort();
    const found = { x: [], y: [] };
    reached.forEach((x, i) => {
      if (x === reached[i + 1]) return;
      found.x.push(x);
      found.y.push((i + 1) / costs.length);
    });
    return found;
  }

  return {
    FEWEST_FOR_QUARTILES, say, logTicks, linearTicks, tickLabel, summary, lastAtMost, stepCurve,
    medianCurve, distribution,
  };
})();
