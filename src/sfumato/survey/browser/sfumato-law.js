/* How answers are blurred, and what is checked before: pure functions, with a twin in Python
 * (sfumato.survey.perturbation, .checks, .definition); both are held to the same vectors.
 */

export class Refused extends Error {}

/* ---- Questions -------------------------------------------------------------------------------------------------- */

/** What is blurred by itself: a question, or an option of a multiple choice; not the class of a guided survey. */
export function itemsOf(definition) {
  const clear = definition.mode === "guided" ? definition.class : "";
  return definition.questions.filter(({ name }) => name !== clear).flatMap((question) => {
    const share = question.kind === "multiple" ? 1 / question.options.length : 1;
    const item = (option, labels) => ({ question: question.name, option, labels, size: labels.length, share });
    return question.kind === "multiple" ? question.options.map((one) => item(one, ["no", "yes"])) : [item("", labelsOf(question))];
  });
}

export function labelsOf({ kind, options, cuts, unit }) {
  if (kind !== "number") return options;
  const between = cuts.slice(1).map((high, i) => `${cuts[i]} to ${high}`);
  return [`below ${cuts[0]}`, ...between, `${cuts.at(-1)} or more`].map((bin) => (unit ? `${bin} ${unit}` : bin));
}

const LIMITS = { exposure: 0.6, capacity: 3 }; // what no survey may loosen

/** Refuses a definition that does not do what it says, or whose limits are looser than this module's own. */
export function checkDefinition(definition) {
  const hold = (holds, what) => {
    if (!holds) throw new Refused(`the survey is not as it must be: ${what}`);
  };
  const { mode, questions, levels, guided: rules } = definition;
  hold(["randomised", "guided"].includes(mode), "its mode");
  hold(questions.length > 0 && new Set(questions.map(({ name }) => name)).size === questions.length, "its questions");
  for (const { kind, options, cuts } of questions)
    hold(kind === "number" ? cuts.every(Number.isFinite) && cuts.length : ["choice", "multiple"].includes(kind) && new Set(options).size === options.length, "its questions");
  const items = itemsOf(definition), count = new Set(items.map(({ question }) => question)).size;
  hold(items.every(({ size }) => size >= 2 && size <= 64), "the number of options");
  for (const { epsilon, total, retention } of levels) {
    hold(epsilon > 0 && epsilon <= 20 && near(total, epsilon * count) && retention.length === items.length, "its levels");
    const kept = items.map(({ size, share }) => Math.expm1(epsilon * share) / (Math.expm1(epsilon * share) + size));
    hold(kept.every((one, i) => near(one, retention[i])), "its retention probabilities");
  }
  hold(rules.floor >= 0 && rules.floor <= 0.45, "its floor");
  for (const name of Object.keys(LIMITS)) hold(rules[name] > 0 && rules[name] <= LIMITS[name], `its limit of ${name}`);
  hold(Number.isFinite(Date.parse(definition.ends)), "its deadline");
}

const near = (one, other) => Math.abs(one - other) <= 1e-12 * Math.max(1, Math.abs(other));

/* ---- The law ------------------------------------------------------------------------------------------------- */

export const UNIT = 2 ** 53;

/** So many integers below 2^53 from the device's own source of randomness. */
export function drawn(count) {
  const words = new Uint32Array(2 * count);
  for (let at = 0; at < words.length; at += 16384) crypto.getRandomValues(words.subarray(at, at + 16384));
  return Float64Array.from({ length: count }, (_, i) => (words[2 * i] >>> 11) * 2 ** 32 + words[2 * i + 1]);
}

/** Answers as one number for each item; `null` where a question is not answered as it must be. */
export function code(definition, answers) {
  const clear = definition.mode === "guided" ? definition.class : "";
  const codes = definition.questions.filter(({ name }) => name !== clear).flatMap((one) => coded(one, answers[one.name]));
  return codes.includes(-1) ? null : codes;
}

