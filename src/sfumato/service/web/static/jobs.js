// A job's page: it tells how far the work is, and shows what came of it when it is done.

import { finished } from "./api.js";

const line = document.getElementById("job");
if (["waiting", "running"].includes(line.dataset.state)) {
  const stage = document.getElementById("stage");
  const reload = () => location.reload();
  finished(line.dataset.job, (found) => {
    stage.textContent = found.rows ? `${found.stage}: ${found.rows.toLocaleString("en")} rows` : found.stage;
  }).then(reload, reload);
}
