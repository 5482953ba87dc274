// Uploads of tables of any size, in parts, each of which is tried again where the network fails; then a job.

import { callApi, showMessage } from "./api.js";

const TRIES = 4;

async function sendPart(url, part) {
  for (let tried = 1; ; tried++) {
    try {
      return await callApi("PUT", url, part);
    } catch (error) {
      const offline = error instanceof TypeError; // fetch: no answer at all
      if (!offline || tried === TRIES) throw offline ? new Error("The connection was lost: send the file again.") : error;
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** tried));
    }
  }
}

export async function uploadFile(file, bar) {
  bar.hidden = false;
  bar.value = 0;
  const { upload, part } = await callApi("POST", "/api/v1/uploads", { name: file.name });
  const count = Math.max(1, Math.ceil(file.size / part));
  for (let i = 0; i < count; i++) {
    await sendPart(`/api/v1/uploads/${upload}/parts/${i + 1}`, file.slice(i * part, (i + 1) * part));
    bar.value = (i + 1) / count;
  }
  bar.hidden = true;
  return upload;
}

for (const form of document.querySelectorAll("form[data-upload]")) {
  const button = form.querySelector("button");
  button.disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const upload = await uploadFile(form.elements.file.files[0], form.querySelector("progress"));
      const { job } = await callApi("POST", form.dataset.url, { upload });
      location.assign(`/console/jobs/${job}`);
    } catch (error) {
      showMessage(error.message);
    } finally {
      button.disabled = false;
    }
  });
}
