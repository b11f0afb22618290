// Owns the card of a model: what is known of it, in the words of people. What isn't told is left
// out. Doesn't know where it comes from.

import { make } from "./dom.js";

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const ID_CHARACTERS = 8;

const VERDICTS = {
  PROMOTE: ["promoted", "good"],
  PROMOTE_PROVISIONAL: ["promoted on trial", "good"],
  HOLD: ["held back", "calm"],
  REJECT: ["rejected", "bad"],
};

/** Return the card of a model called `name`. */
export function cardOf(name, told) {
  const other = text(told.name) === name ? "" : text(told.name);
  const card = make("article", "card", make("h2", "", name, other && make("small", "", ` is ${other}`)));
  card.append(...badges(told), ...score(told));
  const rows = rowsOf(told);
  if (rows.length) card.append(make("dl", "", ...rows));
  else if (!score(told).length) card.append(make("p", "hint", "The endpoint tells nothing more of this model."));
  if (text(told.reason)) card.append(make("p", "reason", told.reason));
  return card;
}

function badges(told) {
  const found = [];
  if (text(told.verdict)) {
    const [word, look] = VERDICTS[told.verdict] ?? [told.verdict.toLowerCase(), "calm"];
    found.push(make("span", `badge ${look}`, word));
  }
  if (text(told.kind)) found.push(make("span", "badge calm", told.kind));
  if (told.chat === false) found.push(make("span", "badge calm", "goes on with texts"));
  return found.length ? [make("p", "badges", ...found)] : [];
}

function score(told) {
  const bits = number(told.bits_per_byte ?? told.val_bpb);
  if (bits === null) return [];
  const before = number(told.base_bits_per_byte);
  const beside = before === null ? "" : `, of its base ${before.toFixed(4)}`;
  return [make("p", "score", make("strong", "", bits.toFixed(4)), " bits per byte", make("span", "hint", `of text that it has never seen${beside}; less is better`))];
}

function rowsOf(told) {
  const rows = [
    ["Trained on", list(told.trained_on) || text(told.domain)],
    [told.kind === "run" ? "Run" : "Cycle", of(told)],
    ["Steps", count(told.steps ?? told.step)],
    ["Tokens", count(told.tokens, SHORT)],
    ["Parameters", count(told.parameters, SHORT)],
    ["Context", count(told.context_tokens, WHOLE, " tokens")],
    ["Licence", list(told.licence ?? told.license)],
    ["Answers on", text(told.node)],
    ["Engine", text(told.engine)],
  ];
  return rows.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]);
}

function of(told) {
  const id = text(told.cycle).slice(0, ID_CHARACTERS);
  return id && told.kind !== "run" && number(told.round) ? `${id}, round ${told.round}` : id;
}

const text = (value) => (typeof value === "string" ? value : "");

const list = (value) => (Array.isArray(value) ? value.map(text).filter(Boolean).join(", ") : text(value));

const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

function count(value, form = WHOLE, unit = "") {
  return number(value) === null ? "" : form.format(value) + unit;
}
