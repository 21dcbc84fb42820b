'use strict';
// Positions of the hypotheses of a beam: a tree without crossing branches, the best one on top.

/**
 * Return for each step the row of each node, and the nodes on the path to the best hypothesis. Nodes
 * are sorted by the row of their parent, so branches never cross. Among siblings the node on the best
 * path comes first, then kept ones, then dropped ones.
 */
function layOut(beam) {
  const isOnWay = wayToBest(beam);
  const rows = [];
  beam.forEach((nodes, step) => {
    const rank = (index) => [
      step === 0 ? 0 : rows[step - 1][nodes[index].parent],
      isOnWay[step][index] ? 0 : 1,
      nodes[index].fate === 'dropped' ? 1 : 0,
      -(nodes[index].log_probability ?? -Infinity),
    ];
    const order = nodes.map((_, index) => [index, rank(index)]);
    order.sort((a, b) => compare(a[1], b[1]));
    const places = Array(nodes.length);
    order.forEach(([index], row) => {
      places[index] = row;
    });
    rows.push(places);
  });
  return { rows, isOnWay };
}

function compare(left, right) {
  const at = left.findIndex((value, index) => value !== right[index]);
  return at < 0 ? 0 : left[at] - right[at];
}

/** Mark the nodes from the root to the returned hypothesis. */
function wayToBest(beam) {
  const marks = beam.map((nodes) => nodes.map((node) => node.fate === 'best'));
  for (let step = beam.length - 1; step > 0; step -= 1) {
    beam[step].forEach((node, index) => {
      if (marks[step][index]) marks[step - 1][node.parent] = true;
    });
  }
  return marks;
}

/** Return a node and its ancestors, the first token first, as pairs of step and index. */
function lineage(beam, step, index) {
  const found = [];
  for (let at = step; at >= 0; at -= 1) {
    found.unshift([at, index]);
    index = beam[at][index].parent;
  }
  return found;
}

/** Leave out dropped nodes without surviving descendants; renumber the parents of the others. */
function survivors(beam) {
  const lives = beam.map((nodes) => nodes.map(({ fate }) => fate !== 'dropped'));
  for (let step = beam.length - 1; step > 0; step -= 1) {
    beam[step].forEach(({ parent }, index) => {
      if (lives[step][index]) lives[step - 1][parent] = true;
    });
  }
  const kept = lives.map((line) => [...line.keys()].filter((index) => line[index]));
  return beam.map((nodes, step) =>
    kept[step].map((index) => ({
      ...nodes[index],
      parent: step === 0 ? null : kept[step - 1].indexOf(nodes[index].parent),
    })));
}
