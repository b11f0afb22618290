// Owns what the page does: which models it talks to, when it asks, and what the keys mean. Doesn't
// know how the endpoint is asked (endpoint.js), nor how answers are drawn (conversation.js).

import { cardOf } from "./card.js";
import * as context from "./context.js";
import { Answer, Conversation } from "./conversation.js";
import { button, byId, make } from "./dom.js";
import * as endpoint from "./endpoint.js";
import * as settings from "./settings.js";

const MOST_TOKENS = 512;
const PROMOTED = "promoted";
const TOO_LONG = "context_length_exceeded";
const NO_TEMPLATE = /no chat template/i;
const SLOW_S = 4;
const LEAST_S = 0.05;

const conversation = new Conversation(byId("turns"));
const cards = new Map();
let known = [];
let running = null;

const model = () => byId("model").value;
const beside = () => byId("beside").value;
const lanes = () => (known.length ? [...new Set([model(), beside()])].filter(Boolean) : []);

// --- which models there are

async function begin() {
  try {
    const found = await endpoint.models();
    notice("");
    fillPickers(found);
  } catch (error) {
    if (error.status === 401) return askToken();
    notice(error.message, error.hint, button("Try again", "plain", begin));
  }
  await showCards();
}

function fillPickers(found) {
  const names = found.map((each) => each.id);
  known = names;
  if (!names.length) {
    notice("There is no model yet.", "Train one first: jupiterctl cycle start --domain NAME");
    return;
  }
  const wanted = [model(), new URLSearchParams(location.search).get("model"), PROMOTED, names[0]];
  choices(byId("model"), names, wanted.find((each) => names.includes(each)));
  choices(byId("beside"), ["", ...names], names.includes(beside()) ? beside() : "");
  byId("model").disabled = false;
  byId("beside-part").hidden = names.length < 2;
}

function choices(select, names, chosen) {
  select.replaceChildren(...names.map((name) => {
    const option = make("option", "", name || "nothing");
    option.value = name;
    return option;
  }));
  select.value = chosen;
}

async function showCards() {
  const wanted = lanes();
  await Promise.all(wanted.map(async (name) => {
    try { cards.set(name, await endpoint.card(name)); } catch (error) {
      if (error.status === 401) askToken();
      if (!cards.has(name)) cards.set(name, {});
    }
  }));
  byId("cards").replaceChildren(...wanted.map((name) => cardOf(name, cards.get(name) ?? {})));
  showWelcome();
}

function isChat(name) {
  const { way } = settings.now();
  return way === "auto" ? cards.get(name)?.chat !== false : way === "chat";
}

// --- the first picture

function showWelcome() {
  const [name = ""] = lanes();
  document.title = name ? `${name} · Jupiter` : "Jupiter";
  document.body.classList.toggle("empty", conversation.isEmpty);
  byId("welcome").hidden = !conversation.isEmpty;
  const chats = isChat(name);
  byId("welcome-title").textContent = chats ? "Talk to your model" : "Let your model go on";
  byId("prompt").placeholder = chats ? "Write a message" : "Begin a text";
  byId("suggestions").replaceChildren(...(name ? suggestions(chats, cards.get(name) ?? {}) : []).map((each) => (
    make("li", "", button(each, "suggestion", () => { byId("prompt").value = each; fit(); byId("prompt").focus(); }))
  )));
}

function suggestions(chats, card) {
  if (chats) return ["What do you know best?", "Explain your field to a newcomer in three sentences.", "Show me an example, step by step."];
  if (/python/i.test(`${card.domain} ${card.trained_on}`)) return ["import ", "def read_lines(path):", "class Queue:"];
  return ["The first step is to", "It is important that", "For example,"];
}

function notice(message, hint = "", act = null) {
  const place = byId("notice");
  place.hidden = !message;
  place.replaceChildren(...[message && make("strong", "", message), hint && make("span", "", hint), act].filter(Boolean));
}

// --- asking

async function ask(said) {
  const names = lanes();
  const before = names.map((_, lane) => conversation.messages(lane, settings.now().system));
  const answers = names.map((name) => new Answer(name, isChat(name), said));
  conversation.ask(said, answers);
  showWelcome();
  setRunning(new AbortController());
  toEnd();
  await Promise.all(answers.map((answer, lane) => write(answer, before[lane], said)));
  setRunning(null);
  byId("prompt").focus({ preventScroll: true });
  showCards();
}

async function write(answer, before, said) {
  const { signal } = running;
  const clock = { began: performance.now(), first: null, pieces: 0, tokens: null, promptTokens: 0, end: "", waits: "" };
  const ticking = setInterval(() => answer.waits(waitingFor(clock)), 1000);
  try {
    await follow(answer, clock, before, said, signal);
    answer.end("done", figures(clock), null, again());
  } catch (error) {
    if (error.name === "AbortError") answer.end("stopped", `stopped${joined(figures(clock))}`, null, again());
    else fail(answer, error, clock);
  } finally {
    clearInterval(ticking);
    follows();
  }
}

async function follow(answer, clock, before, said, signal) {
  if (!answer.isChat) return read(answer, clock, { prompt: said }, signal);
  const all = [...before, { role: "user", content: said }];
  const room = contextOf(answer) - mostTokens(answer);
  await converse(answer, clock, all, context.fitted(answer.model, all, room), signal);
}

