// Loads one side of the benchmark, as `wasm-bindgen --target web` left it, into a JavaScript host: node or a page.

/**
 * A side of its own: `ask(words, passes)` answers with a number, `bytes()` is the size of its wasm memory.
 * `source` is what wasm-bindgen takes for the module's bytes; `instance` tells instances of one module apart.
 */
export async function load(url, source, instance = 0) {
  const { default: init } = await import(`${url}?${instance}`);
  const { memory } = await init(source && { module_or_path: source });
  const ask = globalThis.side;
  delete globalThis.side;
  return { ask, bytes: () => memory.buffer.byteLength };
}
