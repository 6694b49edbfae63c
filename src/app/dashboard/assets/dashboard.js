// Loads the page again when the server announces a change. Without this file every page works, too.
"use strict";
(() => {
  const status = document.getElementById("live");
  let source = null;
  let pending = false;

  const busy = () => {
    const focused = document.activeElement;
    const editing = focused && focused.closest && focused.closest("form");
    const selecting = String(document.getSelection()).length > 0;
    const open = document.querySelector("main details[open]");
    return editing || selecting || open;
  };

  const say = (text) => {
    if (status) status.textContent = text;
  };

  const postponed = () => {
    if (!busy()) return false;
    pending = true;
    say("Changed. Load the page again to see it.");
    return true;
  };

  // What a focused element is called in the next version of the page: the focus returns to it.
  const focusKey = (element) =>
    element && (element.getAttribute("href") || element.id || element.getAttribute("aria-label"));

  const update = async () => {
    if (postponed()) return;
    pending = false;
    const response = await fetch(location.href, { credentials: "same-origin" });
    if (!response.ok) {
      say("Not connected");
      return;
    }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    // Somebody may have begun to write since the request.
    if (postponed()) return;
    const next = page.getElementById("main");
    const nav = page.querySelector("header nav");
    const focused = focusKey(document.activeElement);
    const scrolled = Array.from(document.querySelectorAll(".scroll"), (it) => it.scrollLeft);
    if (next) document.getElementById("main").replaceWith(next);
    if (nav) document.querySelector("header nav").replaceWith(nav);
    document.querySelectorAll(".scroll").forEach((it, at) => { it.scrollLeft = scrolled[at] || 0; });
    if (focused) {
      const again = Array.from(document.querySelectorAll("a, main, [tabindex]")).find((it) => focusKey(it) === focused);
      if (again) again.focus({ preventScroll: true });
    }
    say("Live");
  };

  // A browser opens few connections to one host, so a hidden page closes its own.
  const connect = () => {
    if (source || document.hidden) return;
    source = new EventSource("/events");
    source.addEventListener("open", () => say("Live"));
    source.addEventListener("changed", () => update().catch(() => say("Not connected")));
    source.addEventListener("error", () => say("Not connected"));
  };

  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else {
      connect();
      update().catch(() => say("Not connected"));
    }
  });
  document.addEventListener("focusout", () => {
    if (pending) setTimeout(() => update().catch(() => say("Not connected")), 500);
  });
  connect();
})();
