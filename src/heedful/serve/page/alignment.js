"use strict";
// Where a word comes from: what is said of it below the translation, and marks in what was typed.
globalThis.heedful ??= {};

heedful.origins = (() => {
  const { words } = heedful;

  // The stretches of a sentence's source that a word of its translation translates.
  const within = (sentence, word) => {
    const links = sentence.shown.alignment ?? [];
    const numbers = links.filter(([, target]) => target === word.place).map(([from]) => from);
    const places = words.places(sentence.source ?? "");
    return [...new Set(numbers)].sort((a, b) => a - b).flatMap((number) => places[number] ?? []);
  };

  // Where a sentence begins in the typed text, or -1: sentences come in its order.
  const begins = (text, sentences, sentence) => {
    let cursor = 0;
    for (const one of sentences) {
      const start = one.source ? text.indexOf(one.source, cursor) : -1;
      if (one === sentence) return start;
      if (start >= 0) cursor = start + one.source.length;
    }
    return -1;
  };

  // The same stretches, counted in the whole text.
  const inText = (text, sentences, sentence, word) => {
    const offset = begins(text, sentences, sentence);
    if (offset < 0) return [];
    const move = ({ start, end }) => ({ start: start + offset, end: end + offset });
    return within(sentence, word).map(move);
  };

  // A mirror of the text lies under the field where it is typed; the marks are in the mirror.
  const mark = (mirror, text, spans) => {
    const parts = [];
    let cursor = 0;
    for (const { start, end } of spans) {
      const marked = document.createElement("mark");
      marked.textContent = text.slice(start, end);
      parts.push(text.slice(cursor, start), marked);
      cursor = end;
    }
    // A last line that is empty has its height only if something stands in it.
    mirror.replaceChildren(...parts, text.slice(cursor), "\u200b");
  };

  // Text of any direction, which leaves that of its surroundings alone.
  const isolated = (name, text) => {
    const element = document.createElement(name);
    element.dir = "auto";
    element.textContent = text;
    return element;
  };

  // A word, its probability, how that comes about, and where it was read.
  const describe = (sentence, word) => {
    const parts = [isolated("b", word.text)];
    if (word.probability !== null) parts.push(` ${words.percent(word.probability)}`);
    const pieces = word.tokens.map((index) => sentence.shown.tokens[index]);
    if (pieces.length > 1 && word.probability !== null) {
      pieces.forEach((token, index) => {
        const piece = isolated("bdi", words.visible(token.piece) || "\u2423");
        parts.push(index ? " \u00d7 " : " = ", piece, ` ${words.percent(token.probability)}`);
      });
    }
    within(sentence, word).forEach(({ start, end }, index) => {
      const read = isolated("bdi", `\u201c${sentence.source.slice(start, end)}\u201d`);
      parts.push(index ? " " : " \u00b7 from ", read);
    });
    return parts;
  };

  return { inText, mark, describe };
})();
