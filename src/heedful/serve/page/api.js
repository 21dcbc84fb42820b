"use strict";
// The server's routes. Whatever goes wrong becomes a Refusal whose message is a sentence.
globalThis.heedful ??= {};

heedful.talk = (() => {
  const MOST_TRIES = 8;
  const LONGEST_WAIT = 120;
  const GONE = "The server cannot be reached. Your text is still here; try again in a moment.";
  const CUT = "The connection ended before the translation was complete.";
  const WORDS = {
    403: "The server wants a key; enter it under Settings.",
    404: "The server does not have what this page asked for; it may be of another version.",
    413: "The text is too long for this server.",
    429: "The server is busy.",
    500: "The server failed at this; its log says why.",
    503: "The server is about to stop or has just started.",
    504: "The server took too long.",
  };

  class Refusal extends Error {
    constructor(message, { status = 0, wait = null } = {}) {
      super(message);
      this.status = status;
      this.wait = wait;
    }
  }

  const sentence = (text) => {
    const clean = String(text).trim();
    const begun = clean.charAt(0).toUpperCase() + clean.slice(1);
    return /[.!?…]$/u.test(begun) ? begun : `${begun}.`;
  };

  const seconds = (header) => {
    if (!header) return null;
    const number = Number(header);
    const wait = Number.isFinite(number) ? number : (Date.parse(header) - Date.now()) / 1000;
    return Number.isFinite(wait) ? Math.min(Math.max(wait, 0.2), LONGEST_WAIT) : null;
  };

  const refusal = async (response) => {
    let said = "";
    try {
      const answer = await response.json();
      said = typeof answer.error === "string" ? answer.error : "";
    } catch {
      said = "";
    }
    const message = said ? sentence(said) : WORDS[response.status];
    return new Refusal(message ?? `The server answered with code ${response.status}.`, {
      status: response.status,
      wait: seconds(response.headers.get("Retry-After")),
    });
  };

  const sleep = (milliseconds, signal) =>
    new Promise((done, fail) => {
      const timer = setTimeout(done, milliseconds);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        fail(signal.reason);
      });
    });

  // Ask once; an answer that says no is thrown. What was aborted stays an AbortError.
  const ask = async (path, body, signal) => {
    const options = body instanceof FormData ? { method: "POST", body } : body && {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(talk.key ? { ...body, api_key: talk.key } : body),
    };
    let response;
    try {
      response = await fetch(path, { ...options, signal, credentials: "same-origin" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Refusal(GONE);
    }
    if (!response.ok) throw await refusal(response);
    return response;
  };

  // Ask, and while the server is busy wait as long as it says; `waiting` is told the seconds.
  const insist = async (path, body, { signal, waiting } = {}) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await ask(path, body, signal);
      } catch (error) {
        const busy = error instanceof Refusal && [429, 503].includes(error.status);
        if (!busy || error.wait === null || tries === MOST_TRIES) throw error;
        waiting?.(Math.ceil(error.wait));
        await sleep(1000 * error.wait, signal);
      }
    }
  };

  // Translate a file; the relative address of what came of it.
  const file = async (sent, { source, target }) => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ source, target, file: sent })) {
      form.append(name, value);
    }
    if (talk.key) form.append("api_key", talk.key);
    const { translatedFileUrl } = await json("translate_file", form);
    // The server may not know by what folder of a proxy it is reached.
    return `download_file/${translatedFileUrl.split("/").pop()}`;
  };

  const json = async (path, body, options) => {
    const response = await insist(path, body, options);
    try {
      return await response.json();
    } catch (error) {
      if (options?.signal?.aborted) throw error;
      throw new Refusal(CUT);
    }
  };

  // The lines of an answer as they come, each one an object.
  async function* lines(response, signal) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    let done = false;
    try {
      while (!done) {
        const part = await reader.read();
        done = part.done;
        rest += decoder.decode(part.value ?? new Uint8Array(), { stream: !done });
        const whole = rest.split("\n");
        rest = done ? "" : whole.pop();
        for (const line of whole) if (line.trim()) yield JSON.parse(line);
      }
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Refusal(CUT);
    } finally {
      if (!done) reader.cancel().catch(() => {});
    }
  }

  // Translate; `told` gets every event but errors, which are thrown.
  const stream = async (body, { signal, waiting, told }) => {
    const response = await insist("v1/stream", body, { signal, waiting });
    let ended = false;
    for await (const event of lines(response, signal)) {
      if (event.event === "error") throw new Refusal(sentence(event.error));
      told(event);
      ended ||= event.event === "end";
    }
    if (!ended) throw new Refusal(CUT);
  };

  const talk = {
    key: "",
    Refusal,
    stream,
    file,
    models: () => json("v1/models"),
    settings: () => json("frontend/settings"),
    attend: (body, options) => json("v1/attend", body, options),
  };
  return talk;
})();
