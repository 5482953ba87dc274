/* Perturbation of answers, and the privacy checks before it: pure functions, with a twin in Python
 * (sfumato.survey.perturbation, .device_checks, .definition). Both are tested with the same vectors.
 */

/** A definition, an answer or guidance that was refused; the message is the reason. */
export class Refused extends Error {}

/* ---- Questions -------------------------------------------------------------------------------------------------- */

/** The variables that are perturbed: single answers and options of multiple choices, but not the class of a guided survey. */
export function itemsOf(definition) {
  return perturbedQuestions(definition).flatMap((question) => {
    const epsilonShare = question.kind === "multiple" ? 1 / question.options.length : 1;
    const item = (option, labels) => ({ question: question.name, option, labels, size: labels.length, epsilonShare });
    return question.kind === "multiple" ? question.options.map((one) => item(one, ["no", "yes"])) : [item("", labelsOf(question))];
  });
}

function perturbedQuestions({ mode, questions, class: target }) {
  return questions.filter(({ name }) => mode !== "guided" || name !== target);
}

/** The possible answers to a question with a single answer, as text. */
export function labelsOf({ kind, options, cuts, unit }) {
  if (kind === "ranking") return rankings(options).map((order) => order.join(" > "));
  if (kind === "date") return [`before ${cuts[0]}`, ...cuts.slice(1).map((high, i) => `from ${cuts[i]}, before ${high}`), `from ${cuts.at(-1)}`];
  if (kind !== "number") return options;
  const between = cuts.slice(1).map((high, i) => `${cuts[i]} to ${high}`);
  return [`below ${cuts[0]}`, ...between, `${cuts.at(-1)} or more`].map((bin) => (unit ? `${bin} ${unit}` : bin));
}

/** All orders of some options, those of the first option first. */
function rankings(options) {
  if (options.length < 2) return [options];
  return options.flatMap((first, i) => rankings(options.toSpliced(i, 1)).map((rest) => [first, ...rest]));
}

