'use strict';
// The table of each picture: the exact numbers, also for screen readers.

/**
 * Make a table that is built only when it is opened, and again when its content has changed,
 * because for 200 tokens it has 40,000 cells.
 */
function tableBehind(title, build) {
  const place = make('div', { class: 'he-scroll', role: 'region', tabindex: '0', 'aria-label': title });
  const details = make('details', { class: 'he-behind' }, make('summary', {}, title), place);
  const update = () => place.replaceChildren(...(details.open ? [build()] : []));
  details.addEventListener('toggle', update);
  return { element: details, update };
}

/** Make a table of rows; the first cell of each is its heading. */
function table(caption, headings, rows) {
  return make(
    'table',
    {},
    make('caption', {}, caption),
    make('thead', {}, make('tr', {}, ...headings.map((text) => make('th', { scope: 'col' }, text)))),
    make(
      'tbody',
      {},
      ...rows.map(([first, ...others]) =>
        make('tr', {}, make('th', { scope: 'row' }, first), ...others.map(cell))),
    ),
  );
}

function cell(content) {
  return content instanceof HTMLElement && content.tagName === 'TD'
    ? content
    : make('td', {}, content);
}

/** Make a cell that is as dark as its weight, so that the table is a picture again. */
function weightCell(weight, color) {
  const made = make('td', { class: 'he-number' }, percent(weight));
  if (weight > 0.005) made.style.backgroundColor = css(color, 0.6 * Math.sqrt(weight));
  return made;
}

/** Make the table of a whole matrix. */
function matrixTable(caption, found, queries, keys, color) {
  const rows = queries.map((token, row) => [
    tokenLabel(token),
    ...keys.map((_, column) => weightCell(found.values[row * keys.length + column], color)),
  ]);
  return table(caption, ['', ...keys.map(tokenLabel)], rows);
}
