// Owns making elements. What is text stays text: there is no way here to make markup of a string.

/** Return an element with a class, and with nodes or texts in it. */
export function make(tag, className = "", ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside.filter((each) => each || each === 0));
  return element;
}

/** Return the element of the page with that id. */
export const byId = (id) => document.getElementById(id);

/** Return a button that does something. */
export function button(label, className, act) {
  const made = make("button", className, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}
