// "/" focuses the search box, except while typing.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, [contenteditable]")) return;
  const box = document.querySelector("[data-search]");
  if (!box) return;
  event.preventDefault();
  box.focus();
  box.select();
});
