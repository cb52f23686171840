// Long contents of <details> are in <noscript>: they become elements when they are opened.
"use strict";

document.addEventListener(
  "toggle",
  ({ target }) => {
    const contents = target.querySelector(":scope > noscript");
    if (!contents) return;
    contents.insertAdjacentHTML("afterend", contents.innerHTML);
    contents.remove();
    htmx.process(target);
  },
  true, // the event does not bubble
);

// In swapped parts they are elements, as htmx parses without scripts.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  for (const contents of detail.elt.querySelectorAll("details > noscript")) {
    contents.textContent = contents.innerHTML;
  }
});
