// Loads one side of the benchmark, as `wasm-bindgen --target web` left it, into a JavaScript host: node or a page.

let instances = 0;

/**
 * A new side with a memory of its own: `ask(words, passes)` answers with a number, `bytes()` is its memory's size.
 * `source` is what wasm-bindgen takes for the module's bytes, if it should not fetch them.
 */
export async function load(url, source) {
  // A module is made once for each address.
  const { default: init } = await import(`${url}?${++instances}`);
  const { memory } = await init(source && { module_or_path: source });
  const ask = globalThis.side;
  delete globalThis.side;
  return { ask, bytes: () => memory.buffer.byteLength };
}
