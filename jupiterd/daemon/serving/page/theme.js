// Owns the colours: those that were chosen, from before the first picture on. Knows nothing else.
"use strict";
{
  const KEPT = "jupiter-theme";
  const kept = () => {
    try { return localStorage.getItem(KEPT); } catch { return null; }
  };
  const show = (theme) => {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  show(kept());

  globalThis.jupiterTheme = {
    /** Return `auto`, `light` or `dark`: what was chosen. */
    chosen: () => document.documentElement.dataset.theme ?? "auto",
    /** Say whether the page is dark now. */
    isDark() {
      const chosen = this.chosen();
      if (chosen !== "auto") return chosen === "dark";
      return matchMedia("(prefers-color-scheme: dark)").matches;
    },
    choose(theme) {
      show(theme);
      try { localStorage.setItem(KEPT, theme); } catch { /* then for this visit alone */ }
    },
  };
}
