import "uplot/dist/uPlot.min.css";
import "./page.css";

import type { PageData } from "./data";
import { h } from "./dom";
import { indexPage } from "./index_page";
import { reportPage } from "./report";

const root = document.getElementById("page");
const source = document.getElementById("data")?.textContent ?? "";
if (root) {
  try {
    const data = JSON.parse(source) as PageData;
    document.title = data.kind === "report" ? `${data.title} \u2013 attsvm` : data.title;
    if (data.kind === "report") reportPage(root, data);
    else indexPage(root, data);
    root.dataset["ready"] = "";
  } catch (error) {
    root.append(
      h(
        "p",
        { class: "badge bad" },
        `This page cannot be shown: ${error instanceof Error ? error.message : "unknown error"}`,
      ),
    );
    throw error;
  }
}
