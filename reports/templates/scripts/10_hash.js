// What a reader has chosen is kept in the part of the address behind "#", beside the anchor that the
// browser jumps to, so that a copied address shows the same: "#findings&table-solvers-sort=2d".
const marginbench = {};
marginbench.hash = (() => {
  function parts() {
    const choices = new URLSearchParams(location.hash.slice(1));
    const [anchor] = [...choices].find(([, value]) => !value) || [""];
    choices.delete(anchor);
    return { anchor, choices };
  }
  let { choices } = parts();

  function write() {
    const hash = [parts().anchor, String(choices)].filter(Boolean).join("&");
    try {
      history.replaceState(null, "", location.pathname + location.search + (hash ? `#${hash}` : ""));
    } catch {
      // A page inside another may not be allowed to change its address.
    }
  }

  function set(key, value) {
    choices.delete(key);
    if (value) choices.append(key, value);
    write();
  }

  // The browser looks for an anchor named like the whole hash, and finds none beside choices.
  function jump() {
    const target = document.getElementById(parts().anchor);
    for (let part = target; part; part = part.parentElement) if (part.matches("details")) part.open = true;
    target?.scrollIntoView();
  }

  addEventListener("DOMContentLoaded", jump);
  addEventListener("hashchange", () => {
    const asked = parts().choices;
    if (String(asked)) {
      choices = asked;
      dispatchEvent(new Event("marginbench:hash"));
    } else {
      write(); // a jump to an anchor keeps what was chosen
    }
    jump();
  });
  return { get: (key) => choices.get(key) || "", set };
})();
