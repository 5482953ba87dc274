/** Something that was turned down, with the reason as its message. */
export class Refused extends Error {}

export const UNIT: number;

export interface Question {
  name: string;
  text: string;
  kind: "choice" | "multiple" | "number";
  options?: string[];
  cuts?: number[];
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
  /** The stop of the slider, in a randomised survey. */
  level?: number;
  /** The largest disclosure level, in a guided survey. */
  allowed?: number;
  /** Send only the allowed directions where more are asked for. */
  truncate?: boolean;
  /** Send without asking again as soon as the survey asks for no more than is allowed. */
  automatic?: boolean;
  /** Give the answers unblurred, to help a guided survey begin. */
  clear?: boolean;
}

export interface Foresight {
  /** Randomised: the chance that the collector sees the true answer. */
  right?: number[];
  /** Guided: the share of each item's bits that can be told. */
  exposure?: number[];
  capacity?: number;
}

export interface Shown {
  state: "none" | "waiting" | "ready" | "tried" | "sent" | "dropped";
  body?: unknown;
  foresight?: Foresight;
  automatic?: boolean;
  refused?: boolean;
  /** The respondent has not yet seen it. */
  fresh?: boolean;
  /** Trying again will not help. */
  stuck?: boolean;
  why?: string;
  counted?: boolean;
  /** It was sent unblurred. */
  clear?: boolean;
}

export interface Item {
  question: string;
  option: string;
  labels: string[];
  size: number;
  share: number;
}

export function itemsOf(definition: Definition): Item[];
export function labelsOf(question: Question): string[];
/** Refuses a definition that does not do what it says. */
export function checkDefinition(definition: Definition): void;
/** A share in words. */
export function percent(share: number): string;
export function drawn(count: number): Float64Array;
export function code(definition: Definition, answers: Answers): number[] | null;
export function coded(question: Question, answer: Answers[string]): number[];
export function randomise(codes: number[], sizes: number[], retention: number[], draws: ArrayLike<number>): number[];
export function bits(codes: number[], sizes: number[]): number[];
export function chances(row: number[], matrix: Matrix, floor: number): number[];
export function guided(row: number[], matrix: Matrix, floor: number, draws: ArrayLike<number>): number[];
export function digestOf(schema: string, epoch: number, matrix: Matrix): Promise<string>;
export function sha256(data: string | BufferSource): Promise<string>;
export function stream(seed: string, count: number): Float64Array;
export function exposures(matrix: Matrix, sizes: number[], seed: string, floor: number): number[];
export function mostBits(matrix: Matrix, sizes: number[], floor: number): number;
/** Refuses what is no guidance at all. */
export function sound(matrix: Matrix, sizes: number[]): void;
export function inspect(
  matrix: Matrix, sizes: number[], limits: Limits & { seed: string; allowed: number },
): { exposure: number[]; capacity: number };

/** One person's answer to one survey, kept sealed in this browser until it is sent. */
export class Respondent {
  constructor(options: { server: string; survey: string; ticket?: string | null; log?: string | null });
  definition: Definition;
  items: Item[];
  state: "draft" | "open" | "closed";
  /** Whether unblurred answers are wanted to begin with. */
  wanted: boolean;
  load(): Promise<this>;
  over(): boolean;
  fingerprint(): Promise<string>;
  questionOfClass(): Question | undefined;
  prepare(answers: Answers, choice: Choice): Promise<Shown>;
  send(): Promise<Shown>;
  status(): Promise<Shown>;
  forget(): Promise<void>;
}
