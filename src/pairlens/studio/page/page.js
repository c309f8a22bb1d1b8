// @ts-check
/** The studio as a page of its own. */

import { begin } from "./app.js";

begin((studio) => {
  document.title = `${studio.state.table.source} · pairlens studio`;
  document.documentElement.dataset.ready = "1";
});
