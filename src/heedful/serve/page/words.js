"use strict";
// Subwords to words of a text, the confidence of each word, and the words in which two texts differ.
globalThis.heedful ??= {};

heedful.words = (() => {
  // Minimum probability of confidence levels 0, 1 and 2; words with lower probabilities have level 3.
  // page.css colors the levels, and the legend in index.html names the same bounds.
  const LEVELS = [0.9, 0.6, 0.3];
  // Scripts without spaces between words: each subword counts as a word.
  const UNSPACED =
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

  const level = (probability) => {
    const found = LEVELS.findIndex((least) => probability >= least);
    return found < 0 ? LEVELS.length : found;
  };

  // A subword without the markers of SentencePiece, byte-level BPE, subword-nmt and joiner tokenizers.
  const visible = (piece) =>
    piece
      .replace(/[\u2581\u0120]/g, " ")
      .replace(/@@$|<\/w>$/, "")
      .replace(/\uffed|\uffee/g, "")
      .trim();

  // The span of the text that each subword produced. Subwords that do not occur literally in the text
  // (bytes, replaced unknown words) share the span between their neighbors.
  const subwordSpans = (text, tokens) => {
    const found = [];
    let cursor = 0;
    let unmatched = [];
    const assignUnmatched = (end) => {
      for (const index of unmatched) found.push({ start: cursor, end, index });
      unmatched = [];
    };
    tokens.forEach((token, index) => {
      const surface = visible(token.piece);
      if (!surface) return;
      const start = text.indexOf(surface, cursor);
      const between = start < 0 ? "" : text.slice(cursor, start).trim();
      // A match further away than 12 characters for each unmatched subword is taken for a coincidence.
      if (start < 0 || between.length > 12 * unmatched.length) {
        unmatched.push(index);
        return;
      }
      assignUnmatched(start);
      found.push({ start, end: start + surface.length, index });
      cursor = start + surface.length;
    });
    assignUnmatched(text.length);
    return found.sort((one, other) => one.index - other.index);
  };

  // Where a sentence begins in a text, in which a line break may stand for a space; -1 for nowhere.
  const find = (text, sentence, from) =>
    text.replace(/\s/gu, " ").indexOf(sentence.replace(/\s/gu, " "), from);

  // Spans of the words that are separated by spaces.
  const spaceSeparated = (text) =>
    [...text.matchAll(/\S+/gu)].map((match) => ({
      start: match.index,
      end: match.index + match[0].length,
    }));

  const splitAtSubwords = (place, pieces) => {
    const starts = pieces.map((piece) => piece.start).filter((start) => start > place.start);
    const ends = [...new Set([...starts, place.end])].filter((end) => end <= place.end);
    return ends.map((end, index) => ({ start: index ? ends[index - 1] : place.start, end }));
  };

  // The words of a text: {start, end, text, place, tokens, probability}. `place` counts words between
  // spaces, as alignments do. `probability` is null if a subword of the word has none.
  const split = (text, tokens) => {
    const pieces = subwordSpans(text, tokens);
    const words = [];
    let first = 0;
    spaceSeparated(text).forEach((span, place) => {
      while (first < pieces.length && pieces[first].end <= span.start) first += 1;
      const overlapping = [];
      for (let at = first; at < pieces.length && pieces[at].start < span.end; at += 1) {
        if (pieces[at].end > span.start) overlapping.push(pieces[at]);
      }
      const whole = !UNSPACED.test(text.slice(span.start, span.end));
      for (const { start, end } of whole ? [span] : splitAtSubwords(span, overlapping)) {
        const own = overlapping.filter((piece) => piece.start < end && piece.end > start);
        const probabilities = own.map((piece) => tokens[piece.index].probability);
        const isKnown = probabilities.length > 0 && probabilities.every((value) => typeof value === "number");
        words.push({
          start,
          end,
          place,
          text: text.slice(start, end),
          tokens: own.map((piece) => piece.index),
          probability: isKnown ? probabilities.reduce((product, value) => product * value, 1) : null,
        });
      }
    });
    return words;
  };

  // The words of `other`, each with whether it is in the longest common subsequence with `one`.
  const differing = (one, other) => {
    const [a, b] = [one.split(/\s+/u), other.split(/\s+/u)];
    // The table has one cell for each pair of words: beyond 250,000 cells all words count as the same.
    if (a.length * b.length > 250_000) return b.map((text) => ({ text, same: true }));
    const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i -= 1) {
      for (let j = b.length - 1; j >= 0; j -= 1) {
        longest[i][j] =
          a[i] === b[j]
            ? longest[i + 1][j + 1] + 1
            : Math.max(longest[i + 1][j], longest[i][j + 1]);
      }
    }
    let i = 0;
    return b.map((text, j) => {
      while (i < a.length && a[i] !== text && longest[i + 1][j] >= longest[i][j + 1]) i += 1;
      const same = i < a.length && a[i] === text;
      if (same) i += 1;
      return { text, same };
    });
  };

  const percent = (value) => {
    const digits = value > 0 && value < 0.01 ? 1 : 0;
    return `${(100 * value).toFixed(digits)}\u202f%`;
  };

  const signed = (value, digits = 2) => value.toFixed(digits).replace("-", "\u2212");

  return { level, visible, find, split, spaceSeparated, differing, percent, signed };
})();