/** Ask with these messages of all; where the engine counts more tokens, with fewer of them. */
async function converse(answer, clock, all, messages, signal) {
  answer.note(context.leftOut(all, messages, contextOf(answer)));
  try {
    await read(answer, clock, { messages }, signal);
    context.learn(answer.model, messages, clock.promptTokens);
  } catch (error) {
    const isTooLong = error.code === TOO_LONG && !answer.text && context.canForget(messages);
    if (isTooLong) return converse(answer, clock, all, context.forgetting(messages), signal);
    if (!NO_TEMPLATE.test(error.message)) throw error;
    cards.set(answer.model, { ...cards.get(answer.model), chat: false });
    answer.becomesText();
    await read(answer, clock, { prompt: all.at(-1).content }, signal);
  }
}

async function read(answer, clock, asked, signal) {
  const { temperature } = settings.now();
  const body = { model: answer.model, temperature, max_tokens: mostTokens(answer), ...asked };
  for await (const piece of endpoint.answer(body, answer.isChat, signal)) take(answer, clock, piece);
}

const contextOf = (answer) => cards.get(answer.model)?.context_tokens ?? 0;

function mostTokens(answer) {
  const size = contextOf(answer);
  return settings.now().maxTokens ?? (size > 0 ? Math.min(MOST_TOKENS, Math.ceil(size / 2)) : MOST_TOKENS);
}

function take(answer, clock, { text, thought, end, tokens, promptTokens, waits }) {
  if (text || thought) {
    clock.first ??= performance.now();
    clock.pieces += 1;
  }
  if (text) {
    answer.add(text);
    follows();
  }
  if (waits) answer.waits(waits);
  clock.waits = waits ?? clock.waits;
  clock.end = end ?? clock.end;
  clock.tokens = tokens ?? clock.tokens;
  clock.promptTokens = promptTokens ?? clock.promptTokens;
}

function fail(answer, error, clock) {
  if (error.status === 401) askToken();
  const wait = error.retryAfterS ? `Try again in ${Math.ceil(error.retryAfterS)} s.` : "";
  answer.end("failed", figures(clock), { message: error.message, hint: [error.hint, wait].filter(Boolean).join(" ") }, again("Try again"));
}

function again(label = "Again") {
  return button(label, "quiet again", () => { if (!running) ask(conversation.takeBack()); });
}

function waitingFor({ began, waits }) {
  const s = Math.round((performance.now() - began) / 1000);
  if (s < SLOW_S) return waits;
  return `${waits || "waiting for the first word; the model may be loading"} · ${s} s`;
}

function figures({ began, first, pieces, tokens, end }) {
  if (first === null) return "";
  const count = tokens ?? pieces;
  const s = (performance.now() - first) / 1000;
  const found = [`${tokens === null ? "about " : ""}${count} ${count === 1 ? "token" : "tokens"}`];
  if (count > 1 && s > LEAST_S) found.push(`${speed((count - 1) / s)} tokens/s`);
  found.push(`first after ${((first - began) / 1000).toFixed(2)} s`);
  if (end === "length") found.push("cut at its longest");
  return found.join(" · ");
}

const speed = (rate) => rate.toFixed(rate < 100 ? 1 : 0);

const joined = (text) => (text ? ` · ${text}` : "");

function setRunning(controller) {
  running = controller;
  byId("send").hidden = running !== null;
  byId("stop").hidden = running === null;
  byId("model").disabled = byId("beside").disabled = running !== null;
}

// --- where one looks

const isAtEnd = () => byId("scroll").scrollHeight - byId("scroll").scrollTop - byId("scroll").clientHeight < 80;

function toEnd() {
  byId("scroll").scrollTop = byId("scroll").scrollHeight;
}

function follows() {
  if (isAtEnd()) requestAnimationFrame(toEnd);
}

function fit() {
  const field = byId("prompt");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, 240)}px`;
}

function showAbout(isShown) {
  document.body.classList.toggle("with-card", isShown);
  byId("show-card").setAttribute("aria-expanded", String(isShown));
}

const roomForCard = matchMedia("(min-width: 64rem)");

// --- the token

function askToken() {
  const dialog = byId("ask-token");
  if (dialog.open) return;
  byId("token").value = "";
  dialog.showModal();
}

async function tryToken(event) {
  event.preventDefault();
  endpoint.useToken(byId("token").value.trim());
  try {
    fillPickers(await endpoint.models());
  } catch (error) {
    byId("token-wrong").hidden = error.status !== 401;
    if (error.status === 401) return;
    notice(error.message, error.hint);
  }
  byId("token-wrong").hidden = true;
  byId("ask-token").close();
  await showCards();
  byId("prompt").focus();
}

// --- keys and buttons

function send() {
  const field = byId("prompt");
  const said = field.value;
  if (running || !said.trim() || !known.length) return;
  field.value = "";
  fit();
  ask(said);
}

function newChat() {
  running?.abort();
  conversation.clear();
  notice("");
  showWelcome();
  byId("prompt").focus();
}

function prepare() {
  byId("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
  byId("prompt").addEventListener("input", fit);
  byId("prompt").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && running && !document.querySelector("dialog[open]")) running.abort();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("new-chat").addEventListener("click", newChat);
  byId("show-settings").addEventListener("click", settings.openDrawer);
  byId("show-card").addEventListener("click", () => showAbout(!document.body.classList.contains("with-card")));
  byId("switch-theme").addEventListener("click", () => globalThis.jupiterTheme.choose(globalThis.jupiterTheme.isDark() ? "light" : "dark"));
  byId("model").addEventListener("change", showCards);
  byId("beside").addEventListener("change", showCards);
  byId("token-form").addEventListener("submit", tryToken);
  byId("ask-token").addEventListener("cancel", (event) => event.preventDefault());
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !running) begin(); });
  settings.prepare(showWelcome);
  roomForCard.addEventListener("change", () => showAbout(roomForCard.matches));
  showAbout(roomForCard.matches);
}

prepare();
await begin();
