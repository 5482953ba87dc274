// Uploads of tables of any size, in parts; then a draft of the policy, or a job.

import { callApi, showMessage } from "./api.js";

async function uploadFile(file, bar) {
  bar.hidden = false;
  const { upload, part } = await callApi("POST", "/api/v1/uploads", { name: file.name });
  const count = Math.max(1, Math.ceil(file.size / part));
  for (let i = 0; i < count; i++) {
    await callApi("PUT", `/api/v1/uploads/${upload}/parts/${i + 1}`, file.slice(i * part, (i + 1) * part));
    bar.value = (i + 1) / count;
  }
  return upload;
}

function onSubmit(form, work) {
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      await work(form);
    } catch (error) {
      showMessage(error.message);
    } finally {
      button.disabled = false;
    }
  });
}

const chooseForm = document.getElementById("choose");
const policyForm = document.getElementById("keep");
let uploaded;

function suggestName() {
  const name = chooseForm.elements.dataset;
  const stem = chooseForm.elements.file.files[0]?.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9._-]/g, "-") ?? "";
  if (!name.value) name.value = stem;
}

if (chooseForm) {
  chooseForm.elements.file.addEventListener("change", suggestName);
  suggestName(); // for a file that was chosen before this script had loaded
}

onSubmit(chooseForm, async (form) => {
  uploaded = await uploadFile(form.elements.file.files[0], form.querySelector("progress"));
  const draft = await callApi("POST", "/api/v1/suggestions", { upload: uploaded, dataset: form.elements.dataset.value });
  policyForm.elements.policy.value = draft.policy;
  policyForm.hidden = false;
  policyForm.elements.policy.focus();
});

onSubmit(policyForm, async (form) => {
  const body = { policy: form.elements.policy.value, upload: uploaded, traced: form.elements.traced.checked };
  const { job } = await callApi("POST", "/api/v1/datasets", body);
  location.assign(`/console/jobs/${job}`);
});

for (const form of document.querySelectorAll("form[data-upload]")) {
  onSubmit(form, async () => {
    const upload = await uploadFile(form.elements.file.files[0], form.querySelector("progress"));
    const { job } = await callApi("POST", form.dataset.url, { upload });
    location.assign(`/console/jobs/${job}`);
  });
}
