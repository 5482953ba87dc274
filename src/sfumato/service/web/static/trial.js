// What the strongest attacks recovered of a sample of a dataset, level by level: the latest trial, and what it says.

import { callApi } from "./api.js";

const percent = (share) => `${Math.round(100 * share)} %`;

/** The result of the latest trial of a dataset that is done; nothing where there is none. */
export async function latestTrial(dataset) {
  const jobs = await callApi("GET", `/api/v1/jobs?${new URLSearchParams({ kind: "trial", dataset })}`);
  const done = jobs.find((job) => job.state === "done");
  return done && (await callApi("GET", `/api/v1/jobs/${done.id}`)).result;
}

/** What the best attack recovers at a fidelity, by the points of the map next to it. */
export function strongest({ points }, fidelity) {
  const own = points.filter((point) => point.mechanism === points[0].mechanism);
  const above = own.find((point) => point.fidelity >= fidelity) ?? own.at(-1);
  const below = own.findLast((point) => point.fidelity <= fidelity) ?? own[0];
  const shares = [below.recovered, above.recovered].sort((one, other) => one - other).map(percent);
  const between = shares[0] === shares[1] ? shares[0] : `${shares[0]} to ${shares[1]}`;
  const columns = [...new Set([below.column, above.column])].join(" or ");
  const attacks = [...new Set([below.attack, above.attack])].join(" or ");
  return `The strongest attack on a sample recovers ${between} of ${columns} (${attacks})`;
}
