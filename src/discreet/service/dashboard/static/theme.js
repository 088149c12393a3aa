// The chosen theme, before anything is drawn. Without a choice the system's is used.
"use strict";
try {
  const theme = localStorage.getItem("discreet-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* no storage: the system's theme */ }
document.documentElement.classList.add("scripted");
