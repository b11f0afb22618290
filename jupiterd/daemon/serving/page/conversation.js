// Owns one conversation: what was said, by whom, and how that is drawn. Doesn't know the endpoint.

import { make } from "./dom.js";
import { copyButton, draw } from "./markdown.js";

/** One answer, while it is written and afterwards. */
export class Answer {
  constructor(model, isChat, prompt) {
    Object.assign(this, { model, isChat, prompt, text: "", state: "waiting", figures: "", error: null });
    this.body = make("div");
    this.below = make("p", "figures");
    this.trouble = make("div", "trouble");
    this.trouble.hidden = true;
    this.noted = make("p", "noted");
    this.noted.hidden = true;
    this.element = make("article", "answer", make("h3", "", model), this.noted, this.body, this.trouble, this.below);
    this.element.setAttribute("aria-busy", "true");
    this.frame = 0;
    this.show();
  }

  /** Go on as a text: the model has no way to be talked to. */
  becomesText() {
    this.isChat = false;
    this.show();
  }

  /** Say something of how it was asked; nothing: there is nothing to say. */
  note(message) {
    this.noted.hidden = !message;
    this.noted.textContent = message;
  }

  /** Take what came; it is drawn with the next picture. */
  add(text) {
    this.text += text;
    this.state = "writing";
    this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.show(); });
  }

  /** Say that it has waited this long for its first word. */
  waits(message) {
    if (this.state === "waiting") this.below.textContent = message;
  }

  /** End it: `done`, `stopped` or `failed`. */
  end(state, figures, error = null, again = null) {
    cancelAnimationFrame(this.frame);
    Object.assign(this, { state, figures, error, frame: 0 });
    this.show();
    if (error) this.tell(error);
    const copy = this.text && navigator.clipboard ? copyButton(() => this.text) : null;
    this.below.replaceChildren(make("span", "", figures), make("span", "deeds", copy, again));
    this.element.setAttribute("aria-busy", "false");
  }

  tell(error) {
    this.trouble.hidden = false;
    this.trouble.replaceChildren(make("strong", "", error.message), ...(error.hint ? [make("span", "", error.hint)] : []));
  }

  show() {
    this.element.dataset.state = this.state;
    this.body.className = this.isChat ? "said" : "said text";
    if (this.isChat) draw(this.text.trimEnd(), this.body);
    else this.body.replaceChildren(make("span", "given", this.prompt), make("span", "", this.text));
  }
}

/** What was said so far. */
export class Conversation {
  constructor(element) {
    this.element = element;
    this.turns = [];
  }

  get isEmpty() {
    return this.turns.length === 0;
  }

  /** Begin a turn: what the user says, and an answer of each model. */
  ask(said, answers) {
    const asked = make("article", "asked", make("h3", "unseen", "You"), make("div", "", said));
    const lanes = make("div", answers.length > 1 ? "lanes two" : "lanes", ...answers.map((each) => each.element));
    this.turns.push({ said, answers, nodes: [asked, lanes] });
    this.element.append(asked, lanes);
  }

  /** Take the last turn away; return what the user said in it. */
  takeBack() {
    const last = this.turns.pop();
    last?.nodes.forEach((node) => node.remove());
    return last?.said ?? "";
  }

  /** Forget everything. */
  clear() {
    this.turns = [];
    this.element.replaceChildren();
  }

  /** Return the messages before what `lane` is asked next, without answers that failed. */
  messages(lane, system) {
    const before = system.trim() ? [{ role: "system", content: system }] : [];
    return [...before, ...this.turns.flatMap(({ said, answers }) => {
      const answer = answers[lane] ?? answers[0];
      if (!answer.text) return [];
      return [{ role: "user", content: said }, { role: "assistant", content: answer.text }];
    })];
  }
}
