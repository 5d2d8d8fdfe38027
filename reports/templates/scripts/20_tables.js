// Tables: sort by a column, filter the rows, choose the columns. Without the script they are plain.
// The choices are kept in the address: "table-task-0-sort=2d", "table-task-0-filter=smo",
// "table-task-0-hide=3.4" for the first table of the section "task-0".
(() => {
  const FILTERED_FROM = 9; // rows
  const CHOSEN_FROM = 8; // columns
  const collator = new Intl.Collator("en", { numeric: true });

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Numbers by their value and before all texts; what is absent comes last, whichever way.
  function keyOf(cell) {
    const { value } = cell.dataset;
    const text = cell.textContent.trim();
    if (value !== undefined) return [0, Number(value)];
    return text === "" || cell.querySelector(".absent") ? [2, 0] : [1, text];
  }
  const compared = ([one, left], [other, right], sign) =>
    one - other || sign * (one === 1 ? collator.compare(left, right) : left - right);

  /** The headings of groups of columns, with their first and last column. */
  function groupsOf(head) {
    let next = 0;
    return [...(head.rows.length > 1 ? head.rows[0].cells : [])].map((cell) => {
      const first = next;
      next += cell.colSpan;
      return { cell, first, last: next - 1, title: cell.textContent.trim() };
    });
  }

  function enhance(table, name) {
    const [body, region] = [table.tBodies[0], table.parentElement];
    const rows = [...body.rows];
    const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const titles = headings.map((heading) => heading.textContent.trim());
    const groups = groupsOf(table.tHead);
    const label = region.getAttribute("aria-label") || "the table";
    const get = (what) => marginbench.hash.get(`table-${name}-${what}`) || "";
    const set = (what, value) => marginbench.hash.set(`table-${name}-${what}`, value);
    const tools = element("div", { class: "table-tools" });
    const field = element("input", {
      type: "search", placeholder: "Filter rows", spellcheck: "false",
      "aria-label": `Filter the rows of ${label}`,
    });
    const count = element("span", { class: "count", role: "status" });
    const boxes = titles.map(() => element("input", { type: "checkbox" }));

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

    function choose() {
      const hidden = new Set(get("hide").split(".").filter(Boolean).map(Number));
      hidden.delete(0); // the rows' own headings
      for (const cells of [headings, ...rows.map((row) => [...row.cells])]) {
        cells.forEach((cell, column) => { cell.hidden = hidden.has(column); });
      }
      for (const { cell, first, last } of groups) {
        const shown = titles.filter((_, column) => column >= first && column <= last && !hidden.has(column));
        cell.hidden = !shown.length;
        cell.colSpan = shown.length || 1;
      }
      boxes.forEach((box, column) => { box.checked = !hidden.has(column); });
    }

    // Two columns of different groups may have the same heading.
    function fullTitle(column) {
      const title = titles[column];
      const group = groups.find(({ first, last }) => first <= column && column <= last);
      const alone = titles.indexOf(title) === titles.lastIndexOf(title);
      return alone || !group?.title ? title : `${title}, ${group.title}`;
    }

    headings.forEach((heading, column) => {
      const button = element("button", { type: "button", class: "sort" });
      const term = heading.querySelector("a.term");
      button.append(...(term || heading).childNodes);
      heading.prepend(button);
      if (term) {
        term.textContent = "?";
        term.setAttribute("aria-label", `Definition of ${titles[column]}`);
        heading.setAttribute("aria-label", titles[column]);
        heading.classList.toggle("word", !/\s/.test(titles[column]));
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
    if (rows.length >= FILTERED_FROM) tools.append(field, count);
    if (headings.length >= CHOSEN_FROM) {
      const labels = boxes.map((box, column) => element("label", {}, box, ` ${fullTitle(column)}`));
      const list = element("div", { role: "group", "aria-label": `Columns of ${label}` }, ...labels.slice(1));
      list.addEventListener("change", () => {
        set("hide", titles.map((_, column) => column).filter((column) => !boxes[column].checked).join("."));
        choose();
      });
      tools.append(element("details", { class: "columns" }, element("summary", {}, "Columns"), list));
    }
    if (tools.childElementCount) region.before(tools);

    function restore() {
      field.value = field.isConnected ? get("filter") : "";
      [sort, filter, choose].forEach((step) => step());
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
  addEventListener("change", stops); // another table may be shown
  stops();
})();
