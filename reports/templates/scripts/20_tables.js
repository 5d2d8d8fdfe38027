// Tables: sort by a column, filter the rows. Without the script they are plain. The choices are kept
// in the address: "table-task-0-sort=2d", "table-task-0-filter=smo" for the first table of the section
// "task-0".
(() => {
  const FILTERED_FROM = 9; // rows
  const collator = new Intl.Collator("en", { numeric: true });

  // Numbers by their value and before all texts; what is absent comes last, whichever way.
  function keyOf(cell) {
    const { value } = cell.dataset;
    const text = cell.textContent.trim();
    if (value !== undefined) return [0, Number(value)];
    return text === "" || cell.querySelector(".absent") ? [2, 0] : [1, text];
  }
  const compared = ([one, left], [other, right], sign) =>
    one - other || sign * (one === 1 ? collator.compare(left, right) : left - right);

  function enhance(table, name) {
    const [body, region] = [table.tBodies[0], table.parentElement];
    const rows = [...body.rows];
    const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const get = (what) => marginbench.hash.get(`table-${name}-${what}`);
    const set = (what, value) => marginbench.hash.set(`table-${name}-${what}`, value);
    const field = Object.assign(document.createElement("input"), {
      type: "search", placeholder: "Filter rows", spellcheck: false,
      ariaLabel: `Filter the rows of ${region.getAttribute("aria-label") || "the table"}`,
    });
    const count = Object.assign(document.createElement("span"), { className: "count", role: "status" });

    function sort() {
      const [, column, way] = /^(\d+)([ad])$/.exec(get("sort")) || [];
      for (const heading of headings) heading.removeAttribute("aria-sort");
      if (!headings[column]) return body.append(...rows);
      headings[column].setAttribute("aria-sort", way === "a" ? "ascending" : "descending");
      const keys = new Map(rows.map((row) => [row, keyOf(row.cells[column])]));
      const order = (one, other) => compared(keys.get(one), keys.get(other), way === "a" ? 1 : -1);
      return body.append(...[...rows].sort(order));
    }

    function filter() {
      const wanted = field.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
    }

    headings.forEach((heading, column) => {
      const title = heading.textContent.trim();
      const button = Object.assign(document.createElement("button"), { type: "button", className: "sort" });
      const term = heading.querySelector("a.term");
      button.append(...(term || heading).childNodes);
      heading.prepend(button);
      if (term) {
        term.textContent = "?";
        term.ariaLabel = `Definition of ${title}`;
        heading.ariaLabel = title;
        heading.classList.toggle("word", !/\s/.test(title));
      }
      button.addEventListener("click", () => { // ascending, descending, as it was
        const next = { [`${column}a`]: `${column}d`, [`${column}d`]: "" };
        set("sort", next[get("sort")] ?? `${column}a`);
        sort();
      });
    });
    field.addEventListener("input", () => {
      set("filter", field.value);
      filter();
    });
    if (rows.length >= FILTERED_FROM) {
      const tools = Object.assign(document.createElement("div"), { className: "table-tools" });
      tools.append(field, count);
      region.before(tools);
    }

    function restore() {
      field.value = field.isConnected ? get("filter") : "";
      sort();
      filter();
    }
    addEventListener("marginbench:hash", restore);
    restore();
  }

  // Only what can be scrolled is a stop of the Tab key.
  function stops() {
    for (const region of document.querySelectorAll(".table")) {
      if (region.scrollWidth > region.clientWidth) region.setAttribute("tabindex", "0");
      else region.removeAttribute("tabindex");
    }
  }

  const counts = {};
  for (const table of document.querySelectorAll(".table > table")) {
    if (!table.tHead || !table.tBodies.length) continue;
    const anchor = table.closest("section")?.getAttribute("aria-labelledby") || "page";
    counts[anchor] = (counts[anchor] || 0) + 1;
    enhance(table, counts[anchor] > 1 ? `${anchor}-${counts[anchor]}` : anchor);
  }
  addEventListener("resize", stops);
  addEventListener("toggle", stops, true); // another table may be shown
  stops();
})();
