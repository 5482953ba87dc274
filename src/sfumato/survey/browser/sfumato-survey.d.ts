/** A definition, an answer or guidance that was refused; the message is the reason. */
export class Refused extends Error {}

export const UNIT: number;

export interface Question {
  name: string;
  text: string;
  kind: "choice" | "multiple" | "scale" | "number" | "date" | "ranking";
  options?: string[];
  /** The lower ends of all intervals but the first; of dates, as in 2026-12-31. */
  cuts?: (number | string)[];
  unit?: string;
}

export interface Limits {
  floor: number;
  exposure: number;
  capacity: number;
}

export interface Definition {
  title: string;
  consent: string;
  mode: "randomised" | "guided";
  class: string;
  ends: string;
  questions: Question[];
  levels: { name: string; epsilon: number; total: number; retention: number[] }[];
  guided: Limits;
}

export type Answers = Record<string, string | number | string[] | null>;
export type Matrix = number[][];

export interface Choice {
  /** The index of the privacy level, in a randomised survey. */
  level?: number;
  /** The largest disclosure level, in a guided survey. */
  allowed?: number;
  /** Send only the allowed directions where more are asked for. */
  truncate?: boolean;
  /** Send without asking again as soon as the survey asks for no more than is allowed. */
  automatic?: boolean;
  /** Send the answers unperturbed, to help a guided survey to start. */
  clear?: boolean;
}

/** How much the collector can learn from a row. */
export interface Disclosure {
  /** Randomised: for each item, the probability that the answer sent is the true one. */
  probability?: number[];
  /** Guided: for each item, the largest share of its bits that any answers disclose. */
  exposure?: number[];
  /** Guided: an upper bound on the bits disclosed in all. */
  capacity?: number;
}

/** How far an answer has come. */
export interface Progress {
  /** `rejected`, `unconfirmed`: the row left this device; the survey refused it, or ended or changed before it confirmed it. */
  state: "none" | "waiting" | "ready" | "tried" | "sent" | "rejected" | "unconfirmed" | "dropped";
  body?: unknown;
  disclosure?: Disclosure;
  automatic?: boolean;
  refused?: boolean;
  /** The respondent has not yet seen what will be sent. */
  unseen?: boolean;
  /** Another attempt to send will not succeed. */
  final?: boolean;
  reason?: string;
  counted?: boolean;
  /** The privacy level that the random numbers were drawn for; it can no longer be changed. */
  level?: number;
  /** Unperturbed answers have left this device. */
  clear?: boolean;
  /** What a survey publishes of an answer that it counted. */
  receipt?: string;
}

export interface Item {
  question: string;
  option: string;
  labels: string[];
  size: number;
  /** The share of the question's epsilon that is spent on this item. */
  epsilonShare: number;
}

export function itemsOf(definition: Definition): Item[];
export function labelsOf(question: Question): string[];
/** Refuses a definition that contradicts itself, or whose limits are looser than this module's own. */
export function checkDefinition(definition: Definition): void;
/** A share as a percentage. */
export function percent(share: number): string;
/** How well a level protects an answer, in words, by its epsilon per question. */
export function protection(epsilon: number): string;
/** Uniform integers below 2^53 from a seed of 64 hexadecimal digits. */
export function seededIntegers(seed: string, count: number): Promise<Float64Array>;
export function encode(definition: Definition, answers: Answers): number[] | null;
export function encodeAnswer(question: Question, answer: Answers[string]): number[];
export function randomisedResponse(codes: number[], sizes: number[], retention: number[], draws: ArrayLike<number>): number[];
export function oneHot(codes: number[], sizes: number[]): number[];
export function bitProbabilities(row: number[], matrix: Matrix, floor: number): number[];
export function guidedResponse(row: number[], matrix: Matrix, floor: number, draws: ArrayLike<number>): number[];
export function digestOf(version: string, epoch: number, matrix: Matrix): Promise<string>;
export function sha256(data: string | BufferSource): Promise<string>;
export function uniformStream(seed: string, count: number): Float64Array;
export function exposures(matrix: Matrix, sizes: number[], seed: string, floor: number): number[];
export function worstExposures(matrix: Matrix, sizes: number[], floor: number): number[];
export function capacityBound(matrix: Matrix, sizes: number[], floor: number): number;
/** Refuses a matrix that does not fit the questions, is not finite or is not orthonormal. */
export function checkMatrix(matrix: Matrix, sizes: number[]): void;
export function inspectGuidance(
  matrix: Matrix, sizes: number[], limits: Limits & { seed: string; allowed: number },
): { exposure: number[]; capacity: number };

/** One person's answer to one survey, stored encrypted in this browser until it is sent. */
export class Respondent {
  constructor(options: { server: string; survey: string; ticket?: string | null; log?: string | null });
  definition: Definition;
  items: Item[];
  state: "draft" | "open" | "closed";
  /** Whether a guided survey still needs unperturbed answers to start. */
  needsUnperturbed: boolean;
  load(): Promise<this>;
  isOver(): boolean;
  fingerprint(): Promise<string>;
  classQuestion(): Question | undefined;
  prepare(answers: Answers, choice: Choice): Promise<Progress>;
  send(): Promise<Progress>;
  status(): Promise<Progress>;
  forget(): Promise<Progress>;
  /** Looks for a receipt among those of all answers that count; nobody learns for which. */
  checkReceipt(receipt: string): Promise<{ found: boolean; count: number }>;
}
