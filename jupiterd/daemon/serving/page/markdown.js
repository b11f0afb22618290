// Owns how an answer looks: paragraphs, headings, lists, code, bold and italic words. Everything is
// put into text nodes; links and markup stay the text that they are. Doesn't know where it is shown.

import { button, make } from "./dom.js";

const FENCE = /^\s*(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const BULLET = /^\s*[-*+]\s+(.*)$/;
const NUMBERED = /^\s*(\d{1,9})[.)]\s+(.*)$/;
const QUOTE = /^\s*>\s?(.*)$/;
const INLINE = /(?<!`)(`+)(?!`)([^]*?[^`])\1(?!`)|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*/g;

/** Return the parts of a text, each with the lines that it is made of. */
export function blocksOf(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const block = blockAt(lines, at);
    if (block.kind !== "empty") blocks.push(block);
    at = block.end;
  }
  return blocks;
}

function blockAt(lines, at) {
  const line = lines[at];
  if (!line.trim()) return { kind: "empty", end: at + 1 };
  const fence = FENCE.exec(line);
  if (fence) return codeAt(lines, at, fence);
  if (HEADING.test(line)) return part("heading", lines, at, at + 1);
  const kind = kindOf(line);
  let end = at + 1;
  while (end < lines.length && goesOn(kind, lines[end])) end += 1;
  return part(kind, lines, at, end);
}

function codeAt(lines, at, [, mark, language]) {
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(mark)) end += 1;
  return { kind: "code", lines: lines.slice(at + 1, end), language, end: end + 1 };
}

const part = (kind, lines, at, end) => ({ kind, lines: lines.slice(at, end), end });

function kindOf(line) {
  if (BULLET.test(line)) return "bullets";
  if (NUMBERED.test(line)) return "numbers";
  return QUOTE.test(line) ? "quote" : "text";
}

function goesOn(kind, line) {
  if (!line.trim() || FENCE.test(line) || HEADING.test(line)) return false;
  const next = kindOf(line);
  return next === kind || (next === "text" && kind !== "quote" && /^\s/.test(line));
}

/** Draw a text into an element; parts that are as they were before keep their nodes. */
export function draw(text, into) {
  const drawn = into.drawn ?? [];
  const blocks = blocksOf(text);
  let same = 0;
  while (same < drawn.length && drawn[same] === keyOf(blocks[same])) same += 1;
  while (into.childNodes.length > same) into.lastChild.remove();
  into.append(...blocks.slice(same).map(nodeOf));
  into.drawn = blocks.map(keyOf);
}

const keyOf = (block) => block && JSON.stringify([block.kind, block.language, block.lines]);

function nodeOf(block) {
  switch (block.kind) {
    case "code": return codeNode(block.lines.join("\n"), block.language);
    case "heading": return headingNode(block.lines[0]);
    case "bullets": return listNode("ul", block.lines, BULLET, 1);
    case "numbers": return listNode("ol", block.lines, NUMBERED, 2);
    case "quote": return make("blockquote", "", ...words(block.lines.map((line) => QUOTE.exec(line)[1])));
    default: return make("p", "", ...words(block.lines));
  }
}

function headingNode(line) {
  const [, marks, title] = HEADING.exec(line);
  return make(`h${Math.min(6, marks.length + 2)}`, "", ...inline(title));
}

function listNode(tag, lines, form, place) {
  const items = [];
  for (const line of lines) {
    const found = form.exec(line);
    if (found) items.push([found[place]]);
    else items.at(-1).push(line.trim());
  }
  const list = make(tag, "", ...items.map((item) => make("li", "", ...words(item))));
  if (tag === "ol") list.start = Number(NUMBERED.exec(lines[0])[1]);
  return list;
}

const words = (lines) => inline(lines.join("\n"));

function inline(text) {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    nodes.push(text.slice(end, found.index), inlineNode(found));
    end = found.index + found[0].length;
  }
  return [...nodes, text.slice(end)].filter((each) => each !== "");
}

function inlineNode([, , code, bold, italic]) {
  if (code !== undefined) return make("code", "", /^ .*[^ ].* $/s.test(code) ? code.slice(1, -1) : code);
  return bold === undefined ? make("em", "", italic) : make("strong", "", bold);
}

function codeNode(code, language) {
  const top = make("div", "code-top", make("span", "", language || "code"));
  if (navigator.clipboard) top.append(copyButton(() => code));
  const text = make("pre", "", make("code", "", code));
  text.tabIndex = 0;
  return make("div", "code", top, text);
}

/** Return a button that copies a text. */
export function copyButton(textOf) {
  const made = button("Copy", "quiet", async () => {
    await navigator.clipboard.writeText(textOf()).then(
      () => { made.textContent = "Copied"; },
      () => { made.textContent = "Not allowed"; },
    );
    setTimeout(() => { made.textContent = "Copy"; }, 1500);
  });
  return made;
}
