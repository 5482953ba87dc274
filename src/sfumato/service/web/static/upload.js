// Uploads in parts, so that a table of any size passes; then a draft of its policy, or a job.

import { ask, say } from "./api.js";

async function send(file, bar) {
  bar.hidden = false;
  const { upload, part } = await ask("POST", "/api/v1/uploads", { name: file.name });
  const count = Math.max(1, Math.ceil(file.size / part));
  for (let i = 0; i < count; i++) {
    await ask("PUT", `/api/v1/uploads/${upload}/parts/${i + 1}`, file.slice(i * part, (i + 1) * part));
    bar.value = (i + 1) / count;
  }
  return upload;
}

function lively(form, work) {
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      await work(form);
    } catch (error) {
      say(error.message);
    } finally {
      button.disabled = false;
    }
  });
}

const choose = document.getElementById("choose");
const keep = document.getElementById("keep");
let uploaded;

function suggestName() {
  const name = choose.elements.dataset;
  const stem = choose.elements.file.files[0]?.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9._-]/g, "-") ?? "";
  if (!name.value) name.value = stem;
}

if (choose) {
  choose.elements.file.addEventListener("change", suggestName);
  suggestName(); // of a file that was chosen before this ran
}

lively(choose, async (form) => {
  uploaded = await send(form.elements.file.files[0], form.querySelector("progress"));
  const draft = await ask("POST", "/api/v1/suggestions", { upload: uploaded, dataset: form.elements.dataset.value });
  keep.elements.policy.value = draft.policy;
  keep.hidden = false;
  keep.elements.policy.focus();
});

lively(keep, async (form) => {
  const said = { policy: form.elements.policy.value, upload: uploaded, traced: form.elements.traced.checked };
  const { job } = await ask("POST", "/api/v1/datasets", said);
  location.assign(`/console/jobs/${job}`);
});

for (const form of document.querySelectorAll("form[data-upload]")) {
  lively(form, async () => {
    const upload = await send(form.elements.file.files[0], form.querySelector("progress"));
    const { job } = await ask("POST", form.dataset.url, { upload });
    location.assign(`/console/jobs/${job}`);
  });
}
