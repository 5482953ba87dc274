// The browser module against the test vectors of its Python twin: `node --test tests/survey`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import * as module from "../../src/sfumato/survey/browser/sfumato-survey.js";

const path = process.env.VECTORS ?? new URL("vectors.json", import.meta.url);
const { cases, survey } = JSON.parse(readFileSync(path));
const near = (found, expected) => assert.ok(Math.abs(found - expected) < 1e-9, `${found} is not ${expected}`);

test("the perturbation agrees bit for bit", () => {
  for (const one of cases) {
    assert.deepEqual(module.randomisedResponse(one.codes, one.sizes, one.retention, one.draws), one.randomised);
    assert.deepEqual(module.oneHot(one.codes, one.sizes), one.bits);
    assert.deepEqual(module.bitProbabilities(one.bits, one.matrix, one.floor), one.bit_probabilities);
    assert.deepEqual(module.guidedResponse(one.bits, one.matrix, one.floor, one.draws), one.guided);
  }
});

test("the checks agree", async () => {
  for (const one of cases) {
    assert.equal(await module.digestOf("schema", 3, one.matrix), one.digest);
    assert.deepEqual(Array.from(module.uniformStream(one.digest, 5)), one.stream);
    module.worstExposures(one.matrix, one.sizes, one.floor).forEach((found, i) => near(found, one.worst_exposures[i]));
    assert.deepEqual(Array.from(await module.seededIntegers(one.digest, 5)), one.seeded);
    module.exposures(one.matrix, one.sizes, one.digest, one.floor).forEach((found, i) => near(found, one.exposures[i]));
    near(module.capacityBound(one.matrix, one.sizes, one.floor), one.bound);
  }
});

test("answers get the same codes, and a survey the same hash", async () => {
  assert.equal(await module.sha256(survey.published), survey.version);
  const definition = JSON.parse(survey.published);
  survey.answers.forEach((answers, i) => assert.deepEqual(module.encode(definition, answers), survey.codes[i]));
  const [whole] = survey.answers;
  const gaps = [{ n: NaN }, { c: null }, { s: "middle" }, { d: "" }, { d: "2000-02-30" }, { d: "1.1.2000" }, { r: ["p", "q"] }, { r: ["p", "q", "q"] }, { r: "p" }, { r: [["p", "q"], "ü"] }, { r: ["p > q", "ü"] }];
  for (const gap of gaps) assert.equal(module.encode(definition, { ...whole, ...gap }), null, JSON.stringify(gap));
});

test("an event of probability 0 never happens, and one of probability 1 always does", () => {
  assert.deepEqual(module.randomisedResponse([1], [2], [0], [0, 2]), [0]);
  assert.deepEqual(module.randomisedResponse([1], [2], [1], [module.UNIT - 1, 0]), [1]);
  assert.deepEqual(module.guidedResponse([1, 0], [[1], [0]], 0, [module.UNIT - 1, 0]), [1, 0]);
});

test("the device's own draws are integers below 2^53 that use all their bits", async () => {
  const seed = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");
  const draws = await module.seededIntegers(seed, 20_000);
  assert.ok(draws.every((one) => Number.isSafeInteger(one) && one >= 0 && one < module.UNIT));
  for (let bit = 0; bit < 53; bit++) {
    const ones = draws.reduce((sum, one) => sum + (Math.floor(one / 2 ** bit) % 2), 0);
    assert.ok(Math.abs(ones - 10_000) < 600, `bit ${bit}: ${ones}`); // 8.5 standard deviations
  }
});

const limits = { seed: "12345678", allowed: 2, floor: 0.1, exposure: 0.6, capacity: 3 };
const axis = (at) => Array.from({ length: 8 }, (_, j) => [Number(j === at)]);

test("guidance that asks for too much is refused", () => {
  const refuses = (matrix, message, more = {}) => assert.throws(() => module.inspectGuidance(matrix, [2, 2, 2, 2], { ...limits, ...more }), { message });
  const root = Math.sqrt(1 / 8), flat = Array.from({ length: 8 }, () => [root]);
  assert.deepEqual(module.inspectGuidance(flat, [2, 2, 2, 2], limits).exposure.map(Math.round), [0, 0, 0, 0]);
  assert.ok(module.worstExposures(axis(0), [2, 2, 2, 2], 0)[0] > 0.999);
  refuses(axis(0), /single answer/);
  refuses(axis(0).slice(1), /shape/);
  refuses([], /shape/);
  refuses(null, /shape/);
  refuses(flat.map(([v], i) => (i ? [v] : [NaN])), /not numbers/);
  refuses(flat.map(([v]) => [2 * v]), /orthonormal/);
  refuses(flat.map(([v]) => [v, v]), /orthonormal/);
  refuses(flat.map(([v], i) => [v, i % 2 ? v : -v]), /2 directions, and 1/, { allowed: 1 });
  refuses(flat, /bits/, { capacity: -1 });
});
