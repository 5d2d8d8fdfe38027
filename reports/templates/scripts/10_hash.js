// What a reader has chosen is kept in the part of the address behind "#", so that a copied address
// shows the same: "#findings", "#table-solvers-sort=2d" and "#findings&explore=task:digits" are all
// valid. The part without "=" is the anchor that the browser jumps to. Entries of the history that
// were made here carry the choices with them; others are jumps, which keep what was chosen.
const marginbench = {};
marginbench.hash = (() => {
  const split = () => location.hash.slice(1).split("&").filter(Boolean);
  const isAnchor = (part) => !part.includes("=");
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  // The choices survive a jump to an anchor, which replaces the whole hash.
  let chosen = split().filter((part) => !isAnchor(part));

  function get(key) {
    const part = chosen.find((item) => item.startsWith(`${key}=`));
    return part === undefined ? null : decoded(part.slice(key.length + 1));
  }

  const anchor = () => split().find(isAnchor) ?? null;
  const encoded = (text) =>
    text.replace(/[%&=#\s]|[^\x21-\x7e]/gu, (letter) => encodeURIComponent(letter));

  function write(anchors, asEntry = false) {
    const hash = [...anchors, ...chosen].join("&");
    const address = location.pathname + location.search + (hash ? `#${hash}` : "");
    try {
      history[asEntry ? "pushState" : "replaceState"]({ chosen }, "", address);
    } catch {
      // A page inside another may not be allowed to change its address.
    }
  }

  // Null and the empty text remove the key; as an entry of the history it can be taken back.
  function set(key, value, asEntry = false) {
    chosen = chosen.filter((part) => !part.startsWith(`${key}=`));
    if (value !== null && value !== "") {
      chosen.push(`${key}=${encoded(value)}`);
    }
    write(split().filter(isAnchor), asEntry);
  }

  function jump() {
    const name = anchor();
    const target = name && document.getElementById(decoded(name));
    if (!target) {
      return;
    }
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) {
      part.open = true;
    }
    target.scrollIntoView();
  }

  // The browser looks for an anchor named like the whole hash, and finds none beside choices.
  addEventListener("DOMContentLoaded", jump);
  addEventListener("hashchange", () => {
    const others = split().filter((part) => !isAnchor(part));
    const known = history.state && history.state.chosen;
    if (known || others.length) {
      chosen = known || others;
      dispatchEvent(new Event("marginbench:hash"));
    } else if (chosen.length) {
      write(split());
    }
    jump();
  });
  write(split().filter(isAnchor));
  return { get, set, anchor };
})();
