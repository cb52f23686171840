// Sorts tables with data-sortable by a click on a heading; a refresh keeps the order.
"use strict";

(() => {
  const chosen = new Map(); // caption to { column, isDescending }

  function number(cell) {
    const value = Number.parseFloat((cell.querySelector("data")?.value ?? cell.textContent).replaceAll(",", ""));
    return Number.isNaN(value) ? -Infinity : value;
  }

  function sort(table) {
    const choice = chosen.get(table.caption.textContent);
    if (!choice) return;
    const { column, isDescending } = choice;
    const isNumeric = table.tHead.rows[0].cells[column].classList.contains("numeric");
    const compare = isNumeric
      ? (a, b) => number(a.cells[column]) - number(b.cells[column])
      : (a, b) => a.cells[column].textContent.trim().localeCompare(b.cells[column].textContent.trim());
    const rows = [...table.tBodies[0].rows].sort(compare);
    table.tBodies[0].append(...(isDescending ? rows.reverse() : rows));
    [...table.tHead.rows[0].cells].forEach((cell, n) => {
      if (n === column) cell.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }

  // Headings become buttons, so that the keyboard reaches them.
  function prepare(table) {
    for (const cell of table.tHead.rows[0].cells) {
      if (cell.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "heading";
      button.append(...cell.childNodes);
      cell.append(button);
    }
    sort(table);
  }

  function prepareAll() {
    document.querySelectorAll("table[data-sortable]").forEach(prepare);
  }

  document.addEventListener("click", ({ target }) => {
    const cell = target.closest("table[data-sortable] th button.heading")?.parentElement;
    if (!cell) return;
    const table = cell.closest("table");
    const before = chosen.get(table.caption.textContent);
    const isSame = before?.column === cell.cellIndex;
    const isDescending = isSame ? !before.isDescending : cell.classList.contains("numeric");
    chosen.set(table.caption.textContent, { column: cell.cellIndex, isDescending });
    sort(table);
  });
  document.addEventListener("figureschange", prepareAll);
  document.addEventListener("htmx:afterSettle", prepareAll);
  prepareAll();
})();
