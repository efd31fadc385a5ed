// Once the page is up, what it needs is kept for when there is no network. Where that cannot be, nothing is missing.
if (window.isSecureContext && "serviceWorker" in navigator) {
  const register = () => navigator.serviceWorker.register("service_worker.js").catch(() => {});
  if (document.readyState === "complete") register();
  else window.addEventListener("load", register);
}
