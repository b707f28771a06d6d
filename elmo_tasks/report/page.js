"use strict";
// The filters of the run list. What is chosen stands in the address (#task=ner&text=...), to be kept or passed on.
const form = document.getElementById("filters");
const runs = [...document.querySelectorAll("details.run")];
const texts = runs.map((run) => run.textContent.toLowerCase());

function show() {
  const wanted = Object.fromEntries(new FormData(form));
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  runs.forEach((run, i) => {
    const chosen = Object.keys(wanted).every((key) => key === "text" || !wanted[key] || run.dataset[key] === wanted[key]);
    run.hidden = !(chosen && words.every((word) => texts[i].includes(word)));
    shown += !run.hidden;
  });
  document.getElementById("shown").textContent = `${shown} of ${runs.length} runs`;
}

function readAddress() {
  if (!location.hash.includes("=")) return; // a link to a section
  const given = new URLSearchParams(location.hash.slice(1));
  for (const field of form.querySelectorAll("[name]")) field.value = given.get(field.name) ?? "";
  show();
  document.getElementById("runs").scrollIntoView();
}

function writeAddress() {
  const kept = [...new FormData(form)].filter(([, value]) => value);
  history.replaceState(null, "", kept.length ? `#${new URLSearchParams(kept)}` : "#runs");
  show();
}

form.addEventListener("input", writeAddress);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(writeAddress));
window.addEventListener("hashchange", readAddress);
readAddress();
