// What a reader has chosen is kept in the part of the address behind "#", beside the anchor that the
// browser jumps to, so that a copied address shows the same: "#findings&table-solvers-sort=2d".
const marginbench = {};
marginbench.hash = (() => {
  const parts = () => location.hash.slice(1).split("&").filter(Boolean);
  const isChoice = (part) => part.includes("=");
  const anchors = () => parts().filter((part) => !isChoice(part));
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const encoded = (text) =>
    text.replace(/[%&=#\s]|[^\x21-\x7e]/gu, (letter) => encodeURIComponent(letter));
  let chosen = parts().filter(isChoice);

  function get(key) {
    const part = chosen.find((item) => item.startsWith(`${key}=`));
    return part === undefined ? null : decoded(part.slice(key.length + 1));
  }

  function write() {
    const hash = [...anchors(), ...chosen].join("&");
    try {
      history.replaceState(null, "", location.pathname + location.search + (hash ? `#${hash}` : ""));
    } catch {
      // A page inside another may not be allowed to change its address.
    }
  }

  function set(key, value) {
    chosen = chosen.filter((part) => !part.startsWith(`${key}=`));
    if (value) chosen.push(`${key}=${encoded(value)}`);
    write();
  }

  // The browser looks for an anchor named like the whole hash, and finds none beside choices.
  function jump() {
    const target = document.getElementById(decoded(anchors()[0] || ""));
    for (let part = target; part; part = part.parentElement) if (part.matches("details")) part.open = true;
    target?.scrollIntoView();
  }

  addEventListener("DOMContentLoaded", jump);
  addEventListener("hashchange", () => {
    const asked = parts().filter(isChoice);
    if (asked.length) {
      chosen = asked;
      dispatchEvent(new Event("marginbench:hash"));
    } else {
      write(); // a jump to an anchor keeps what was chosen
    }
    jump();
  });
  return { get, set };
})();
