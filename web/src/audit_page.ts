// The page of an audit: all heads, and one of them.
import { colours, gridView } from "./audit_grid";
import { headView } from "./audit_head";
import { type AuditState, viewCount } from "./audit_state";
import type { Audit } from "./data";
import { h } from "./dom";
import { Store } from "./state";
import { tabs } from "./tabs";
import { themeButton } from "./theme";

export function auditPage(root: HTMLElement, data: Audit): void {
  const store = new Store<AuditState>(
    { view: "heads", head: 0, hidden: 0, colour: 0 },
    { head: Math.max(0, data.heads.length - 1), hidden: viewCount(data) - 1, colour: colours.length - 1 },
    ["heads", "head"],
  );
  const views = tabs(
    [
      { name: "heads", title: "All heads", make: (panel) => gridView(panel, data, store) },
      { name: "head", title: "One head", make: (panel) => headView(panel, data, store) },
    ],
    store,
  );
  root.append(
    h(
      "header",
      { class: "top" },
      h("div", {}, h("p", { class: "kind" }, "attsvm audit"), h("h1", { "data-path": "title" }, data.title)),
      themeButton(),
    ),
    h("main", {}, views),
  );
}
