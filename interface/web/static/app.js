// Keys, forms that fold, and local time on hovering. The page works without any of it.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape") {
    const open = document.querySelector("details.command[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    } else if (typing) {
      event.target.blur();
    }
    return;
  }
  if (typing) return;
  if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "?") {
    document.querySelector("footer").scrollIntoView();
    document.querySelector("footer").classList.toggle("lit");
  } else if (/^[a-z]$/.test(event.key)) {
    const link = document.querySelector(`nav a[data-key="${event.key}"]`);
    if (link) link.click();
  }
});

// One form is open at a time, and its reason is where one types.
document.addEventListener("toggle", (event) => {
  const opened = event.target;
  if (!opened.matches || !opened.matches("details.command") || !opened.open) return;
  document.querySelectorAll("details.command[open]").forEach((other) => {
    if (other !== opened) other.open = false;
  });
  const first = opened.querySelector("input:not([type=hidden]), select, textarea");
  if (first) first.focus();
}, true);

document.addEventListener("click", (event) => {
  if (event.target.closest("details.command")) return;
  document.querySelectorAll("details.command[open]").forEach((open) => { open.open = false; });
});

document.addEventListener("mouseover", (event) => {
  const time = event.target.closest && event.target.closest("time[datetime]:not([data-local])");
  if (!time) return;
  const moment = new Date(time.getAttribute("datetime"));
  if (!isNaN(moment)) time.title += ` · here ${moment.toLocaleString()}`;
  time.dataset.local = "";
});

// What nobody looks at is not asked for.
document.addEventListener("htmx:beforeRequest", (event) => {
  const trigger = event.target.getAttribute("hx-trigger") || "";
  if (document.hidden && trigger.includes("every")) event.preventDefault();
});

// The slider of time travel says where it stands while it is moved.
document.addEventListener("input", (event) => {
  const slider = event.target;
  if (!slider.matches || !slider.matches("input[type=range][data-from]")) return;
  const from = Number(slider.dataset.from), to = Number(slider.dataset.to);
  const at = new Date(from + (to - from) * (slider.value / slider.max));
  const shown = document.querySelector("output[for=" + slider.id + "]");
  if (shown) shown.textContent = at.toISOString().slice(0, 19).replace("T", " ");
});
