"use strict";
// Filters for runs, lines of tables and figures; and tables that are sorted by a click on a heading.
// What is chosen stands in the address (#task=ner&text=...), to be kept or passed on.
const form = document.getElementById("filters");
const runs = [...document.querySelectorAll("details.run")];
const texts = runs.map((run) => run.textContent.toLowerCase());
const others = [...document.querySelectorAll("tbody tr[data-task], figure.drawing[data-task], svg [data-task]")];

function fits(element, wanted) {
  return Object.entries(wanted).every(([key, value]) => !value || !(key in element.dataset) || element.dataset[key] === value);
}

function show() {
  const { text, ...wanted } = Object.fromEntries(new FormData(form));
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  runs.forEach((run, i) => {
    run.hidden = !(fits(run, wanted) && words.every((word) => texts[i].includes(word)));
    shown += !run.hidden;
  });
  for (const element of others) element.toggleAttribute("hidden", !fits(element, wanted)); // SVG has no .hidden
  document.getElementById("shown").textContent = `${shown} of ${runs.length} runs`;
}

function readAddress() {
  if (!location.hash.includes("=")) return; // a link to a section
  const given = new URLSearchParams(location.hash.slice(1));
  for (const field of form.querySelectorAll("[name]")) field.value = given.get(field.name) ?? "";
  show();
}

function writeAddress() {
  const kept = [...new FormData(form)].filter(([, value]) => value);
  history.replaceState(null, "", kept.length ? `#${new URLSearchParams(kept)}` : "#");
  show();
}

function compare(a, b) {
  const [x, y] = [a, b].map((text) => parseFloat(text.replaceAll(",", "")));
  const [noX, noY] = [x, y].map(Number.isNaN);
  if (noX && noY) return a.localeCompare(b);
  return noX - noY || x - y; // what is no number stands last
}

function sortBy(heading) {
  const table = heading.closest("table");
  const column = [...heading.parentNode.children].indexOf(heading);
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const lines = [...table.tBodies[0].rows];
  lines.sort((a, b) => (down ? -1 : 1) * compare(a.cells[column].textContent, b.cells[column].textContent));
  table.tBodies[0].append(...lines);
}

for (const heading of document.querySelectorAll("main > section > .grid th")) {
  const button = document.createElement("button");
  button.className = "sort";
  button.append(...heading.childNodes);
  button.addEventListener("click", () => sortBy(heading));
  heading.append(button);
}
form.addEventListener("input", writeAddress);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(writeAddress));
window.addEventListener("hashchange", readAddress);
readAddress();
