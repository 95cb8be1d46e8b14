// A page in a frame has the colours that are chosen on the site around it, or else those of the system, and the frame is
// as high as its page. (A page that was opened from a file does not see the one around it.)
let site = null;
try { site = parent === window ? null : parent.document.body; } catch { }
function follow() {
  const chosen = site.dataset.theme;
  document.documentElement.style.colorScheme = chosen === "light" || chosen === "dark" ? chosen : "";
}
function fit() { frameElement.style.height = `${document.body.scrollHeight + 8}px`; }
if (site) {
  new MutationObserver(follow).observe(site, {attributes: true, attributeFilter: ["data-theme"]});
  addEventListener("load", fit);
  addEventListener("resize", fit);
  follow();
}
