// Keeps the focus on the same element when htmx replaces a part of the page.
"use strict";

(() => {
  let focused = null; // the element, and its number among those with the same target or label

  const like = (element) =>
    [...document.querySelectorAll(element.tagName)].filter(
      ({ href, ariaLabel }) => href === element.href && ariaLabel === element.ariaLabel,
    );

  document.addEventListener("htmx:beforeSwap", () => {
    const element = document.activeElement;
    focused = element === document.body ? null : { element, number: like(element).indexOf(element) };
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!focused || focused.element.isConnected) return;
    like(focused.element)[focused.number]?.focus({ preventScroll: true });
    focused = null;
  });
})();
