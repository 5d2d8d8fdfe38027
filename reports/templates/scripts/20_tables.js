// Tables: sort by a column, filter the rows. Without the script they are plain.
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

  function enhance(table) {
    const [body, region] = [table.tBodies[0], table.parentElement];
    const rows = [...body.rows];
    const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const field = Object.assign(document.createElement("input"), {
      type: "search", placeholder: "Filter rows", spellcheck: false,
      ariaLabel: `Filter the rows of ${region.getAttribute("aria-label") || "the table"}`,
    });
    const count = Object.assign(document.createElement("span"), { className: "count", role: "status" });

    function sort(column, way) {
      for (const heading of headings) heading.removeAttribute("aria-sort");
      if (!way) return body.append(...rows);
      headings[column].setAttribute("aria-sort", way);
      const keys = new Map(rows.map((row) => [row, keyOf(row.cells[column])]));
      const order = (one, other) => compared(keys.get(one), keys.get(other), way === "ascending" ? 1 : -1);
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
        sort(column, { ascending: "descending", descending: "" }[heading.getAttribute("aria-sort")] ?? "ascending");
      });
    });
    field.addEventListener("input", filter);
    if (rows.length >= FILTERED_FROM) {
      const tools = Object.assign(document.createElement("div"), { className: "table-tools" });
      tools.append(field, count);
      region.before(tools);
    }
  }

  // Only what can be scrolled is a stop of the Tab key.
  function stops() {
    for (const region of document.querySelectorAll(".table")) {
      if (region.scrollWidth > region.clientWidth) region.setAttribute("tabindex", "0");
      else region.removeAttribute("tabindex");
    }
  }

  for (const table of document.querySelectorAll(".table > table")) {
    if (table.tHead && table.tBodies.length) enhance(table);
  }
  addEventListener("resize", stops);
  addEventListener("toggle", stops, true); // another table may be shown
  stops();
})();
