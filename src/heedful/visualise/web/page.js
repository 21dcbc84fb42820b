// A stand-alone page shows the one document that it holds.
heedfulExplorer(
  document.getElementById('explorer'),
  JSON.parse(document.getElementById('document').textContent),
);