export function coded(question, answer) {
  if (question.kind === "number")
    return [Number.isFinite(answer) ? question.cuts.filter((cut) => cut <= answer).length : -1];
  if (question.kind === "multiple") return question.options.map((one) => Number((answer ?? []).includes(one)));
  return [question.options.indexOf(answer)];
}

/** Keeps each answer with its retention probability, else puts any option in its place. */
export function randomise(codes, sizes, retention, draws) {
  return codes.map((value, i) => (draws[2 * i] / UNIT < retention[i] ? value : draws[2 * i + 1] % sizes[i]));
}

/** One bit for each option. */
export function bits(codes, sizes) {
  return sizes.flatMap((size, i) => Array.from({ length: size }, (_, value) => Number(value === codes[i])));
}

/** The probability of each bit that is sent: min((t V V')^2, 1), between the floor and its complement. */
export function chances(row, matrix, floor) {
  const along = new Float64Array(matrix[0].length);
  row.forEach((bit, j) => along.forEach((sum, c) => (along[c] = sum + bit * matrix[j][c])));
  return matrix.map((weights) => {
    let back = 0;
    along.forEach((value, c) => (back += value * weights[c]));
    return (1 - 2 * floor) * Math.min(back * back, 1) + floor;
  });
}

/** The row that is sent. */
export function guided(row, matrix, floor, draws) {
  return chances(row, matrix, floor).map((chance, j) => Number(draws[j] / UNIT < chance));
}

/* ---- The checks: they depend on the guidance alone, never on the answers --------------------------------------- */

export async function digestOf(schema, epoch, matrix) {
  const said = new TextEncoder().encode(`${schema}:${epoch}:${matrix.length}:${matrix[0].length}:`);
  const all = new DataView(new ArrayBuffer(said.length + 8 * matrix.length * matrix[0].length));
  said.forEach((byte, i) => all.setUint8(i, byte));
  matrix.flat().forEach((value, i) => all.setFloat64(said.length + 8 * i, value, true));
  return sha256(all);
}

