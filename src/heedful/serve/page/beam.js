"use strict";
// The other translations of a sentence, and the beam's hypotheses as they came, step by step.
globalThis.heedful ??= {};

// `at` are the elements; `picked(sentence, hypothesis)` is told when another translation is taken.
heedful.beam = (at, picked) => {
  let steps = [];
  let done = [];
  let current = 0;
  let several = false;
  let live = true;

  const element = (name, className, ...parts) => {
    const made = document.createElement(name);
    made.className = className;
    made.append(...parts);
    return made;
  };

  // A text in which only that stands out which another one does not have.
  const compared = (one, other) => {
    const said = element("span", "said");
    heedful.words.differing(one, other).forEach(({ text, same }, index) => {
      const gap = index ? " " : "";
      said.append(gap, same ? element("span", "same", text) : text);
    });
    return said;
  };

  const whole = (text) => element("span", "said", text || "\u2026");

  const begin = () => {
    steps = [];
    done = [];
    current = 0;
    several = false;
    live = true;
    at.alternatives.inert = true;
  };

  const clear = () => {
    begin();
    at.alternatives.hidden = true;
    at.follow.hidden = true;
  };

  const step = (event) => {
    (steps[event.sentence] ??= []).push(event);
    several ||= event.sentence > 0;
    // While texts grow, follow the sentence that is growing.
    if (live && !done[current] && steps[current]) return;
    if (live && steps[event.sentence]) current = event.sentence;
  };

  const settle = (event) => {
    done[event.sentence] = { ...event, chosen: 0 };
    several ||= event.sentence > 0;
  };

  const finish = () => {
    live = false;
    current = Math.max(done.findIndex(Boolean), 0);
    draw();
  };

  const pick = (index) => {
    if (index === current || !done[index]) return;
    current = index;
    draw();
  };

  const name = (label) => {
    const source = several ? done[current]?.source : "";
    label.hidden = !source;
    label.textContent = source ?? "";
  };

  const drawAlternatives = () => {
    at.alternatives.inert = false;
    const one = done[current];
    const found = one ? [one, ...(one.alternatives ?? [])] : [];
    at.alternatives.hidden = found.length < 2;
    if (found.length < 2) return;
    name(at.alternativesOf);
    const items = found.map((hypothesis, index) => {
      const said = index ? compared(one.text, hypothesis.text) : whole(hypothesis.text);
      const score = element("span", "number", heedful.words.signed(hypothesis.score));
      score.title = "Score: log-probability divided by the length penalty";
      const line = element("button", "line", said, score);
      line.type = "button";
      line.setAttribute("aria-pressed", String(index === one.chosen));
      line.addEventListener("click", () => {
        one.chosen = index;
        picked(current, hypothesis);
        drawAlternatives();
        at.alternativesList.children[index].firstElementChild.focus();
      });
      return element("li", "", line);
    });
    at.alternativesList.replaceChildren(...items);
  };

  const drawStep = () => {
    const all = steps[current] ?? [];
    const shown = all[at.step.valueAsNumber - 1];
    at.follow.hidden = !shown;
    if (!shown || !at.follow.open) return;
    name(at.followOf);
    const label = `step ${shown.step} of ${live && !done[current] ? "\u2026" : all.at(-1).step}`;
    at.stepName.textContent = label;
    at.step.setAttribute("aria-valuetext", label);
    const best = shown.beam[0];
    const items = shown.beam.map((hypothesis, index) => {
      const said = index ? compared(best.text, hypothesis.text) : whole(hypothesis.text);
      const sign = hypothesis.ended ? "ended \u00b7 " : "";
      const number = `${sign}${heedful.words.signed(hypothesis.log_probability)}`;
      const share = element("span", "share", document.createElement("i"));
      const relative = Math.exp(hypothesis.log_probability - best.log_probability);
      share.firstChild.style.width = `${(100 * Math.min(relative, 1)).toFixed(1)}%`;
      const score = element("span", "number", number);
      score.title = "Natural logarithm of its probability so far";
      return element("li", "line", said, score, share);
    });
    at.followList.replaceChildren(...items);
  };

  // While hypotheses come, the newest are shown; afterwards the slider goes through them.
  const draw = () => {
    const last = steps[current]?.length ?? 0;
    at.step.max = Math.max(last, 1);
    at.step.value = Math.max(last, 1);
    drawStep();
    if (!live) drawAlternatives();
  };

  at.step.addEventListener("input", drawStep);
  at.follow.addEventListener("toggle", drawStep);

  return { begin, clear, step, settle, finish, pick, draw };
};
