// The colours of the site, which may be chosen there, and else those of the system. A frame is as high as its page.
// (A page that was opened from a file does not see the one around it.)
const system = matchMedia("(prefers-color-scheme: dark)");
let site = null;
try { site = parent === window ? null : parent.document.body; } catch { }
function follow() {
  const chosen = site?.dataset.theme;
  const dark = chosen === "light" || chosen === "dark" ? chosen === "dark" : system.matches;
  document.documentElement.classList.toggle("dark", dark);
}
function fit() { if (site) frameElement.style.height = `${document.body.scrollHeight + 8}px`; }
system.addEventListener("change", follow);
if (site) {
  new MutationObserver(follow).observe(site, {attributes: true, attributeFilter: ["data-theme"]});
  addEventListener("load", fit);
  addEventListener("resize", fit);
}
follow();
