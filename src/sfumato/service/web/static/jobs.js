// Page of a job: shows its progress, and reloads when it has finished.

import { waitForJob } from "./api.js";

const line = document.getElementById("job");
if (["waiting", "running"].includes(line.dataset.state)) {
  const stage = document.getElementById("stage");
  const reload = () => location.reload();
  waitForJob(line.dataset.job, (job) => {
    stage.textContent = job.rows ? `${job.stage}: ${job.rows.toLocaleString("en")} rows` : job.stage;
  }).then(reload, reload);
}
