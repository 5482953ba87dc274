// The page of a link: its secret is in the address after #, which is never sent to a server before the button is pressed,
// so that programs that look at links in messages do not use it up.

const secret = location.hash.slice(1);
history.replaceState(null, "", location.pathname); // it stays neither in the address bar nor in the browser's history

document.getElementById("token").value = secret;
document.getElementById("incomplete").hidden = secret !== "";
document.querySelector("form.card button").disabled = secret === "";
