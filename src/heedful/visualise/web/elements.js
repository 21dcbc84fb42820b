'use strict';
// Elements of the page, created one by one, so that text of a model never becomes markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Make an element. Attributes that are null or false are left out, `on` has the listeners, and
 * children that are not elements become text. Style is set by classes or CSSOM, never by a style
 * attribute, which a strict Content-Security-Policy forbids.
 */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an element of a drawing. */
function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value);
  }
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children);
  return element;
}

/** Make the hint on how to use a picture; it is not printed, because paper is not interactive. */
function hint(text) {
  return make('span', { class: 'he-hint' }, text);
}

let instances = 0;

/** Return an id that nothing else on the page has, however many explorers there are. */
function uniqueId(name) {
  instances += 1;
  return `heedful-${name}-${instances}`;
}

/**
 * Make a group of radio buttons in the form of one control. With radio buttons, arrow keys work,
 * the group is one tab stop, and screen readers describe it correctly.
 */
function choice(title, entries, chosen, choose) {
  const name = uniqueId('choice');
  const labels = entries.map(([value, label, hint]) => {
    const input = make('input', { type: 'radio', name, value: String(value) });
    input.checked = value === chosen;
    input.addEventListener('change', () => choose(value));
    return make('label', { title: hint ?? null }, input, make('span', {}, label));
  });
  const element = make(
    'fieldset',
    { class: 'he-choice' },
    make('legend', {}, title),
    make('div', { class: 'he-segments' }, ...labels),
  );
  const show = (value) => {
    for (const input of element.querySelectorAll('input')) {
      input.checked = input.value === String(value);
    }
  };
  return { element, show };
}

/**
 * Let arrow keys move among many buttons that have one tab stop together. `neighbor` returns the
 * next button in a direction, or none.
 */
function walkWithArrows(container, selector, neighbor) {
  const directions = {
    ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right',
    Home: 'first', End: 'last',
  };
  const stopAt = (button) => {
    for (const other of container.querySelectorAll(`${selector}[tabindex="0"]`)) {
      other.tabIndex = -1;
    }
    button.tabIndex = 0;
  };
  container.addEventListener('focusin', (event) => {
    const button = event.target.closest(selector);
    if (button) stopAt(button);
  });
  container.addEventListener('keydown', (event) => {
    const button = event.target.closest(selector);
    const direction = directions[event.key];
    if (!button || !direction || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    neighbor(button, direction)?.focus();
  });
}

/** Return the neighbor in a list of buttons, for `walkWithArrows`. */
function inList(buttons, button, direction) {
  const at = buttons.indexOf(button);
  const to = { up: at - 1, left: at - 1, down: at + 1, right: at + 1, first: 0 }[direction];
  return buttons[to ?? buttons.length - 1];
}

// The mark of SentencePiece at the beginning of a word.
const WORD_MARK = '\u2581';
// Control characters, and those that would change the writing direction of the following text.
const UNSEEN = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Spell out the invisible characters of a token. */
function visible(token) {
  if (token === '') return '∅';
  if (token.trim() === '') return '␣'.repeat(token.length);
  return token.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Name a token in a sentence, without the mark of a word's beginning. */
function spoken(token) {
  const word = token.startsWith(WORD_MARK) ? token.slice(WORD_MARK.length) : token;
  return word === '' ? 'space' : visible(word);
}

/** Show a token in its own direction, with a faint mark of a word's beginning. */
function tokenLabel(token) {
  if (token === WORD_MARK) {
    return make('bdi', { class: 'he-mark', role: 'img', 'aria-label': spoken(token) }, token);
  }
  const label = make('bdi', { class: 'he-token' });
  if (token.startsWith(WORD_MARK)) {
    label.append(make('span', { class: 'he-mark', 'aria-hidden': 'true' }, WORD_MARK));
    token = token.slice(WORD_MARK.length);
  }
  label.append(visible(token));
  return label;
}

// Tokens that are symbols and not text: <s>, </s>, and language tags such as >>fra<<.
const SYMBOL = /^(<.*>|>>.*<<)$/;
const RIGHT_TO_LEFT =
  /[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Mand}\p{sc=Samr}\p{sc=Adlm}\p{sc=Rohg}]/u;

/**
 * Return the writing direction of tokens, which is that of their first letter. The browser cannot
 * find it: `dir="auto"` skips tokens, because each token has its own direction.
 */
function directionOf(tokens) {
  const text = tokens.filter((token) => !SYMBOL.test(token)).join('');
  return RIGHT_TO_LEFT.test(text.match(/\p{L}/u)?.[0] ?? '') ? 'rtl' : 'ltr';
}

/** Join tokens to the text that they stand for. */
function joined(tokens) {
  const shown = tokens.map((token) => (token === WORD_MARK ? token : visible(token)));
  if (!tokens.some((token) => token.startsWith(WORD_MARK))) return shown.join(' ');
  return shown.join('').replaceAll(WORD_MARK, ' ').trim();
}

/** Write a share of one in percent, with one decimal below 10 %. */
function percent(share) {
  const hundredths = 100 * share;
  if (hundredths === 0) return '0';
  if (hundredths < 0.05) return '< 0.1 %';
  return `${hundredths.toFixed(hundredths < 9.95 ? 1 : 0)} %`;
}

/** Name some tokens with their shares in a line, each in its own direction. */
function withShares(pairs) {
  return pairs.flatMap(([token, share], at) =>
    [at ? ' · ' : '', make('bdi', {}, spoken(token)), ` ${percent(share)}`]);
}
