// Owns what the user has set, and keeps it for the next visit. Doesn't know what it is used for.

import { byId } from "./dom.js";

const KEPT = "jupiter-settings";
const USUAL = { system: "", temperature: 0.7, maxTokens: null, way: "auto" };

let settings = { ...USUAL, ...kept() };

function kept() {
  try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; }
}

/** Return the settings as they are now. */
export const now = () => settings;

/** Let the drawer show the settings, and change them. */
export function openDrawer() {
  show();
  byId("settings").showModal();
}

/** Prepare the drawer; `changed` is called when a setting or the colours change. */
export function prepare(changed) {
  const drawer = byId("settings");
  const take = () => { read(); changed(); };
  byId("settings-form").addEventListener("input", take);
  byId("settings-form").addEventListener("submit", (event) => { event.preventDefault(); drawer.close(); });
  byId("close-settings").addEventListener("click", () => drawer.close());
  byId("reset-settings").addEventListener("click", () => { set(USUAL); show(); changed(); });
  byId("theme").addEventListener("change", (event) => globalThis.jupiterTheme.choose(event.target.value));
  drawer.addEventListener("click", (event) => { if (event.target === drawer) drawer.close(); });
}

function show() {
  byId("system").value = settings.system;
  byId("temperature").value = settings.temperature;
  byId("temperature-told").value = settings.temperature.toFixed(2);
  byId("max-tokens").value = settings.maxTokens ?? "";
  byId("way").value = settings.way;
  byId("theme").value = globalThis.jupiterTheme.chosen();
}

function read() {
  const most = Number.parseInt(byId("max-tokens").value, 10);
  set({
    system: byId("system").value,
    temperature: Number(byId("temperature").value),
    maxTokens: most > 0 ? most : null,
    way: byId("way").value,
  });
  byId("temperature-told").value = settings.temperature.toFixed(2);
}

function set(chosen) {
  settings = { ...chosen };
  try { localStorage.setItem(KEPT, JSON.stringify(settings)); } catch { /* then for this visit alone */ }
}
