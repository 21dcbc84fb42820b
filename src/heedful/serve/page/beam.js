"use strict";
// The alternatives of a sentence, and the hypotheses of the beam at each step of the search.
globalThis.heedful ??= {};

// `onPick(sentence, hypothesis)` is called when the user takes another translation.
heedful.beam = (elements, onPick) => {
  let steps = [];
  let done = [];
  let current = 0;
  let hasSeveralSentences = false;
  let live = true;

  const element = (name, className, ...parts) => {
    const node = document.createElement(name);
    node.className = className;
    node.append(...parts);
    return node;
  };

  // `other` with the words that it shares with `one` in a paler color.
  const compared = (one, other) => {
    const content = element("span", "hypothesis");
    heedful.words.differing(one, other).forEach(({ text, same }, index) => {
      const gap = index ? " " : "";
      content.append(gap, same ? element("span", "same", text) : text);
    });
    return content;
  };

  const plain = (text) => element("span", "hypothesis", text || "\u2026");

  const begin = () => {
    steps = [];
    done = [];
    current = 0;
    hasSeveralSentences = false;
    live = true;
    elements.alternatives.inert = true;
  };

  const clear = () => {
    begin();
    elements.alternatives.hidden = true;
    elements.follow.hidden = true;
  };

  const step = (event) => {
    (steps[event.sentence] ??= []).push(event);
    hasSeveralSentences ||= event.sentence > 0;
    // During the search, show the sentence that is being translated.
    if (live && !done[current] && steps[current]) return;
    if (live && steps[event.sentence]) current = event.sentence;
  };

  const settle = (event) => {
    done[event.sentence] = { ...event, chosen: 0 };
    hasSeveralSentences ||= event.sentence > 0;
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
    const source = hasSeveralSentences ? done[current]?.source : "";
    label.hidden = !source;
    label.textContent = source ?? "";
  };

  const drawAlternatives = () => {
    elements.alternatives.inert = false;
    const sentence = done[current];
    const hypotheses = sentence ? [sentence, ...(sentence.alternatives ?? [])] : [];
    elements.alternatives.hidden = hypotheses.length < 2;
    if (hypotheses.length < 2) return;
    name(elements.alternativesOf);
    const items = hypotheses.map((hypothesis, index) => {
      const content = index ? compared(sentence.text, hypothesis.text) : plain(hypothesis.text);
      const score = element("span", "number", heedful.words.signed(hypothesis.score));
      score.title = "Score: log-probability divided by the length penalty, plus any coverage penalty";
      const line = element("button", "line", content, score);
      line.type = "button";
      line.setAttribute("aria-pressed", String(index === sentence.chosen));
      line.addEventListener("click", () => {
        sentence.chosen = index;
        onPick(current, hypothesis);
        drawAlternatives();
        elements.alternativesList.children[index].firstElementChild.focus();
      });
      return element("li", "", line);
    });
    elements.alternativesList.replaceChildren(...items);
  };

  const drawStep = () => {
    const all = steps[current] ?? [];
    const shown = all[elements.step.valueAsNumber - 1];
    elements.follow.hidden = !shown;
    if (!shown || !elements.follow.open) return;
    name(elements.followOf);
    const label = `step ${shown.step} of ${live && !done[current] ? "\u2026" : all.at(-1).step}`;
    elements.stepName.textContent = label;
    elements.step.setAttribute("aria-valuetext", label);
    const best = shown.beam[0];
    const items = shown.beam.map((hypothesis, index) => {
      const content = index ? compared(best.text, hypothesis.text) : plain(hypothesis.text);
      const sign = hypothesis.ended ? "ended \u00b7 " : "";
      const number = `${sign}${heedful.words.signed(hypothesis.log_probability)}`;
      const share = element("span", "share", document.createElement("i"));
      const relative = Math.exp(hypothesis.log_probability - best.log_probability);
      share.firstChild.style.width = `${(100 * Math.min(relative, 1)).toFixed(1)}%`;
      const score = element("span", "number", number);
      score.title = "Natural logarithm of its probability so far";
      return element("li", "line", content, score, share);
    });
    elements.followList.replaceChildren(...items);
  };

  // During the search the newest step is shown; afterwards the slider selects one.
  const draw = () => {
    const last = steps[current]?.length ?? 0;
    elements.step.max = Math.max(last, 1);
    elements.step.value = Math.max(last, 1);
    drawStep();
    if (!live) drawAlternatives();
  };

  elements.step.addEventListener("input", drawStep);
  elements.follow.addEventListener("toggle", drawStep);

  return { begin, clear, step, settle, finish, pick, draw };
};