const isDay = (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && Number.isFinite(Date.parse(text)) && new Date(text).toISOString().startsWith(text);
const MOST_RANKED = 4; // options of a ranking

/** Whether a question has the parts that its kind needs. */
function isValid({ kind, options, cuts }) {
  if (kind === "number" || kind === "date") return cuts.length > 0 && cuts.every(kind === "date" ? isDay : Number.isFinite);
  if (!["choice", "multiple", "scale", "ranking"].includes(kind)) return false;
  return new Set(options).size === options.length && (kind !== "ranking" || options.length <= MOST_RANKED);
}

const LIMITS = { exposure: 0.6, capacity: 3 }; // the loosest limits that a survey may set
const MAX_EPSILON = 3; // per question; above it, randomised response sends almost every answer unchanged

/** How well a level protects an answer, in words, by its epsilon per question. */
export const protection = (epsilon) => `${epsilon <= 0.5 ? "strong" : epsilon <= 1 ? "good" : epsilon <= 2 ? "moderate" : "weak"} protection`;

/** Refuses a definition that contradicts itself, or whose limits are looser than this module's own. */
export function checkDefinition(definition) {
  const check = (condition, part) => {
    if (!condition) throw new Refused(`the survey's definition is not valid: ${part}`);
  };
  const { mode, questions, levels, guided: settings } = definition;
  check(["randomised", "guided"].includes(mode), "its mode");
  check(questions.length > 0 && new Set(questions.map(({ name }) => name)).size === questions.length, "its questions");
  check(questions.every(isValid), "its questions");
  const items = itemsOf(definition), count = new Set(items.map(({ question }) => question)).size;
  check(items.every(({ size }) => size >= 2 && size <= 64), "the number of options");
  for (const { epsilon, total, retention } of levels) {
    check(epsilon <= MAX_EPSILON, `a level would send almost every answer unchanged (ε is ${epsilon}, and at most ${MAX_EPSILON} is accepted)`);
    check(epsilon > 0 && near(total, epsilon * count) && retention.length === items.length, "its levels");
    const kept = items.map(({ size, epsilonShare }) => Math.expm1(epsilon * epsilonShare) / (Math.expm1(epsilon * epsilonShare) + size));
    check(kept.every((one, i) => near(one, retention[i])), "its retention probabilities");
  }
  check(settings.floor >= 0 && settings.floor <= 0.45, "its floor");
  for (const name of Object.keys(LIMITS)) check(settings[name] > 0 && settings[name] <= LIMITS[name], `its limit of ${name}`);
  check(Number.isFinite(Date.parse(definition.ends)), "its deadline");
}

const near = (one, other) => Math.abs(one - other) <= 1e-12 * Math.max(1, Math.abs(other));

/* ---- Perturbation ------------------------------------------------------------------------------------------------- */

export const UNIT = 2 ** 53;

/** Uniform integers below 2^53 from a seed of 64 hexadecimal digits: the key stream of AES-256 in counter mode. */
export async function seededIntegers(seed, count) {
  const bytes = Uint8Array.from(seed.match(/../g), (two) => parseInt(two, 16));
  const key = await crypto.subtle.importKey("raw", bytes, "AES-CTR", false, ["encrypt"]);
  const stream = await crypto.subtle.encrypt({ name: "AES-CTR", counter: new Uint8Array(16), length: 64 }, key, new Uint8Array(8 * count));
  const words = new DataView(stream);
  return Float64Array.from({ length: count }, (_, i) => (words.getUint32(8 * i) >>> 11) * 2 ** 32 + words.getUint32(8 * i + 4));
}

/** The integer codes of answers, one for each item; `null` if any question has no valid answer. */
export function encode(definition, answers) {
  const codes = perturbedQuestions(definition).flatMap((one) => encodeAnswer(one, answers[one.name]));
  return codes.includes(-1) ? null : codes;
}

/** The integer code of an answer for each item of its question; -1 if the answer is not valid. */
export function encodeAnswer(question, answer) {
  if (question.kind === "number")
    return [Number.isFinite(answer) ? question.cuts.filter((cut) => cut <= answer).length : -1];
  if (question.kind === "date") return [isDay(answer) ? question.cuts.filter((cut) => cut <= answer).length : -1];
  if (question.kind === "ranking") return [rankings(question.options).findIndex((order) => Array.isArray(answer) && answer.length === order.length && order.every((one, i) => one === answer[i]))];
  if (question.kind === "multiple") return question.options.map((one) => Number((answer ?? []).includes(one)));
  return [question.options.indexOf(answer)];
}

/** k-ary randomised response: keeps each answer with its retention probability, else replaces it by a random option. */
export function randomisedResponse(codes, sizes, retention, draws) {
  return codes.map((value, i) => (draws[2 * i] / UNIT < retention[i] ? value : draws[2 * i + 1] % sizes[i]));
}

/** One-hot encoding of answer codes: one bit for each option. */
export function oneHot(codes, sizes) {
  return sizes.flatMap((size, i) => Array.from({ length: size }, (_, value) => Number(value === codes[i])));
}

/** The probability that each sent bit is 1: min((t V V')^2, 1), between the floor and its complement. */
export function bitProbabilities(row, matrix, floor) {
  const coordinates = new Float64Array(matrix[0].length);
  row.forEach((bit, j) => coordinates.forEach((sum, c) => (coordinates[c] = sum + bit * matrix[j][c])));
  return matrix.map((weights) => {
    let projection = 0;
    coordinates.forEach((value, c) => (projection += value * weights[c]));
    return (1 - 2 * floor) * Math.min(projection * projection, 1) + floor;
  });
}

/** The perturbed row that is sent to a guided survey. */
export function guidedResponse(row, matrix, floor, draws) {
  return bitProbabilities(row, matrix, floor).map((probability, j) => Number(draws[j] / UNIT < probability));
}

/* ---- Checks of the guidance: they depend on it alone, never on the answers ---------------------------------------- */

/** The hash of some guidance, as published in the survey's public log. */
export async function digestOf(version, epoch, matrix) {
  const header = new TextEncoder().encode(`${version}:${epoch}:${matrix.length}:${matrix[0].length}:`);
  const all = new DataView(new ArrayBuffer(header.length + 8 * matrix.length * matrix[0].length));
  header.forEach((byte, i) => all.setUint8(i, byte));
  matrix.flat().forEach((value, i) => all.setFloat64(header.length + 8 * i, value, true));
  return sha256(all);
}

export async function sha256(data) {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  return Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Uniform numbers from a seed of eight hexadecimal digits, by the generator mulberry32. */
export function uniformStream(seed, count) {
  let state = parseInt(seed.slice(0, 8), 16);
  return Float64Array.from({ length: count }, () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  });
}

/** The average share of its bits that each item discloses to a collector who knows all other answers, for uniform answers. */
export function exposures(matrix, sizes, seed, floor) {
  const width = matrix.length, items = sizes.length;
  const people = Math.max(128, Math.min(1024, Math.floor(32768 / width)));
  const uniform = uniformStream(seed, people * (items + width));
  return sizes.map((size, item) => {
    let ambiguity = 0;
    for (let person = 0; person < people; person++) {
      const codes = sizes.map((s, i) => Math.floor(Math.min(uniform[person * items + i] * s, s - 1)));
      const draws = uniform.subarray(people * items + person * width, people * items + (person + 1) * width);
      const probabilities = Array.from({ length: size }, (_, value) => bitProbabilities(oneHot(Object.assign([...codes], { [item]: value }), sizes), matrix, floor));
      for (let truth = 0; truth < size; truth++) {
        const likelihoods = probabilities.map((p) => {
          let product = 1;
          for (let j = 0; j < width; j++) product *= draws[j] < probabilities[truth][j] ? p[j] : 1 - p[j];
          return product;
        });
        ambiguity += Math.log2(likelihoods.reduce((sum, one) => sum + one) / likelihoods[truth]);
      }
    }
    return Math.max(0, 1 - ambiguity / people / size / Math.log2(size));
  });
}

const GRID = 65; // points at which the largest disclosure of a bit is looked for

/** The largest share of its bits that each item can disclose, whatever a person answered, to a collector who knows all other answers.
 *
 * To answer v is to disclose D(P_v || mean of P_w) <= -log2 mean_w 2^-D(P_v || P_w) bits (Haussler and Opper 1997). The
 * divergence of two rows is a sum over their bits, and each bit is taken at the worst that other answers can make of it.
 */
export function worstExposures(matrix, sizes, floor) {
  const starts = sizes.map((_, i) => sizes.slice(0, i).reduce((sum, size) => sum + size, 0));
  const gram = matrix.map((one) => matrix.map((other) => one.reduce((sum, value, c) => sum + value * other[c], 0)));
  const ends = gram.map((row) => sizes.map((size, i) => row.slice(starts[i], starts[i] + size)).map((part) => [Math.min(...part), Math.max(...part)]));
  return sizes.map((size, item) => {
    const divergence = Array.from({ length: size }, () => new Float64Array(size));
    gram.forEach((row, j) => {
      const [low, high] = [0, 1].map((end) => ends[j].reduce((sum, pair, i) => sum + (i === item ? 0 : pair[end]), 0));
      const values = Array.from({ length: size }, (_, v) => Array.from({ length: GRID }, (_, g) => {
        const projection = low + ((high - low) * g) / (GRID - 1) + row[starts[item] + v];
        const p = Math.min(Math.max((1 - 2 * floor) * Math.min(projection * projection, 1) + floor, 1e-12), 1 - 1e-12);
        return [p, Math.log2(p), Math.log2(1 - p)];
      }));
      values.forEach((one, v) => values.forEach((other, w) => {
        divergence[v][w] += Math.max(...one.map(([p, yes, no], g) => p * (yes - other[g][1]) + (1 - p) * (no - other[g][2])));
      }));
    });
    const bits = divergence.map((row) => -Math.log2(row.reduce((sum, one) => sum + 2 ** -one, 0) / size));
    return Math.max(0, ...bits) / Math.log2(size);
  });
}

const CUTS = { 1: [1, 2, 3, 4, 5, 6, 8], 2: [1, 2, 3, 4, 5, 6, 8], 3: [2, 3, 4, 6, 8], 4: [2, 4] };

/** An upper bound on the bits that a row discloses, for every prior knowledge of the collector. */
export function capacityBound(matrix, sizes, floor) {
  const level = matrix[0].length, low = new Float64Array(level), high = new Float64Array(level);
  let start = 0;
  for (const size of sizes) {
    for (let c = 0; c < level; c++) {
      const column = matrix.slice(start, start + size).map((row) => row[c]);
      low[c] += Math.min(...column);
      high[c] += Math.max(...column);
    }
    start += size;
  }
  const cuts = CUTS[level] ?? [1];
  let partitions = [[]];
  for (let c = 0; c < level; c++) partitions = partitions.flatMap((parts) => cuts.map((count) => [...parts, count]));
  const total = sizes.reduce((sum, size) => sum + Math.log2(size), 0);
  return Math.min(total, ...partitions.map((parts) => boundByBoxes(matrix, low, high, parts, sizes.length, floor)));
}

function boundByBoxes(matrix, low, high, parts, items, floor) {
  const step = parts.map((count, c) => (high[c] - low[c]) / count);
  const reach = matrix.map((row) => row.reduce((sum, v, c) => sum + (Math.abs(v) * step[c]) / 2, 0));
  const bits = [];
  for (let box = 0; box < parts.reduce((all, count) => all * count, 1); box++) {
    let rest = box;
    const corner = parts.map((count, c) => {
      const index = rest % count;
      rest = Math.floor(rest / count);
      return low[c] + index * step[c];
    });
    if (corner.reduce((sum, v, c) => sum + Math.max(v, -v - step[c], 0) ** 2, 0) > items) continue; // |V't| <= |t|
    bits.push(matrix.reduce((sum, row, j) => {
      const centre = Math.abs(row.reduce((all, v, c) => all + v * (corner[c] + step[c] / 2), 0));
      const ends = [Math.max(centre - reach[j], 0), centre + reach[j]];
      return sum + binaryCapacity(...ends.map((end) => (1 - 2 * floor) * Math.min(end * end, 1) + floor));
    }, 0));
  }
  const largest = bits.reduce((a, b) => Math.max(a, b));
  return largest + Math.log2(bits.reduce((sum, one) => sum + 2 ** (one - largest), 0));
}

/** The capacity of a binary channel whose output is 1 with one of two probabilities (Silverman 1955). */
function binaryCapacity(low, high) {
  const gap = high - low, entropy = (p) => (p <= 0 || p >= 1 ? 0 : -p * Math.log2(p) - (1 - p) * Math.log2(1 - p));
  if (gap < 1e-9) return 0;
  const [a, b] = [entropy(low), entropy(high)];
  return Math.max(0, (low * b - high * a) / gap + Math.log2(1 + 2 ** ((a - b) / gap)));
}

/** Refuses a matrix that does not fit the questions, is not finite or is not orthonormal. */
export function checkMatrix(matrix, sizes) {
  const width = sizes.reduce((sum, size) => sum + size, 0);
  const level = Array.isArray(matrix) && Array.isArray(matrix[0]) ? matrix[0].length : 0;
  if (matrix?.length !== width || level < 1 || level > width || !matrix.every((row) => row?.length === level))
    throw new Refused("its shape does not fit the questions");
  if (!matrix.flat().every(Number.isFinite)) throw new Refused("it holds values that are not numbers");
  for (let a = 0; a < level; a++)
    for (let b = 0; b <= a; b++)
      if (Math.abs(matrix.reduce((sum, row) => sum + row[a] * row[b], 0) - Number(a === b)) > 1e-6)
        throw new Refused("its directions are not orthonormal");
}

/** The disclosure of some guidance; throws `Refused` if it exceeds the limits. */
export function inspectGuidance(matrix, sizes, { seed, allowed, floor, exposure, capacity }) {
  checkMatrix(matrix, sizes);
  const level = matrix[0].length;
  if (level > allowed) throw new Refused(`it asks for ${level} directions, and ${allowed} are allowed`);
  const largest = Math.max(...exposures(matrix, sizes, seed, 0)); // the floor must not hide what guidance aims at
  if (!(largest <= exposure)) throw new Refused(`it aims at a single answer, of which it would disclose ${percent(largest)}`);
  const disclosure = { exposure: worstExposures(matrix, sizes, floor), capacity: capacityBound(matrix, sizes, floor) };
  if (!(disclosure.capacity <= capacity * allowed))
    throw new Refused(`it would disclose up to ${disclosure.capacity.toFixed(1)} bits, and ${capacity * allowed} are allowed`);
  return disclosure;
}

/** A share as a percentage. */
export const percent = (share) => `${Math.round(100 * share)} %`;
