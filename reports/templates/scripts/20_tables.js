// Tables: sort by a column, filter the rows, choose the columns. Without the script they are plain.
// The choices are kept in the address: "table-task-0-sort=2d", "table-task-0-filter=smo",
// "table-task-0-hide=3.4" for the first table of the section "task-0".
marginbench.tables = (() => {
  const FILTERED_FROM = 9; // rows
  const CHOSEN_FROM = 8; // columns
  const collator = new Intl.Collator("en", { numeric: true });

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  // Numbers by their value and before all texts; what is absent comes last, whichever way.
  function keyOf(cell) {
    if (cell.dataset.value !== undefined) {
      return Number(cell.dataset.value);
    }
    const text = cell.textContent.trim();
    return text === "" || cell.querySelector(".absent") ? null : text;
  }
  const rank = (key) => (key === null ? 2 : typeof key === "string" ? 1 : 0);
  function compared(one, other, sign) {
    if (rank(one) !== rank(other)) {
      return rank(one) - rank(other);
    }
    if (one === null) {
      return 0;
    }
    return sign * (typeof one === "string" ? collator.compare(one, other) : one - other);
  }

  class Table {
    constructor(table, name) {
      this.name = name;
      this.label = table.parentElement.getAttribute("aria-label") || "the table";
      this.body = table.tBodies[0];
      this.rows = [...this.body.rows];
      this.headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
      this.titles = this.headings.map((heading) => heading.textContent.trim());
      this.groups = groupsOf(table);
      this.headings.forEach((heading, column) => this.addButton(heading, column));
      this.addTools(table.parentElement);
      this.restore();
    }

    get(what) {
      return marginbench.hash.get(`table-${this.name}-${what}`) || "";
    }

    set(what, value) {
      marginbench.hash.set(`table-${this.name}-${what}`, value);
    }

    addButton(heading, column) {
      const title = this.titles[column];
      const button = element("button", { type: "button", class: "sort" });
      const term = heading.querySelector("a.term");
      button.append(...(term || heading).childNodes);
      heading.prepend(button);
      if (term) {
        term.textContent = "?";
        term.setAttribute("aria-label", `Definition of ${title}`);
        heading.setAttribute("aria-label", title);
        heading.classList.toggle("word", !/\s/.test(title));
      }
      button.addEventListener("click", () => this.press(column));
    }

    // Ascending, descending, as it was.
    press(column) {
      const next = { [`${column}a`]: `${column}d`, [`${column}d`]: "" };
      const now = this.get("sort");
      this.set("sort", now in next ? next[now] : `${column}a`);
      this.sort();
    }

    sort() {
      const [, column, way] = /^(\d+)([ad])$/.exec(this.get("sort")) || [];
      const chosen = column !== undefined && Number(column) < this.headings.length;
      this.headings.forEach((heading) => heading.removeAttribute("aria-sort"));
      let rows = this.rows;
      if (chosen) {
        const sign = way === "a" ? 1 : -1;
        this.headings[column].setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const keys = new Map(rows.map((row) => [row, keyOf(row.cells[column])]));
        rows = [...rows].sort((one, other) => compared(keys.get(one), keys.get(other), sign));
      }
      this.body.append(...rows);
    }

    addTools(region) {
      const tools = element("div", { class: "table-tools" });
      if (this.rows.length >= FILTERED_FROM) {
        this.addFilter(tools);
      }
      if (this.headings.length >= CHOSEN_FROM) {
        this.addChoice(tools);
      }
      if (tools.childElementCount) {
        region.before(tools);
      }
    }

    addFilter(tools) {
      const words = { type: "search", placeholder: "Filter rows", spellcheck: "false" };
      this.field = element("input", { ...words, "aria-label": `Filter the rows of ${this.label}` });
      this.count = element("span", { class: "count", role: "status" });
      this.field.addEventListener("input", () => {
        this.set("filter", this.field.value);
        this.filter();
      });
      tools.append(this.field, this.count);
    }

    filter() {
      const wanted = this.field ? this.field.value.trim().toLowerCase() : "";
      let shown = 0;
      for (const row of this.rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      if (this.field) {
        this.count.textContent = wanted ? `${shown} of ${this.rows.length} rows` : "";
      }
    }

    addChoice(tools) {
      const group = { role: "group", "aria-label": `Columns of ${this.label}` };
      const list = element("div", group);
      this.boxes = this.titles.slice(1).map((title, place) => {
        const box = element("input", { type: "checkbox" });
        box.addEventListener("change", () => this.choose());
        list.append(element("label", {}, box, ` ${this.fullTitle(place + 1)}`));
        return box;
      });
      tools.append(element("details", { class: "columns" }, element("summary", {}, "Columns"), list));
    }

    // Two columns of different groups may have the same heading.
    fullTitle(column) {
      const title = this.titles[column];
      if (this.titles.indexOf(title) === this.titles.lastIndexOf(title)) {
        return title;
      }
      const group = this.groups.find((item) => item.first <= column && column <= item.last);
      return group && group.title ? `${title}, ${group.title}` : title;
    }

    choose() {
      const hidden = this.boxes.flatMap((box, place) => (box.checked ? [] : [place + 1]));
      this.set("hide", hidden.join("."));
      this.show();
    }

    show() {
      const hidden = new Set(this.get("hide").split(".").filter(Boolean).map(Number));
      hidden.delete(0); // the rows' own headings
      for (const cells of [this.headings, ...this.rows.map((row) => row.cells)]) {
        [...cells].forEach((cell, column) => {
          cell.hidden = hidden.has(column);
        });
      }
      for (const group of this.groups) {
        let width = 0;
        for (let column = group.first; column <= group.last; column += 1) {
          width += hidden.has(column) ? 0 : 1;
        }
        group.cell.hidden = width === 0;
        group.cell.colSpan = width || 1;
      }
      (this.boxes || []).forEach((box, place) => {
        box.checked = !hidden.has(place + 1);
      });
    }

    restore() {
      this.sort();
      if (this.field) {
        this.field.value = this.get("filter");
      }
      this.filter();
      this.show();
    }
  }

  function groupsOf(table) {
    if (table.tHead.rows.length < 2) {
      return [];
    }
    let next = 0;
    return [...table.tHead.rows[0].cells].map((cell) => {
      const first = next;
      next += cell.colSpan;
      return { cell, first, last: next - 1, title: cell.textContent.trim() };
    });
  }

  // Only what can be scrolled is a stop of the Tab key.
  function stops() {
    for (const region of document.querySelectorAll(".table")) {
      if (region.scrollWidth > region.clientWidth) {
        region.setAttribute("tabindex", "0");
      } else {
        region.removeAttribute("tabindex");
      }
    }
  }

  const counts = {};
  const drawn = [...document.querySelectorAll(".table > table")];
  const tables = drawn.filter((table) => table.tHead && table.tBodies.length).map((table) => {
    const section = table.closest("section");
    const anchor = (section && section.getAttribute("aria-labelledby")) || "page";
    counts[anchor] = (counts[anchor] || 0) + 1;
    return new Table(table, counts[anchor] > 1 ? `${anchor}-${counts[anchor]}` : anchor);
  });
  addEventListener("marginbench:hash", () => tables.forEach((table) => table.restore()));
  addEventListener("resize", stops);
  addEventListener("change", stops); // another table may be shown
  stops();
  return tables;
})();
