"use strict";
// A click on the head of a column sorts by it: better first, then the other way round; rows without a value stay last.
function key(row, place) {
  if (!row.cells[place]) return null;  // a model that failed has one cell for all columns
  const told = row.cells[place].dataset.value;
  return told === undefined ? row.cells[place].textContent.toLowerCase() : told === "" ? null : Number(told);
}
function sort(head) {
  const table = head.closest("table"), up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row) => [key(row, head.cellIndex), row]);
  rows.sort(([a], [b]) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * (up ? 1 : -1)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}
for (const button of document.querySelectorAll(".sort")) button.addEventListener("click", () => sort(button.closest("th")));
