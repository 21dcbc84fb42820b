// A stand-alone page shows the document that is embedded in it.
heedfulExplorer(
  document.getElementById('explorer'),
  JSON.parse(document.getElementById('document').textContent),
);
