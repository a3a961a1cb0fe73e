// Labels by keyboard and without loading the page again. Without this script the buttons work as forms.
"use strict";

const cards = () => Array.from(document.querySelectorAll(".card"));
const say = (text) => { document.getElementById("status").textContent = text; };

function current() {
  return document.activeElement?.closest(".card") ?? null;
}

function go(step) {
  const all = cards();
  const at = all.indexOf(current());
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

async function send(form, button) {
  const card = form.closest(".card");
  // Answers can come in another order than the labels were sent in: the page would show an earlier one.
  if (card.getAttribute("aria-busy") === "true") return;
  const fields = new URLSearchParams(new FormData(form));
  fields.set("action", button.value);
  card.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body: fields, headers: { "X-Part": "1" } });
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".card");
    if (!answer.ok || answer.redirected || !found) throw new Error(String(answer.status));
    const isOpen = card.querySelector(".why")?.open;
    card.replaceWith(found);
    if (isOpen) found.querySelector(".why").open = true;
    found.focus({ preventScroll: true });
    say(found.dataset.message);
  } catch {
    card.removeAttribute("aria-busy");
    say(document.body.dataset.failed);
  }
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches(".labels") || !event.submitter) return;
  event.preventDefault();
  send(event.target, event.submitter);
});

const ACTIONS = { y: "confirm", n: "reject", u: "undo" };

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input:not([type=hidden]), select, textarea");
  if (isTyping || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (event.key === "j" || event.key === "k") {
    event.preventDefault();
    go(event.key === "j" ? 1 : -1);
    return;
  }
  if (event.repeat) return;
  const button = current()?.querySelector(`button[value="${ACTIONS[event.key]}"]:not([disabled])`);
  if (button) {
    event.preventDefault();
    button.form.requestSubmit(button);
  }
});
