"use strict";
// The translation pane: sentences that grow, and words that arrow keys reach and a click chooses.
globalThis.heedful ??= {};

// `onFocus(sentence, word, isFocus)` is called when a word gets the focus or the pointer (with null
// when it loses it); `onChoose(sentence, word)` is called when a word is clicked. Text is inserted
// as text nodes only, never as HTML.
heedful.translation = (box, { onFocus, onChoose }) => {
  let sentences = [];
  let stale = false;
  let current = null;

  const clear = () => {
    sentences = [];
    stale = false;
    current = null;
    box.inert = false;
    box.replaceChildren();
  };

  // The old translation stays, in a pale color, until the first text of the new one arrives.
  const begin = () => {
    stale = true;
    box.inert = true;
  };

  const clearIfStale = () => {
    if (stale) clear();
  };

  const sentence = (index) => {
    clearIfStale();
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

  // Show the best translation of a sentence or an alternative.
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
    if (!current?.element.isConnected) moveTo(all()[0], false);
  };

  const settle = (index, event) => {
    const one = sentence(index);
    one.source = event.source;
    one.best = event;
    show(index, event);
  };

  // Until the whole translation is known, take line breaks between finished sentences from the source.
  const applySourceLayout = (source) => {
    let cursor = 0;
    let before = null;
    for (const one of sentences) {
      const start = one.source ? heedful.words.find(source, one.source, cursor) : -1;
      const between = before?.source && start >= 0 ? source.slice(cursor, start) : "";
      if (between && !between.trim()) one.before.data = between;
      if (start >= 0) cursor = start + one.source.length;
      before = one;
    }
  };

  // At the end, take the line breaks and spaces between sentences from the whole translation.
  const finish = (text) => {
    clearIfStale();
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

  const wordOf = (element) => {
    const found = element?.closest?.(".word");
    return found ? all().find((word) => word.element === found) : undefined;
  };

  // Roving tabindex: the tab key reaches only the current word, arrow keys reach the others.
  const moveTo = (word, focus = true) => {
    if (!word) return;
    if (current) current.element.tabIndex = -1;
    current = word;
    word.element.tabIndex = 0;
    if (focus) word.element.focus();
  };

  const neighbor = (direction) => {
    const words = all();
    return words[words.indexOf(current) + direction];
  };

  // The nearest word in the line above (-1) or below (1).
  const verticalNeighbor = (direction) => {
    const here = current.element.getBoundingClientRect();
    const middle = here.left + here.width / 2;
    let found = null;
    for (const word of all()) {
      const there = word.element.getBoundingClientRect();
      const rows = (direction * (there.top - here.top)) / here.height;
      if (rows < 0.5) continue;
      const aside = Math.abs(there.left + there.width / 2 - middle);
      // A nearer line wins over every distance within a line.
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
    if (!current || event.ctrlKey || event.metaKey || event.altKey) return;
    const forward = box.matches(":dir(rtl)") ? -1 : 1;
    const goals = {
      ArrowRight: () => neighbor(forward),
      ArrowLeft: () => neighbor(-forward),
      ArrowDown: () => verticalNeighbor(1),
      ArrowUp: () => verticalNeighbor(-1),
      Home: () => all()[0],
      End: () => all().at(-1),
    };
    if (event.key in goals) {
      event.preventDefault();
      moveTo(goals[event.key]());
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onChoose(current.sentence, current);
    }
  });

  box.addEventListener("click", (event) => {
    const word = wordOf(event.target);
    if (!word || getSelection()?.toString()) return;
    moveTo(word);
    onChoose(word.sentence, word);
  });

  box.addEventListener("focusin", (event) => {
    const word = wordOf(event.target);
    if (word) {
      moveTo(word, false);
      onFocus(word.sentence, word, true);
    }
  });
  box.addEventListener("focusout", () => onFocus(null, null, true));
  box.addEventListener("pointerover", (event) => {
    const word = wordOf(event.target);
    if (word) onFocus(word.sentence, word, false);
  });
  box.addEventListener("pointerout", () => {
    const word = wordOf(document.activeElement);
    onFocus(word?.sentence ?? null, word ?? null, false);
  });

  return {
    begin,
    clear,
    grow,
    settle,
    applySourceLayout,
    show,
    finish,
    press,
    focus: () => current?.element.focus(),
    text: () => (stale ? "" : box.textContent),
    sentences: () => sentences,
  };
};
