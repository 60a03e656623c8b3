// What the program writes into the page. docs/page.schema.json is the same, for machines; tests hold the two together.
import type { Audit } from "./data/audit";
import type { Capacity } from "./data/capacity";
import type { Index } from "./data/experiments";
import type { Heads } from "./data/heads";
import type { Monitor } from "./data/monitor";
import type { NextToken } from "./data/next_token";
import type { Report } from "./data/report";
import type { Stack } from "./data/stack";

export type * from "./data/audit";
export type * from "./data/capacity";
export type * from "./data/common";
export type * from "./data/experiments";
export type * from "./data/heads";
export type * from "./data/monitor";
export type * from "./data/next_token";
export type * from "./data/report";
export type * from "./data/stack";

export type PageData = Report | Heads | Stack | Capacity | NextToken | Index | Audit | Monitor;
