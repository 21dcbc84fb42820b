"use strict";
// Texts that come and go: files that are opened and saved, and links that carry a text.
globalThis.heedful ??= {};

heedful.carry = (() => {
  const { Refusal } = heedful.talk;

  // What stands behind # is never sent to a server, so that no log ever holds the text.
  const link = ({ from, into }, text) => {
    const carried = new URLSearchParams({ from, into, text });
    return `${location.href.split("#")[0]}#${carried}`;
  };

  // What the address of this page carries: languages and text, or null.
  const carried = () => {
    const found = new URLSearchParams(location.hash.slice(1));
    const text = found.get("text");
    return text === null ? null : { from: found.get("from"), into: found.get("into"), text };
  };

  const drop = () => {
    if (location.hash) history.replaceState(null, "", location.href.split("#")[0]);
  };

  const count = (number) => number.toLocaleString("en");

  // The text of a file; a Refusal where it cannot be one.
  const read = async (file, most) => {
    // No character of UTF-8 is longer than four bytes.
    if (file.size > 4 * most) {
      const size = `${count(Math.ceil(file.size / 1024))}\u202fKiB`;
      throw new Refusal(`The file has ${size}; this server takes ${count(most)} characters.`);
    }
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      throw new Refusal("The file must be text in UTF-8, but this one cannot be read as such.");
    }
  };

  const fetchFrom = (address, name) => {
    const anchor = document.createElement("a");
    anchor.href = address;
    anchor.download = name;
    anchor.hidden = true;
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
  };

  const save = (text, name) => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
    fetchFrom(address, name);
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };

  const isPage = (file) => /\.html$/i.test(file.name);

  return { link, carried, drop, read, save, fetchFrom, isPage };
})();
