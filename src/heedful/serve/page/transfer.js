"use strict";
// Text in and out of the page: files opened and saved, the clipboard, and links that contain a text.
globalThis.heedful ??= {};

heedful.transfer = (() => {
  const { RequestError } = heedful.api;

  // A browser never sends the part after # to a server, so the text is in no server's log.
  const makeLink = ({ from, into }, text) => {
    const fields = new URLSearchParams({ from, into, text });
    return `${location.href.split("#")[0]}#${fields}`;
  };

  // Languages and text in the address of this page, or null.
  const readLink = () => {
    const fields = new URLSearchParams(location.hash.slice(1));
    const text = fields.get("text");
    return text === null ? null : { from: fields.get("from"), into: fields.get("into"), text };
  };

  const clearLink = () => {
    if (location.hash) history.replaceState(null, "", location.href.split("#")[0]);
  };

  const count = (number) => number.toLocaleString("en");

  // The text of a file; a RequestError if it is too long or not UTF-8.
  const readFile = async (file, limit) => {
    // No character of UTF-8 is longer than four bytes.
    if (file.size > 4 * limit) {
      const size = `${count(Math.ceil(file.size / 1024))}\u202fKiB`;
      throw new RequestError(`The file has ${size}; this server accepts at most ${count(limit)} characters.`);
    }
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      throw new RequestError("The file must be text in UTF-8, but it is not valid UTF-8.");
    }
  };

  const download = (address, name) => {
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
    download(address, name);
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };

  // Copy to the clipboard; returns whether the browser allows it. navigator.clipboard exists on
  // secure pages only; execCommand works on other pages.
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = document.createElement("textarea");
      field.className = "aside";
      field.value = text;
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      return done;
    }
  };

  // The ending of a file that the server translates as a whole; empty for plain text.
  const wholeEnding = (file) =>
    (/\.(html?|srt|vtt|md|docx|odt)$/i.exec(file.name) ?? [""])[0].toLowerCase();

  return { makeLink, readLink, clearLink, readFile, save, download, copy, wholeEnding };
})();
