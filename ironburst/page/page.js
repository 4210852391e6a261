"use strict";
// Looks again every so many seconds; finds jobs while a person types. Without it the page stands as it was made.
(() => {
  const now = document.getElementById("now"), lost = document.getElementById("lost"), find = document.getElementById("q");
  const everyMs = 1000 * Number(document.body.dataset.live);
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll(".jobs tbody tr")) {
      const text = [...row.cells].slice(0, 4).map((cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  };
  let asking = 0;
  const look = async () => {
    const ask = ++asking, url = new URL("/now", location.href);
    url.searchParams.set("q", find.value);
    try {
      const answer = await fetch(url, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const html = await answer.text();
      if (ask !== asking) return;
      const shut = new Map([...now.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
      const at = now.contains(document.activeElement) ? document.activeElement : null;
      const same = at && [...now.querySelectorAll("a, summary, [tabindex]")].indexOf(at);
      now.innerHTML = html;
      for (const [id, open] of shut) {
        const each = document.getElementById(id);
        if (each) each.open = open;
      }
      if (at) now.querySelectorAll("a, summary, [tabindex]")[same]?.focus({ preventScroll: true });
      lost.hidden = true;
    } catch {
      if (ask === asking) lost.hidden = false;
    }
  };
  const reading = () => !getSelection().isCollapsed && now.contains(getSelection().anchorNode);
  let soon = 0;
  find.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(everyMs ? look : filter, 200);
  });
  find.form.addEventListener("submit", (event) => {
    event.preventDefault();
    everyMs ? look() : filter();
    document.getElementById("queue").scrollIntoView();
  });
  if (everyMs) {
    document.getElementById("reload").remove();
    setInterval(() => document.hidden || reading() || look(), everyMs);
    document.addEventListener("visibilitychange", () => document.hidden || look());
  }
})();
