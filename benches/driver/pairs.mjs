// Measures: both sides of a pair one right after the other, several times, so that what else the machine does falls on both.

/**
 * Seconds that one measurement should last, seconds of warm-up before (V8 tiers up meanwhile), pairs, and seconds after
 * which what is measured alone is not measured again.
 */
export const THOROUGH = { lasts: 0.15, warm: 0.6, pairs: 7, most: 20 };
export const QUICK = { lasts: 0.05, warm: 0.2, pairs: 3, most: 2 };

/** The median, the least and the greatest. */
export function spread(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const median = sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  return { median, min: sorted[0], max: sorted.at(-1) };
}

/** A question to a host: `(passes) => seconds a pass`. */
export function question(host, side, words) {
  return async (passes) => {
    const answer = await host.ask(side, words, passes);
    if (!Number.isFinite(answer)) throw new Error(`${side} has no answer to \`${words}\``);
    return answer;
  };
}

/** Warms a question up, and gives it back with as many passes as one measurement needs. */
async function warmed(ask, effort) {
  let mean = await ask(1);
  for (let spent = mean, passes = 1; spent < effort.warm; passes *= 2) {
    mean = await ask(passes);
    spent += mean * passes;
  }
  const passes = Math.max(1, Math.ceil(effort.lasts / mean));
  return () => ask(passes);
}

/** Times of one question alone. */
export async function alone(ask, effort) {
  const measure = await warmed(ask, effort);
  const times = [];
  for (let i = 0, spent = 0; i < effort.pairs && spent < effort.most; i++) {
    times.push(await measure());
    spent += times.at(-1);
  }
  return spread(times);
}

/**
 * Times of `ours` beside those of each of `others`, pair by pair and in turns first and second.
 * Gives the spread of our times, and for each other one of its times and of the pairs' ratios, other ÷ ours.
 */
export async function beside(ours, others, effort) {
  const mine = await warmed(ours, effort);
  const theirs = [];
  for (const other of others) theirs.push({ measure: await warmed(other, effort), times: [], ratios: [] });
  const times = [];
  for (let i = 0; i < effort.pairs; i++) {
    for (const other of theirs) {
      const order = i % 2 ? [other.measure, mine] : [mine, other.measure];
      const pair = [await order[0](), await order[1]()];
      const [own, its] = i % 2 ? pair.reverse() : pair;
      times.push(own);
      other.times.push(its);
      other.ratios.push(its / own);
    }
  }
  return {
    ours: spread(times),
    others: theirs.map(({ times, ratios }) => ({ time: spread(times), ratio: spread(ratios) })),
  };
}
