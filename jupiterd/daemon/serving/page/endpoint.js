// Owns asking the endpoint: its models, what is known of one, and answers as they are written.
// Doesn't know how any of it is shown.

const TOKEN = "jupiter-token";

/** What the endpoint, or an engine behind it, says went wrong. */
export class EndpointError extends Error {
  constructor({ message, hint = "", code = "", status = 0, retryAfterS = null }) {
    super(message);
    Object.assign(this, { hint, code: String(code ?? ""), status, retryAfterS });
  }
}

let token = kept();

function kept() {
  try { return sessionStorage.getItem(TOKEN) ?? ""; } catch { return ""; }
}

/** Send this token from now on. */
export function useToken(given) {
  token = given;
  try { sessionStorage.setItem(TOKEN, given); } catch { /* then until the page is loaded again */ }
}

/** Return the models that answer, `promoted` first. */
export async function models() {
  const listed = await asked("v1/models");
  const found = Array.isArray(listed.data) ? listed.data : [];
  return found.filter((each) => typeof each?.id === "string");
}

/** Return what is known of a model: empty where the endpoint tells nothing. */
export async function card(id) {
  const told = await asked(`v1/models/${encodeURIComponent(id)}`);
  return told.jupiter ?? {};
}

async function asked(path) {
  return (await sent(path, {})).json();
}

async function sent(path, options) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new EndpointError({
      message: "The endpoint doesn't answer.",
      hint: "Is the daemon running, and this machine still on its network?",
      code: "unreachable",
    });
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const said = await response.json().catch(() => ({}));
  const told = errorIn(said) ?? { message: `The endpoint answers ${response.status}.` };
  const wait = Number.parseFloat(response.headers.get("Retry-After") ?? "");
  return new EndpointError({
    ...told, status: response.status, retryAfterS: Number.isFinite(wait) ? wait : null,
  });
}

function errorIn(said) {
  const error = said?.error;
  if (typeof error === "string") return { message: error };
  if (!error || typeof error !== "object") return null;
  const hint = String(error.hint ?? "");
  const message = String(error.message ?? "unknown");
  const end = `; ${hint}`; // for clients that show the message alone
  return { message: hint && message.endsWith(end) ? message.slice(0, -end.length) : message, hint, code: error.code };
}

/** Return the error of an answer without an end: whether anybody is left to ask is looked at. */
async function brokenOff() {
  const isThere = await sent("health", {}).then(() => true, () => false);
  if (isThere) {
    return new EndpointError({
      message: "The answer broke off.", code: "cut",
      hint: "Ask again: the endpoint is there, and its engine begins anew where it was lost.",
    });
  }
  return new EndpointError({
    message: "The answer broke off: the endpoint is gone.", code: "unreachable",
    hint: "Start jupiterd on its machine again, and jupiterctl model serve where that opened the endpoint; then ask again.",
  });
}

/**
 * Yield an answer as it is written: `{text}`, `{thought}` (what a model that reasons writes for
 * itself), `{end}` (why it ended), `{tokens, promptTokens}`, and `{waits}`, what it waits for.
 *
 * isChat: `body` has messages, otherwise a prompt. Raises EndpointError, and AbortError if stopped.
 */
export async function* answer(body, isChat, signal) {
  const response = await sent(isChat ? "v1/chat/completions" : "v1/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  for await (const { data, comment } of events(response.body)) {
    if (data === "[DONE]") return;
    if (comment) yield { waits: comment };
    if (data) yield* pieces(JSON.parse(data));
  }
  throw await brokenOff();
}

function* pieces(said) {
  const error = errorIn(said);
  if (error) throw new EndpointError(error);
  const choice = said.choices?.[0];
  const text = choice?.delta?.content ?? choice?.text;
  const thought = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning;
  if (thought) yield { thought, waits: "it thinks" };
  if (text) yield { text };
  if (choice?.finish_reason) yield { end: choice.finish_reason };
  if (said.usage?.completion_tokens) {
    yield { tokens: said.usage.completion_tokens, promptTokens: said.usage.prompt_tokens };
  }
}

/** Yield the data and comment of each event of a stream whose pieces may be cut anywhere. */
async function* events(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(cut);
      rest = (rest + (done ? decoder.decode() : decoder.decode(value, { stream: true }))).replaceAll("\r\n", "\n");
      const found = rest.split("\n\n");
      rest = done ? "" : found.pop();
      yield* found.map((event) => ({ data: linesOf(event, "data:"), comment: linesOf(event, ":") }));
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function cut(error) {
  throw error.name === "AbortError" ? error : await brokenOff();
}

function linesOf(event, mark) {
  const lines = event.split("\n").filter((line) => line.startsWith(mark));
  return lines.map((line) => line.slice(mark.length).trim()).join("\n");
}
