// Owns which of the oldest turns a model is not told again, where its context has no room for the
// whole conversation. Doesn't know the endpoint, nor how it is told.

const USUAL_CHARACTERS = 3; // of a token, before an answer has shown how many they are

const perToken = new Map();

/** Learn from an answer how many characters a token of a model has. */
export function learn(model, messages, tokens) {
  if (tokens > 0) perToken.set(model, lengthOf(messages) / tokens);
}

/** Return the messages without the oldest turns for which so many tokens have no room. */
export function fitted(model, messages, tokens) {
  const most = tokens * (perToken.get(model) ?? USUAL_CHARACTERS);
  let kept = messages;
  while (tokens > 0 && canForget(kept) && lengthOf(kept) > most) kept = forgetting(kept);
  return kept;
}

/** Say whether anything was said before the last question. */
export const canForget = (messages) => turnsIn(messages) > 1;

/** Return the messages without the oldest question and its answer; what a system says stays. */
export function forgetting(messages) {
  const first = messages.findIndex((each) => each.role === "user");
  const next = messages.findIndex((each, at) => at > first && each.role === "user");
  return [...messages.slice(0, first), ...messages.slice(next)];
}

/** Return what is said of the turns that are left out. */
export function leftOut(all, kept, context) {
  const turns = turnsIn(all) - turnsIn(kept);
  if (!turns) return "";
  const size = context > 0 ? ` of ${context.toLocaleString("en")} tokens` : "";
  const oldest = turns === 1 ? "the oldest question and its answer are" : `the ${turns} oldest questions and their answers are`;
  return `The context${size} has no room for the whole conversation: ${oldest} left out.`;
}

const turnsIn = (messages) => messages.filter((each) => each.role === "user").length;

const lengthOf = (messages) => messages.reduce((sum, each) => sum + each.content.length, 0);
