'use strict';
// Attention weights of the document, and measures computed from them.

const KINDS = ['encoder', 'decoder', 'cross'];

// A weight is stored as a byte: 255 times its square root.
const FROM_CODE = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);

/** A matrix by rows: `values[row * columns + column]`. */
function matrix(rows, columns, values = new Float32Array(rows * columns)) {
  return { rows, columns, values };
}

/** Read one model of a document: its tokens, and its weights as `weights[kind].head(layer, head)`. */
function readModel(model) {
  const weights = {};
  for (const kind of KINDS) {
    if (model[kind]) weights[kind] = readWeights(model[kind], kind === 'decoder');
  }
  const inputs = [model.start, ...model.target.slice(0, -1)];
  const tokens = {
    encoder: { query: model.source, key: model.source },
    decoder: { query: model.target, key: inputs },
    cross: { query: model.target, key: model.source },
  };
  // Both brackets of a phrase stand for its words.
  const phrases = new Map((model.phrases ?? []).flatMap(([opens, closes, first, end]) =>
    [opens, closes].map((index) => [index, { first, end }])));
  return { ...model, weights, tokens, phrases, rollouts: new Map() };
}

/** Unpack weights; those of the decoder's self-attention are lower triangles. */
function readWeights({ layers, heads, queries, keys, weights }, isLower) {
  const codes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  const size = isLower ? (queries * (queries + 1)) / 2 : queries * keys;
  const head = (layer, head) => {
    const found = matrix(queries, keys);
    let next = (layer * heads + head) * size;
    for (let row = 0; row < queries; row += 1) {
      const width = isLower ? row + 1 : keys;
      for (let column = 0; column < width; column += 1) {
        found.values[row * keys + column] = FROM_CODE[codes[next]];
        next += 1;
      }
    }
    return found;
  };
  return { layers, heads, queries, keys, head: remembered(head), mean: meanOfHeads(heads, head) };
}

/** Return the selected layer, or the last one if this attention has fewer layers. */
function shownLayer({ layers }, { layer }) {
  return Math.min(layer, layers - 1);
}

/** Cache the results of a function of layer and head. */
function remembered(compute) {
  const known = new Map();
  return (layer, head) => {
    const name = `${layer} ${head}`;
    if (!known.has(name)) known.set(name, compute(layer, head));
    return known.get(name);
  };
}

function meanOfHeads(heads, head) {
  return remembered((layer) => {
    const all = Array.from({ length: heads }, (_, index) => head(layer, index));
    return average(all);
  });
}

/** Average some matrices of one shape. */
function average(matrices) {
  const mean = matrix(matrices[0].rows, matrices[0].columns);
  for (const { values } of matrices) {
    for (let at = 0; at < values.length; at += 1) mean.values[at] += values[at] / matrices.length;
  }
  return mean;
}

/**
 * Follow attention through all layers up to one (attention rollout, Abnar and Zuidema 2020): a
 * layer's state is half its input and half the mean of its heads, so a layer is (A + I) with rows
 * normalized to one, and layers are multiplied.
 *
 * For cross-attention both ways to the source are followed, through the decoder's self-attention and
 * through the encoder; the result is the part that came from the source.
 */
function rollout(model, kind, layer) {
  const name = `${kind} ${layer}`;
  if (!model.rollouts.has(name)) {
    const follow = kind === 'cross' ? rolloutOfCross : rolloutOfSelf;
    model.rollouts.set(name, follow(model, kind, layer));
  }
  return model.rollouts.get(name);
}

/**
 * List the modes of a layer other than its heads: an average of several heads, and a rollout. Only
 * Transformers have a rollout of cross-attention: a recurrent state does not record its sources.
 */
function summaries(model, kind) {
  const { encoder, decoder } = model.weights;
  const isFollowed = kind !== 'cross' || (encoder && decoder);
  return [
    ...(model.weights[kind].heads > 1 ? ['average'] : []),
    ...(isFollowed ? ['rollout'] : []),
  ];
}

function rolloutOfSelf(model, kind, layer) {
  const mixed = withResidual(model.weights[kind].mean(layer));
  return layer === 0 ? mixed : multiply(mixed, rollout(model, kind, layer - 1));
}

function rolloutOfCross(model, kind, layer) {
  const { encoder, decoder, cross } = model.weights;
  const read = scaled(cross.mean(layer), 0.5);
  const through = encoder ? multiply(read, rollout(model, 'encoder', encoder.layers - 1)) : read;
  if (layer === 0) return through;
  const before = rollout(model, 'cross', layer - 1);
  const mixed = decoder ? multiply(withResidual(decoder.mean(layer)), before) : before;
  return sum(scaled(mixed, 0.5), through);
}

/** Add the identity and normalize the sum of every row to one. */
function withResidual({ rows, columns, values }) {
  const mixed = matrix(rows, columns, Float32Array.from(values));
  for (let row = 0; row < rows; row += 1) {
    mixed.values[row * columns + row] += 1;
    const line = mixed.values.subarray(row * columns, (row + 1) * columns);
    const total = line.reduce((sum, value) => sum + value, 0);
    for (let column = 0; column < columns; column += 1) line[column] /= total;
  }
  return mixed;
}

function scaled({ rows, columns, values }, factor) {
  return matrix(rows, columns, values.map((value) => value * factor));
}

function sum(left, right) {
  return matrix(left.rows, left.columns, left.values.map((value, at) => value + right.values[at]));
}

function multiply(left, right) {
  const product = matrix(left.rows, right.columns);
  for (let row = 0; row < left.rows; row += 1) {
    const out = product.values.subarray(row * right.columns, (row + 1) * right.columns);
    for (let inner = 0; inner < left.columns; inner += 1) {
      const factor = left.values[row * left.columns + inner];
      if (factor === 0) continue;
      const from = inner * right.columns;
      for (let column = 0; column < out.length; column += 1) {
        out[column] += factor * right.values[from + column];
      }
    }
  }
  return product;
}

// Positions that a head may mostly attend to, as functions of the row.
const PLACES = {
  encoder: [
    ['the token itself', (row) => row],
    ['the token before', (row) => row - 1],
    ['the token after', (row) => row + 1],
    ['the first token', () => 0],
    ['the last token', (row, columns) => columns - 1],
  ],
  decoder: [
    ['the token just read', (row) => row],
    ['the token before that', (row) => row - 1],
    ['the start', () => 0],
  ],
  cross: [
    ['the first token', () => 0],
    ['the last token', (row, columns) => columns - 1],
  ],
};

/**
 * Describe the attention of a head: the number of tokens that its weight is spread over (the mean of
 * the exponential of the entropy), and its share on some positions.
 */
function describe({ rows, columns, values }, kind) {
  let spread = 0;
  for (let row = 0; row < rows; row += 1) {
    let entropy = 0;
    for (let column = 0; column < columns; column += 1) {
      const weight = values[row * columns + column];
      if (weight > 0) entropy -= weight * Math.log(weight);
    }
    spread += Math.exp(entropy) / rows;
  }
  const places = PLACES[kind].map(([name, place]) => {
    let share = 0;
    for (let row = 0; row < rows; row += 1) {
      const column = place(row, columns);
      if (column >= 0 && column < columns) share += values[row * columns + column] / rows;
    }
    return { name, share };
  });
  return { spread, places };
}
