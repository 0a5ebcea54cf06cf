"use strict";
// Each figure is drawn from the JSON beside it once it can be seen: a closed section has no width to draw in.
function draw(figure) {
  if (figure.dataset.drawn) return;
  figure.dataset.drawn = "yes";
  const held = JSON.parse(document.getElementById(figure.dataset.figure).textContent);
  const { data, layout } = held.figure, narrow = figure.clientWidth < 600;
  if (narrow) {
    layout.margin = Object.assign(layout.margin || {}, { l: 44, r: 8 });
    if (held.narrow.length) layout.yaxis.ticktext = held.narrow;
  }
  Plotly.newPlot(figure, data, layout, { responsive: true, displaylogo: false, displayModeBar: narrow ? false : "hover" });
}
for (const figure of document.querySelectorAll(".figure")) {
  const closed = figure.closest("details:not([open])");
  if (closed) closed.addEventListener("toggle", () => draw(figure), { once: true });
  else draw(figure);
}
// A click on the head of a column sorts by it: better first, then the other way round; rows without a value stay last.
function key(row, place) {
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
