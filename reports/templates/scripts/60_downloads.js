// Saves a figure as it is shown, as an SVG file that stands alone: light colours, a title, a legend.
(function () {
  const FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
  const MARGIN = 8, LINE = 18, KEY = 30, LETTER = 5.6;

  function element(name, attributes, text) {
    const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text) made.textContent = text;
    return made;
  }

  function words(x, y, text) {
    return element("text", { x: x, y: y, "font-size": "10px", fill: "#1f2328" }, text);
  }

  // What a reader has hidden is not saved.
  function shownCopy(svg) {
    const copy = svg.cloneNode(true);
    const originals = svg.querySelectorAll("g, path, use, text");
    copy.querySelectorAll("g, path, use, text").forEach(function (part, place) {
      if (getComputedStyle(originals[place]).display === "none") part.remove();
    });
    return copy;
  }

  function legendOf(figure) {
    const panels = figure.closest(".panels");
    const list = panels && panels.previousElementSibling;
    if (!list || !list.matches(".legend")) return [];
    return Array.from(list.children).filter(function (item) {
      return item.querySelector("svg") && item.querySelector("span") && getComputedStyle(item).display !== "none";
    });
  }

  // Puts the keys below the figure, row by row, and returns where they end.
  function addLegend(whole, items, width, top) {
    let x = MARGIN, y = top;
    items.forEach(function (item) {
      const label = item.querySelector("span").textContent.trim().replace(/\s+/g, " ");
      const needed = KEY + 6 + LETTER * label.length + 14;
      if (x > MARGIN && x + needed > width) { x = MARGIN; y += LINE; }
      const key = shownCopy(item.querySelector("svg"));
      const place = { x: x, y: y, width: KEY, height: 12 };
      for (const name in place) key.setAttribute(name, place[name]);
      whole.append(key, words(x + KEY + 6, y + 10, label));
      x += needed;
    });
    return items.length ? y + LINE : top;
  }

  function standAlone(figure, svg) {
    const box = svg.viewBox.baseVal;
    const whole = element("svg", { "font-family": FONT });
    const ground = element("rect", { width: "100%", height: "100%", fill: "#ffffff" });
    const caption = figure.querySelector("figcaption");
    const drawn = shownCopy(svg);
    const place = { x: 0, y: LINE + 2, width: box.width, height: box.height };
    for (const name in place) drawn.setAttribute(name, place[name]);
    whole.append(ground, words(MARGIN, 13, caption ? caption.textContent.trim() : ""), drawn);
    const end = addLegend(whole, legendOf(figure), box.width, LINE + box.height + 8);
    whole.setAttribute("viewBox", "0 0 " + box.width + " " + end);
    whole.setAttribute("width", box.width);
    whole.setAttribute("height", end);
    // The colour behind each custom property is that of the light scheme.
    const text = new XMLSerializer().serializeToString(whole);
    return text.replace(/var\(--sans, ?sans-serif\)/g, FONT).replace(/var\(--[\w-]+, ?([^()]+)\)/g, "$1");
  }

  function save(text, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }

  document.querySelectorAll(".save-figure").forEach(function (button) {
    button.addEventListener("click", function () {
      const figure = button.closest("figure");
      const svg = figure.querySelector("svg");
      if (svg) save(standAlone(figure, svg), figure.id + ".svg");
    });
  });
})();