export async function sha256(data) {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  return Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Uniform numbers from a seed of eight hexadecimal digits: mulberry32. */
export function stream(seed, count) {
  let at = parseInt(seed.slice(0, 8), 16);
  return Float64Array.from({ length: count }, () => {
    at = (at + 0x6d2b79f5) >>> 0;
    let z = Math.imul(at ^ (at >>> 15), at | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  });
}

/** For each item, the share of its bits that somebody who knows all other answers can tell, on average. */
export function exposures(matrix, sizes, seed, floor) {
  const width = matrix.length, items = sizes.length;
  const people = Math.max(128, Math.min(1024, Math.floor(32768 / width)));
  const uniform = stream(seed, people * (items + width));
  return sizes.map((size, item) => {
    let ambiguity = 0;
    for (let who = 0; who < people; who++) {
      const codes = sizes.map((s, i) => Math.floor(Math.min(uniform[who * items + i] * s, s - 1)));
      const coins = uniform.subarray(people * items + who * width, people * items + (who + 1) * width);
      const law = Array.from({ length: size }, (_, value) => chances(bits(Object.assign([...codes], { [item]: value }), sizes), matrix, floor));
      for (let truth = 0; truth < size; truth++) {
        const likely = law.map((chance) => {
          let product = 1;
          for (let j = 0; j < width; j++) product *= coins[j] < law[truth][j] ? chance[j] : 1 - chance[j];
          return product;
        });
        ambiguity += Math.log2(likely.reduce((sum, one) => sum + one) / likely[truth]);
      }
    }
    return Math.max(0, 1 - ambiguity / people / size / Math.log2(size));
  });
}

const CUTS = { 1: [1, 2, 3, 4, 5, 6, 8], 2: [1, 2, 3, 4, 5, 6, 8], 3: [2, 3, 4, 6, 8], 4: [2, 4] };

/** Bits that a row cannot exceed, whatever the collector knows of people. */
export function mostBits(matrix, sizes, floor) {
  const level = matrix[0].length, low = new Float64Array(level), high = new Float64Array(level);
  let start = 0;
  for (const size of sizes) {
    for (let c = 0; c < level; c++) {
      const some = matrix.slice(start, start + size).map((row) => row[c]);
      low[c] += Math.min(...some);
      high[c] += Math.max(...some);
    }
    start += size;
  }
  const cuts = CUTS[level] ?? [1];
  let ways = [[]];
  for (let c = 0; c < level; c++) ways = ways.flatMap((way) => cuts.map((parts) => [...way, parts]));
  const plain = sizes.reduce((sum, size) => sum + Math.log2(size), 0);
  return Math.min(plain, ...ways.map((parts) => bitsInBoxes(matrix, low, high, parts, sizes.length, floor)));
}

function bitsInBoxes(matrix, low, high, parts, items, floor) {
  const step = parts.map((count, c) => (high[c] - low[c]) / count);
  const reach = matrix.map((row) => row.reduce((sum, v, c) => sum + (Math.abs(v) * step[c]) / 2, 0));
  const found = [];
  for (let box = 0; box < parts.reduce((all, count) => all * count, 1); box++) {
    let rest = box;
    const corner = parts.map((count, c) => {
      const at = rest % count;
      rest = Math.floor(rest / count);
      return low[c] + at * step[c];
    });
    if (corner.reduce((sum, v, c) => sum + Math.max(v, -v - step[c], 0) ** 2, 0) > items) continue; // |V't| <= |t|
    found.push(matrix.reduce((sum, row, j) => {
      const centre = Math.abs(row.reduce((all, v, c) => all + v * (corner[c] + step[c] / 2), 0));
      const ends = [Math.max(centre - reach[j], 0), centre + reach[j]];
      return sum + binaryCapacity(...ends.map((end) => (1 - 2 * floor) * Math.min(end * end, 1) + floor));
    }, 0));
  }
  const most = found.reduce((a, b) => Math.max(a, b));
  return most + Math.log2(found.reduce((sum, one) => sum + 2 ** (one - most), 0));
}

function binaryCapacity(low, high) {
  const gap = high - low, entropy = (p) => (p <= 0 || p >= 1 ? 0 : -p * Math.log2(p) - (1 - p) * Math.log2(1 - p));
  if (gap < 1e-9) return 0;
  const [a, b] = [entropy(low), entropy(high)];
  return Math.max(0, (low * b - high * a) / gap + Math.log2(1 + 2 ** ((a - b) / gap)));
}

/** Refuses what is no guidance at all. */
export function sound(matrix, sizes) {
  const width = sizes.reduce((sum, size) => sum + size, 0);
  const level = Array.isArray(matrix) && Array.isArray(matrix[0]) ? matrix[0].length : 0;
  if (matrix?.length !== width || level < 1 || level > width || !matrix.every((row) => row?.length === level))
    throw new Refused("its shape does not fit the questions");
  if (!matrix.flat().every(Number.isFinite)) throw new Refused("it holds values that are no numbers");
  for (let a = 0; a < level; a++)
    for (let b = 0; b <= a; b++)
      if (Math.abs(matrix.reduce((sum, row) => sum + row[a] * row[b], 0) - Number(a === b)) > 1e-6)
        throw new Refused("its directions are not orthonormal");
}

/** What guidance can tell; throws `Refused` if that is more than was promised. */
export function inspect(matrix, sizes, { seed, allowed, floor, exposure, capacity }) {
  sound(matrix, sizes);
  const level = matrix[0].length;
  if (level > allowed) throw new Refused(`it asks for ${level} directions, and ${allowed} are allowed`);
  const clearest = Math.max(...exposures(matrix, sizes, seed, 0)); // the floor must not hide what guidance aims at
  if (!(clearest <= exposure)) throw new Refused(`it aims at a single answer, of which it would read ${percent(clearest)}`);
  const found = { exposure: exposures(matrix, sizes, seed, floor), capacity: mostBits(matrix, sizes, floor) };
  if (!(found.capacity <= capacity * allowed))
    throw new Refused(`it would tell up to ${found.capacity.toFixed(1)} bits, and ${capacity * allowed} are allowed`);
  return found;
}

export const percent = (share) => `${Math.round(100 * share)} %`;
