'use strict';
// Small multiples: every layer and head at once, with the average and the rollout of each layer.

// With fewer tokens than this, squares have sharp edges.
const SHARP = 30;
// Small weights are drawn darker than in proportion; otherwise a small picture would look empty.
const DARKNESS = 0.65;
const MULTIPLES_HINT =
  'A row looks, a column is looked at; the stronger the color, the more. Click for its lines.';

/** Show all heads of one model; `choose` gets the layer and the head or mode of a click. */
function multiplesView(model, choose) {
  const readout = make('p', { class: 'he-readout' });
  const place = make('div', { class: 'he-multiples' });
  const behind = tableBehind('What each head does, as a table', () => headTable(model, kind));
  const element = make('div', { class: 'he-overview' }, place, readout, behind.element);
  let kind = null;

  const tell = (event) => {
    const button = event.target.closest('.he-multiple');
    readout.replaceChildren(button ? button.getAttribute('aria-label') : hint(MULTIPLES_HINT));
  };
  place.addEventListener('pointerover', tell);
  place.addEventListener('focusin', tell);
  place.addEventListener('pointerleave', tell);
  place.addEventListener('click', (event) => {
    const button = event.target.closest('.he-multiple');
    if (button) choose(Number(button.dataset.layer), button.dataset.which);
  });
  walkWithArrows(place, '.he-multiple', (button, direction) => besideInTable(place, button, direction));

  const update = (state) => {
    if (kind !== state.kind) {
      kind = state.kind;
      const weights = model.weights[kind];
      place.replaceChildren(...(weights ? [multiplesTable(model, kind, weights)] : []));
      readout.replaceChildren(hint(MULTIPLES_HINT));
      behind.update();
    }
    markChosen(place, model.weights[kind], state);
  };
  return { element, update };
}

/** Lay the small pictures out as a table, layers down and heads across. */
function multiplesTable(model, kind, weights) {
  const across = [...Array(weights.heads).keys(), ...summaries(model, kind)];
  const names = { average: 'mean', rollout: 'roll' };
  const headings = across.map((which) =>
    make('th', { scope: 'col' }, names[which] ?? String(which + 1)));
  const rows = Array.from({ length: weights.layers }, (_, layer) => make(
    'tr',
    {},
    make('th', { scope: 'row' }, String(layer + 1)),
    ...across.map((which) => make('td', {}, multiple(model, kind, layer, which))),
  ));
  const made = make(
    'table',
    { 'aria-label': `All heads of the ${kind}: layers down, heads across` },
    make('thead', {}, make('tr', {}, make('th', {}), ...headings)),
    make('tbody', {}, ...rows),
  );
  made.querySelector('.he-multiple').tabIndex = 0;
  made.style.setProperty('--he-across', across.length);
  return made;
}

function multipleWeights(model, kind, layer, which) {
  if (which === 'average') return model.weights[kind].mean(layer);
  if (which === 'rollout') return rollout(model, kind, layer);
  return model.weights[kind].head(layer, which);
}

/** Make one small picture, a button with a canvas. */
function multiple(model, kind, layer, which) {
  const found = multipleWeights(model, kind, layer, which);
  const canvas = make('canvas', { width: found.columns, height: found.rows });
  if (Math.max(found.rows, found.columns) < SHARP) canvas.classList.add('he-sharp');
  paint(canvas, found, typeof which === 'number' ? headColor(which) : ALL_HEADS);
  const label = `Layer ${layer + 1}, ${whichName(which)}: ${inWords(found, kind)}`;
  return make(
    'button',
    {
      type: 'button',
      class: 'he-multiple',
      tabindex: -1,
      'data-layer': layer,
      'data-which': which,
      'aria-label': label,
    },
    canvas,
  );
}

function whichName(which) {
  return typeof which === 'number' ? `head ${which + 1}` : which;
}

/** Paint a matrix; small weights are transparent, which suits light and dark themes. */
function paint(canvas, { rows, columns, values }, [red, green, blue]) {
  const image = new ImageData(columns, rows);
  for (let at = 0; at < values.length; at += 1) {
    image.data[4 * at] = red;
    image.data[4 * at + 1] = green;
    image.data[4 * at + 2] = blue;
    image.data[4 * at + 3] = 255 * Math.min(1, values[at] ** DARKNESS);
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
}

/** Describe where a head attends. */
function inWords(found, kind) {
  const { spread, places } = describe(found, kind);
  const best = places.reduce((a, b) => (b.share > a.share ? b : a));
  const mostly = best.share >= 0.25 ? `, ${percent(best.share)} on ${best.name}` : '';
  return `looks at ${spread.toFixed(1)} tokens at a time${mostly}`;
}

function markChosen(place, weights, state) {
  for (const button of place.querySelectorAll('.he-multiple')) {
    const { layer, which } = button.dataset;
    const isOn = state.mode === 'heads' ? state.heads[Number(which)] : state.mode === which;
    const isChosen = Number(layer) === shownLayer(weights, state) && Boolean(isOn);
    button.classList.toggle('he-chosen', isChosen);
    button.setAttribute('aria-pressed', String(isChosen));
  }
}

/** Find the small picture next to another. */
function besideInTable(place, button, direction) {
  const cells = [...place.querySelectorAll('tbody tr')].map((row) =>
    [...row.querySelectorAll('.he-multiple')]);
  const row = cells.findIndex((line) => line.includes(button));
  const column = cells[row].indexOf(button);
  const step = { up: [-1, 0], down: [1, 0], left: [0, -1], right: [0, 1] }[direction];
  if (step) return cells[row + step[0]]?.[column + step[1]];
  return direction === 'first' ? cells[row][0] : cells[row].at(-1);
}

/** Make the table of the pictures: for each head how widely it attends, and where. */
function headTable(model, kind) {
  const weights = model.weights[kind];
  if (!weights) return make('p', {}, 'Nothing is shown.');
  const places = PLACES[kind].map(([name]) => `on ${name}`);
  const rows = [];
  for (let layer = 0; layer < weights.layers; layer += 1) {
    for (const which of [...Array(weights.heads).keys(), ...summaries(model, kind)]) {
      const found = multipleWeights(model, kind, layer, which);
      const { spread, places: shares } = describe(found, kind);
      rows.push([
        `layer ${layer + 1}, ${whichName(which)}`,
        spread.toFixed(1),
        ...shares.map(({ share }) => weightCell(share, ALL_HEADS)),
      ]);
    }
  }
  return table(`Heads of the ${kind}`, ['head', 'tokens at a time', ...places], rows);
}
