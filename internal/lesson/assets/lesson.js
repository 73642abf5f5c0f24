// What lessons, checks and cells do in a browser.

import {post} from "/assets/lab.js";

// A line of a listing shows its explanation, and hides it again.
for (const button of document.querySelectorAll("[data-listing] button[data-line]")) {
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    document.getElementById(button.getAttribute("aria-controls")).hidden = open;
  });
}

// A lesson that was read.
for (const button of document.querySelectorAll("[data-action=done]")) {
  const lesson = button.closest("[data-lesson]");
  const status = lesson.querySelector("[data-value=progress]");
  button.addEventListener("click", () => post(`/learn/${lesson.dataset.lesson}/read`)
    .then(() => { button.setAttribute("aria-pressed", "true"); status.textContent = "read"; })
    .catch(error => { status.textContent = error.message; }));
}

// A cell runs its program, shows what it prints, and can be stopped.
function cell(form) {
  const log = form.querySelector("[role=log]"), exit = form.querySelector("[data-exit]");
  const start = form.querySelector("[data-action=run]"), stop = form.querySelector("[data-action=stop]");
  let id, events;
  const ended = (status, text) => {
    events?.close();
    start.disabled = false;
    stop.disabled = true;
    exit.dataset.exit = status;
    exit.textContent = text;
  };
  start.addEventListener("click", async () => {
    if (!form.reportValidity()) return;
    log.textContent = "";
    exit.dataset.exit = "";
    exit.textContent = "running";
    start.disabled = true;
    const setting = {numbers: {}, device: "cpu", wrong: false};
    for (const input of form.querySelectorAll("[data-param]")) {
      const name = input.dataset.param;
      if (name === "device") setting.device = input.value;
      else if (name === "wrong") setting.wrong = input.checked;
      else setting.numbers[name] = Number(input.value);
    }
    try {
      ({id} = await post(`/api/cells/${form.dataset.cell}/runs`, setting));
    } catch (error) {
      ended("error", error.message);
      return;
    }
    stop.disabled = false;
    events = new EventSource(`/api/runs/${id}/events`);
    events.onmessage = message => {
      const e = JSON.parse(message.data);
      if (e.text) log.textContent += e.text;
      if (e.exit !== undefined) ended(e.exit, e.exit === 0 ? "done" : `ended with status ${e.exit}`);
    };
    events.onerror = () => ended("error", "the lab does not answer");
  });
  stop.addEventListener("click", () => fetch(`/api/runs/${id}`, {method: "DELETE"}));
}
document.querySelectorAll("[data-cell]").forEach(cell);

// A check is scored once all questions are answered; what is wrong leads to its passage.
function quiz(form) {
  const questions = [...form.querySelectorAll("[data-question]")];
  const check = form.querySelector("[data-action=check]");
  const given = () => questions.map(q => q.querySelector("input:checked"));
  form.addEventListener("change", () => { check.disabled = !given().every(Boolean); });
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const score = form.querySelector("[data-value=score]"), complete = form.querySelector(".complete");
    try {
      const result = await post(`/quiz/${form.dataset.quiz}`, {answers: given().map(input => Number(input.value))});
      score.dataset.raw = result.score;
      score.textContent = `${result.right} of ${result.of}`;
      complete.hidden = !result.complete;
      form.toggleAttribute("data-complete", result.complete);
      result.answers.forEach((answer, i) => mark(questions[i], answer));
    } catch (error) {
      score.textContent = error.message;
    }
  });
}

function mark(question, answer) {
  const result = question.querySelector(".result");
  result.hidden = false;
  question.dataset.state = answer.right ? "right" : "wrong";
  result.textContent = `${answer.right ? "Right" : "Not right"}. ${answer.why} `;
  if (answer.right) return;
  const link = document.createElement("a");
  link.href = `/learn/${answer.passage}`;
  link.dataset.passage = answer.passage;
  link.textContent = "Read the passage";
  result.append(link);
}
document.querySelectorAll("form[data-quiz]").forEach(quiz);

// A puzzle's kernel is run on a simulated GPU, and what its tests say is shown.
function puzzle(form) {
  const log = form.querySelector("[role=log]"), status = form.querySelector("[data-value=pass]");
  form.addEventListener("submit", async event => {
    event.preventDefault();
    log.replaceChildren();
    status.textContent = "running";
    try {
      const report = await post(`/exercise/${form.dataset.puzzle}/check`, {ptx: form.elements.ptx.value});
      for (const test of report.tests) {
        const line = document.createElement("p");
        line.textContent = `${test.pass ? "pass" : "FAIL"} ${test.name} ${test.output ?? ""}`;
        log.append(line);
      }
      status.dataset.raw = report.pass;
      status.textContent = report.pass ? "passes" : `hint: ${report.hint}`;
    } catch (error) {
      status.textContent = error.message;
    }
  });
}
document.querySelectorAll("form[data-puzzle]").forEach(puzzle);
