// What a reader has chosen is kept in the part of the address behind "#", so that a copied address
// shows the same: "#findings", "#table-task-0=sort:2d" and "#findings&explore=task:digits" are all
// valid. The part without "=" is the anchor that the browser jumps to.
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

  function write(anchors) {
    const hash = [...anchors, ...chosen].join("&");
    const address = location.pathname + location.search + (hash ? `#${hash}` : "");
    try {
      history.replaceState(history.state, "", address);
    } catch {
      // A page inside another may not be allowed to change its address.
    }
  }

  // Null and the empty text remove the key.
  function set(key, value) {
    chosen = chosen.filter((part) => !part.startsWith(`${key}=`));
    if (value !== null && value !== "") {
      chosen.push(`${key}=${encodeURIComponent(value)}`);
    }
    write(split().filter(isAnchor));
  }

  function jump() {
    const anchor = split().find(isAnchor);
    const target = anchor && document.getElementById(decoded(anchor));
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
    const parts = split();
    const others = parts.filter((part) => !isAnchor(part));
    if (others.length) {
      chosen = others;
      dispatchEvent(new Event("marginbench:hash"));
    } else if (chosen.length) {
      write(parts);
    }
    jump();
  });
  return { get, set };
})();
