"use strict";
// Client of the server's HTTP API. Every failure is thrown as a RequestError with a message to show.
globalThis.heedful ??= {};

heedful.api = (() => {
  const MAX_TRIES = 8;
  const MAX_WAIT_SECONDS = 120;
  const UNREACHABLE = "The server cannot be reached. Your text is still here; try again in a moment.";
  const INCOMPLETE = "The connection ended before the translation was complete.";
  const MESSAGES = {
    403: "The server needs a valid key; enter it above the text.",
    404: "The server does not know this address; the server may have another version.",
    413: "The text is too long for this server.",
    429: "The server is busy.",
    500: "The server failed; its log has the reason.",
    503: "The server is about to stop or has just started.",
    504: "The server took too long.",
  };

  class RequestError extends Error {
    constructor(message, { status = 0, wait = null } = {}) {
      super(message);
      this.status = status;
      this.wait = wait;
    }

    get isAboutKey() {
      return this.status === 403;
    }
  }

  // The message about an error; an unexpected error is logged.
  const explain = (error) => {
    if (error instanceof RequestError) return error.message;
    console.error(error);
    return "This answer cannot be shown.";
  };

  const asSentence = (text) => {
    const trimmed = String(text).trim();
    const capitalized = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
    return /[.!?…]$/u.test(capitalized) ? capitalized : `${capitalized}.`;
  };

  const retryAfterSeconds = (header) => {
    if (!header) return null;
    const number = Number(header);
    const wait = Number.isFinite(number) ? number : (Date.parse(header) - Date.now()) / 1000;
    return Number.isFinite(wait) ? Math.min(Math.max(wait, 0.2), MAX_WAIT_SECONDS) : null;
  };

  const requestError = async (response) => {
    const reason = (await response.json().catch(() => null))?.error;
    const { status } = response;
    // The server's own message about a key is meant for programs.
    const isShown = typeof reason === "string" && reason && status !== 403;
    const message = isShown ? asSentence(reason) : MESSAGES[status];
    return new RequestError(message ?? `The server answered with code ${status}.`, {
      status,
      wait: retryAfterSeconds(response.headers.get("Retry-After")),
    });
  };

  const sleep = (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, milliseconds);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    });

  // One request. An error status is thrown as RequestError; an aborted request stays an AbortError.
  const request = async (path, body, signal) => {
    const options = body instanceof FormData ? { method: "POST", body } : body && {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(api.key ? { ...body, api_key: api.key } : body),
    };
    let response;
    try {
      response = await fetch(path, { ...options, signal, credentials: "same-origin" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new RequestError(UNREACHABLE);
    }
    if (response.ok) return response;
    const error = await requestError(response);
    if (error.isAboutKey) api.onKeyRefused();
    throw error;
  };

  // Repeat the request while the server is busy. `onWait` is called with the seconds until the next
  // try, which the server names in its Retry-After header.
  const requestWithRetry = async (path, body, { signal, onWait } = {}) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await request(path, body, signal);
      } catch (error) {
        const busy = error instanceof RequestError && [429, 503].includes(error.status);
        if (!busy || error.wait === null || tries === MAX_TRIES) throw error;
        onWait?.(Math.ceil(error.wait));
        await sleep(1000 * error.wait, signal);
      }
    }
  };

  // Translate a file; returns the relative address of the translated file.
  const translateFile = async (upload, { source, target }) => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ source, target, file: upload })) {
      form.append(name, value);
    }
    if (api.key) form.append("api_key", api.key);
    const { translatedFileUrl } = await requestJson("translate_file", form);
    // Behind a proxy the page may have another path than the server knows, so only the name is used.
    return `download_file/${translatedFileUrl.split("/").pop()}`;
  };

  const requestJson = async (path, body, options) => {
    const response = await requestWithRetry(path, body, options);
    try {
      return await response.json();
    } catch (error) {
      if (options?.signal?.aborted) throw error;
      throw new RequestError(INCOMPLETE);
    }
  };

  // The events of a streamed response as they arrive: one JSON object on each line.
  async function* readEvents(response, signal) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    let done = false;
    try {
      while (!done) {
        const part = await reader.read();
        done = part.done;
        rest += decoder.decode(part.value ?? new Uint8Array(), { stream: !done });
        const complete = rest.split("\n");
        rest = done ? "" : complete.pop();
        for (const line of complete) if (line.trim()) yield JSON.parse(line);
      }
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new RequestError(INCOMPLETE);
    } finally {
      if (!done) reader.cancel().catch(() => {});
    }
  }

  // Translate; `onEvent` is called with every event except errors, which are thrown.
  const streamTranslation = async (body, { signal, onWait, onEvent }) => {
    const response = await requestWithRetry("v1/stream", body, { signal, onWait });
    let ended = false;
    for await (const event of readEvents(response, signal)) {
      if (event.event === "error") throw new RequestError(asSentence(event.error));
      onEvent(event);
      ended ||= event.event === "end";
    }
    if (!ended) throw new RequestError(INCOMPLETE);
  };

  const api = {
    key: "",
    onKeyRefused: () => {},
    RequestError,
    explain,
    streamTranslation,
    translateFile,
    // Send an empty text, which costs the server nothing, to learn whether it accepts the key.
    checkKey: (body) => request("v1/translate", { ...body, q: "" }),
    models: () => requestJson("v1/models"),
    settings: () => requestJson("frontend/settings"),
    attend: (body, options) => requestJson("v1/attend", body, options),
  };
  return api;
})();
