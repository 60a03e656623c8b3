import "uplot/dist/uPlot.min.css";
import "./page.css";

import { auditPage } from "./audit_page";
import { capacityPage } from "./capacity_page";
import type { PageData } from "./data";
import { h } from "./dom";
import { headsPage } from "./heads_page";
import { indexPage } from "./index_page";
import { monitorPage } from "./monitor";
import { nextTokenPage } from "./next_token";
import { reportPage } from "./report";
import { stackPage } from "./stack_page";

const root = document.getElementById("page");
const source = document.getElementById("data")?.textContent ?? "";
if (root) {
  try {
    const data = JSON.parse(source) as PageData;
    document.title = data.kind === "index" ? data.title : `${data.title} \u2013 attsvm`;
    if (data.kind === "report") reportPage(root, data);
    else if (data.kind === "heads") headsPage(root, data);
    else if (data.kind === "stack") stackPage(root, data);
    else if (data.kind === "capacity") capacityPage(root, data);
    else if (data.kind === "next-token") nextTokenPage(root, data);
    else if (data.kind === "monitor") monitorPage(root, data);
    else if (data.kind === "audit") auditPage(root, data);
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
