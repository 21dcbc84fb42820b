"use strict";
// The translation: sentences that grow, and their words, which can be walked through and chosen.
globalThis.heedful ??= {};

// `told.focused(sentence, word)` as words get the focus or the pointer (null when they lose it),
// `told.chosen(sentence, word)` when one is clicked. Text reaches the page as text nodes only.
heedful.translation = (box, told) => {
  let sentences = [];
  let stale = false;
  let walked = null;

  const clear = () => {
    sentences = [];
    stale = false;
    walked = null;
    box.inert = false;
    box.replaceChildren();
  };

  // What is there stays, faintly, until the next one begins to grow.
  const begin = () => {
    stale = true;
    box.inert = true;
  };

  const fresh = () => {
    if (stale) clear();
  };

  const sentence = (index) => {
    fresh();
    while (sentences.length <= index) {
      const span = document.createElement("span");
      const before = document.createTextNode(sentences.length ? " " : "");
      box.append(before, span);
      sentences.push({ index: sentences.length, span, before, words: [], shown: null });
    }
    return sentences[index];
  };

  const grow = (index, text) => {
    const one = sentence(index);
    if (one.shown) return;
    one.span.className = "growing";
    one.span.textContent = text;
  };

  const button = (one, word) => {
    const element = document.createElement("span");
    element.className = "word";
    element.textContent = word.text;
    element.tabIndex = -1;
    element.setAttribute("role", "button");
    if (word.probability !== null) {
      element.dataset.level = heedful.words.level(word.probability);
      const sure = Math.round(100 * word.probability);
      element.setAttribute("aria-label", `${word.text}, ${sure} percent`);
    }
    word.element = element;
    word.sentence = one;
    return element;
  };

  // Show one of the translations of a sentence: the best, or an alternative.
  const show = (index, hypothesis) => {
    const one = sentence(index);
    const { text, tokens = [] } = hypothesis;
    const parts = [];
    let cursor = 0;
    one.shown = hypothesis;
    one.words = heedful.words.split(text, tokens);
    for (const word of one.words) {
      parts.push(text.slice(cursor, word.start), button(one, word));
      cursor = word.end;
    }
    one.span.className = "";
    one.span.replaceChildren(...parts, text.slice(cursor));
    if (!walked?.element.isConnected) walk(all()[0], false);
  };

  const settle = (index, event) => {
    const one = sentence(index);
    one.source = event.source;
    one.best = event;
    show(index, event);
  };

  // Meanwhile, give sentences that are done the line breaks that stand before them in the source.
  const lay = (source) => {
    let cursor = 0;
    let before = null;
    for (const one of sentences) {
      const start = one.source ? source.indexOf(one.source, cursor) : -1;
      const between = before?.source && start >= 0 ? source.slice(cursor, start) : "";
      if (between && !between.trim()) one.before.data = between;
      if (start >= 0) cursor = start + one.source.length;
      before = one;
    }
  };

  // In the end, give all of them the line breaks and spaces of the whole translation.
  const finish = (text) => {
    fresh();
    const layout = [];
    let cursor = 0;
    for (const { shown } of sentences) {
      const start = shown ? text.indexOf(shown.text, cursor) : -1;
      if (start < 0) return;
      layout.push(text.slice(cursor, start));
      cursor = start + shown.text.length;
    }
    sentences.forEach((one, index) => {
      one.before.data = layout[index];
    });
    box.append(text.slice(cursor));
  };

  const all = () => sentences.flatMap((one) => one.words);

  const at = (element) => {
    const found = element?.closest?.(".word");
    return found ? all().find((word) => word.element === found) : undefined;
  };

  // One word is in the order of the tab key: the one where the walk stands.
  const walk = (word, focus = true) => {
    if (!word) return;
    if (walked) walked.element.tabIndex = -1;
    walked = word;
    word.element.tabIndex = 0;
    if (focus) word.element.focus();
  };

  const beside = (way) => {
    const words = all();
    return words[words.indexOf(walked) + way];
  };

  // The word above or below that lies nearest.
  const across = (way) => {
    const here = walked.element.getBoundingClientRect();
    const middle = here.left + here.width / 2;
    let found = null;
    for (const word of all()) {
      const there = word.element.getBoundingClientRect();
      const rows = (way * (there.top - here.top)) / here.height;
      if (rows < 0.5) continue;
      const aside = Math.abs(there.left + there.width / 2 - middle);
      const far = Math.round(rows) * 1e5 + aside;
      if (!found || far < found.far) found = { word, far };
    }
    return found?.word;
  };

  const press = (word) => {
    for (const other of box.querySelectorAll("[aria-pressed]")) other.removeAttribute("aria-pressed");
    word?.element.setAttribute("aria-pressed", "true");
  };

  box.addEventListener("keydown", (event) => {
    if (!walked || event.ctrlKey || event.metaKey || event.altKey) return;
    const forward = box.matches(":dir(rtl)") ? -1 : 1;
    const goals = {
      ArrowRight: () => beside(forward),
      ArrowLeft: () => beside(-forward),
      ArrowDown: () => across(1),
      ArrowUp: () => across(-1),
      Home: () => all()[0],
      End: () => all().at(-1),
    };
    if (event.key in goals) {
      event.preventDefault();
      walk(goals[event.key]());
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      told.chosen(walked.sentence, walked);
    }
  });

  box.addEventListener("click", (event) => {
    const word = at(event.target);
    if (!word || getSelection()?.toString()) return;
    walk(word);
    told.chosen(word.sentence, word);
  });

  box.addEventListener("focusin", (event) => {
    const word = at(event.target);
    if (word) {
      walk(word, false);
      told.focused(word.sentence, word, true);
    }
  });
  box.addEventListener("focusout", () => told.focused(null, null, true));
  box.addEventListener("pointerover", (event) => {
    const word = at(event.target);
    if (word) told.focused(word.sentence, word, false);
  });
  box.addEventListener("pointerout", () => {
    const word = at(document.activeElement);
    told.focused(word?.sentence ?? null, word ?? null, false);
  });

  return {
    begin,
    clear,
    grow,
    settle,
    lay,
    show,
    finish,
    press,
    focus: () => walked?.element.focus(),
    text: () => (stale ? "" : box.textContent),
    sentences: () => sentences,
  };
};
