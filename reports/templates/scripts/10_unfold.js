// A link to what is folded unfolds it.
(() => {
  function unfold() {
    const target = document.getElementById(location.hash.slice(1));
    for (let part = target; part; part = part.parentElement) if (part.matches("details")) part.open = true;
    target?.scrollIntoView();
  }
  addEventListener("DOMContentLoaded", unfold);
  addEventListener("hashchange", unfold);
})();
