"use strict";
// Pieces of the model to words of a text, how sure each word is, and what differs between two texts.
globalThis.heedful ??= {};

heedful.words = (() => {
  // What is at least so probable is at this level; below the last one is level 3.
  const LEVELS = [0.9, 0.6, 0.3];
  // Scripts that write without spaces: there a piece stands for a word.
  const UNSPACED =
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

  const level = (probability) => {
    const found = LEVELS.findIndex((least) => probability >= least);
    return found < 0 ? LEVELS.length : found;
  };

  // What a reader sees of a piece: without the marks of SentencePiece, subword-nmt and joiners.
  const visible = (piece) =>
    piece
      .replace(/[\u2581\u0120]/g, " ")
      .replace(/@@$|<\/w>$/, "")
      .replace(/\uffed|\uffee/g, "")
      .trim();

  // Which stretch of the text each piece wrote. Pieces that are not in the text as they are (bytes,
  // replaced unknown words) share what lies between their neighbours.
  const stretches = (text, tokens) => {
    const found = [];
    let cursor = 0;
    let waiting = [];
    const settle = (end) => {
      for (const index of waiting) found.push({ start: cursor, end, index });
      waiting = [];
    };
    tokens.forEach((token, index) => {
      const seen = visible(token.piece);
      if (!seen) return;
      const start = text.indexOf(seen, cursor);
      const between = start < 0 ? "" : text.slice(cursor, start).trim();
      if (start < 0 || between.length > 12 * waiting.length) {
        waiting.push(index);
        return;
      }
      settle(start);
      found.push({ start, end: start + seen.length, index });
      cursor = start + seen.length;
    });
    settle(text.length);
    return found.sort((one, other) => one.index - other.index);
  };

  // What spaces set apart, as stretches of the text.
  const places = (text) =>
    [...text.matchAll(/\S+/gu)].map((match) => ({
      start: match.index,
      end: match.index + match[0].length,
    }));

  const cut = (place, pieces) => {
    const starts = pieces.map((piece) => piece.start).filter((start) => start > place.start);
    const ends = [...new Set([...starts, place.end])].filter((end) => end <= place.end);
    return ends.map((end, index) => ({ start: index ? ends[index - 1] : place.start, end }));
  };

  // The words of a text: {start, end, text, place, tokens, probability}. `place` counts what spaces
  // set apart, as alignments do; the probability is null where no piece tells it.
  const split = (text, tokens) => {
    const pieces = stretches(text, tokens);
    const words = [];
    let first = 0;
    places(text).forEach((span, place) => {
      while (first < pieces.length && pieces[first].end <= span.start) first += 1;
      const near = [];
      for (let at = first; at < pieces.length && pieces[at].start < span.end; at += 1) {
        if (pieces[at].end > span.start) near.push(pieces[at]);
      }
      const whole = !UNSPACED.test(text.slice(span.start, span.end));
      for (const { start, end } of whole ? [span] : cut(span, near)) {
        const own = near.filter((piece) => piece.start < end && piece.end > start);
        const known = own.map((piece) => tokens[piece.index].probability);
        const sure = known.length > 0 && known.every((value) => typeof value === "number");
        words.push({
          start,
          end,
          place,
          text: text.slice(start, end),
          tokens: own.map((piece) => piece.index),
          probability: sure ? known.reduce((product, value) => product * value, 1) : null,
        });
      }
    });
    return words;
  };

  // Which words of `other` are not, in this order, in `one` (the longest common subsequence).
  const differing = (one, other) => {
    const [a, b] = [one.split(/\s+/u), other.split(/\s+/u)];
    if (a.length * b.length > 250000) return b.map((text) => ({ text, same: true }));
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

  return { level, visible, split, places, differing, percent, signed };
})();
