"use strict";
// Word alignment: the source words of a translated word, marked in the text and described below it.
globalThis.heedful ??= {};

heedful.alignment = (() => {
  const { words } = heedful;

  // Spans of the sentence's source that are aligned with a word of its translation.
  const sourceSpans = (sentence, word) => {
    const links = sentence.shown.alignment ?? [];
    const sourceWords = links.filter(([, target]) => target === word.place).map(([from]) => from);
    const spans = words.spaceSeparated(sentence.source ?? "");
    return [...new Set(sourceWords)].sort((a, b) => a - b).flatMap((number) => spans[number] ?? []);
  };

  // Where a sentence begins in the typed text, or -1. The search for each sentence begins after the
  // previous sentence, so that equal sentences get different positions.
  const sentenceStart = (text, sentences, sentence) => {
    let cursor = 0;
    for (const other of sentences) {
      const start = other.source ? words.find(text, other.source, cursor) : -1;
      if (other === sentence) return start;
      if (start >= 0) cursor = start + other.source.length;
    }
    return -1;
  };

  // The spans of `sourceSpans`, with offsets in the whole text.
  const spansInText = (text, sentences, sentence, word) => {
    const offset = sentenceStart(text, sentences, sentence);
    if (offset < 0) return [];
    const move = ({ start, end }) => ({ start: start + offset, end: end + offset });
    return sourceSpans(sentence, word).map(move);
  };

  // A text field cannot hold marks: a copy of its text (the mirror) lies behind it and holds them.
  const mark = (mirror, text, spans) => {
    const parts = [];
    let cursor = 0;
    for (const { start, end } of spans) {
      const marked = document.createElement("mark");
      marked.textContent = text.slice(start, end);
      parts.push(text.slice(cursor, start), marked);
      cursor = end;
    }
    // The zero-width space gives an empty last line its height.
    mirror.replaceChildren(...parts, text.slice(cursor), "\u200b");
  };

  // Text with a writing direction of its own, which does not affect the text around it.
  const isolated = (name, text) => {
    const element = document.createElement(name);
    element.dir = "auto";
    element.textContent = text;
    return element;
  };

  // A word, its probability as the product of its subwords', and the source words aligned with it.
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
    sourceSpans(sentence, word).forEach(({ start, end }, index) => {
      const quoted = isolated("bdi", `\u201c${sentence.source.slice(start, end)}\u201d`);
      parts.push(index ? " " : " \u00b7 from ", quoted);
    });
    return parts;
  };

  return { spansInText, mark, describe };
})();
