import "./page.css"; const d = JSON.parse(document.getElementById("data")!.textContent!); document.getElementById("page")!.textContent = d.title;
