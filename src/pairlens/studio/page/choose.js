// @ts-check
/** What a person does with rows on the map: everything becomes answers, which are undone at once. */

import { get, newId } from "./api.js";
import { apart, counted, h } from "./dom.js";
import { groupName } from "./legend.js";
import { markPicture } from "./marks.js";

/** @typedef {import("./legend.js").Group} Group */
/** @typedef {import("./rowview.js").Row} Row */

/** Rows that are shown of many. */
const SOME = 24;

export class Chooser {
  /** @param {import("./app.js").Studio} studio @param {import("./panels.js").Panels} panels */
  constructor(studio, panels) {
    this.studio = studio;
    this.panels = panels;
  }

  get groups() {
    return this.studio.map.groups;
  }

  /** @param {string} action @param {number[]} rows @param {Record<string, any>} [more] */
  send(action, rows, more = {}) {
    this.studio.outbox.put("choose", { id: newId(), action, rows, ...more });
    this.studio.map.flash(rows.slice(0, 200));
  }

  /** The number that a group has by now: it follows its rows. @param {Group} group */
  numberOf(group) {
    return (this.groups.find((each) => each.rows.includes(group.rows[0])) ?? group).number;
  }

  /** A button that does something and closes its dialog. @param {string} words @param {Record<string, any>} data @param {() => void} run */
  act(words, data, run) {
    const button = h("button", { type: "button", class: "choice", ...data }, words);
    button.addEventListener("click", () => {
      /** @type {HTMLDialogElement} */ (button.closest("dialog")).close();
      run();
    });
    return button;
  }

  /** A choice among groups, with a button. @param {string} words @param {string} data @param {Group[]} groups @param {(group: Group) => void} run */
  withGroup(words, data, groups, run) {
    if (!groups.length) return null;
    const select = /** @type {HTMLSelectElement} */ (
      h(
        "select",
        { "aria-label": words },
        groups.map((group, k) => h("option", { value: k }, groupName(group))),
      )
    );
    return h(
      "p",
      { class: "with-group" },
      this.act(words, { [data]: true }, () => run(groups[Number(select.value)])),
      select,
    );
  }

  /** @param {number[]} rows */
  async gallery(rows) {
    const some = await get(`rows?rows=${rows.slice(0, SOME).join(",")}`);
    const more =
      rows.length > SOME ? h("p", { class: "lead" }, `… and ${counted(rows.length - SOME, "more row")}.`) : "";
    return [
      h(
        "div",
        { class: "gallery" },
        some.map((/** @type {Row} */ row) => this.studio.thumbnail(row)),
      ),
      more,
    ];
  }

  /** What was drawn round on the map. @param {number[]} rows */
  async selection(rows) {
    if (!rows.length) return this.panels.toast("No row lies in there.");
    const of = new Map(this.groups.flatMap((group) => group.rows.map((row) => [row, groupName(group)])));
    /** @type {Map<string, number>} */
    const tally = new Map();
    for (const row of rows)
      tally.set(of.get(row) ?? "without a group", (tally.get(of.get(row) ?? "without a group") ?? 0) + 1);
    const address = URL.createObjectURL(new Blob([`row\n${rows.join("\n")}\n`], { type: "text/csv" }));
    const dialog = await this.panels.filled(`${counted(rows.length, "row")} selected`, async () => [
      this.studio.ranking ? "" : this.actions(rows),
      h(
        "p",
        { class: "lead" },
        [...tally]
          .sort((a, b) => b[1] - a[1])
          .map(([name, count]) => `${apart(name)}: ${count}`)
          .join(" · "),
      ),
      ...(await this.gallery(rows)),
      h("p", {}, h("a", { href: address, download: "selected-rows.csv" }, "Save the row numbers")),
    ]);
    dialog.addEventListener("close", () => URL.revokeObjectURL(address));
  }

  /** What can be said of rows. @param {number[]} rows */
  actions(rows) {
    const name = /** @type {HTMLInputElement} */ (
      h("input", {
        type: "text",
        maxlength: "80",
        "aria-label": "Name of the group",
        placeholder: "name",
        autocomplete: "off",
        "data-group-called": true,
      })
    );
    const called = () => {
      const known = this.groups.find((group) => groupName(group) === name.value.trim());
      this.send("group", rows, { group: known?.number ?? null, name: known ? "" : name.value.trim() });
    };
    return h(
      "div",
      { class: "actions" },
      rows.length > 1
        ? h(
            "p",
            {},
            this.act("These belong together", { "data-together": true }, () => this.send("together", rows)),
          )
        : null,
      h("p", { class: "with-group" }, this.act("These are one group called", { "data-one-group": true }, called), name),
      this.withGroup("Not with", "data-apart", this.groups, (group) =>
        this.send("apart", rows, { group: this.numberOf(group) }),
      ),
      h("p", { class: "lead" }, "What you say here counts as answers. Undo takes it back as a whole."),
    );
  }

  /** The group of one row. @param {number} row */
  place(row) {
    if (this.studio.ranking || !this.studio.status.ready) return;
    const own = this.studio.map.groupOf.get(row);
    const buttons = this.groups
      .filter((group) => group !== own)
      .map((group) => {
        const button = this.act(groupName(group), { "data-place": group.shown }, () =>
          this.send("group", [row], { group: this.numberOf(group) }),
        );
        button.prepend(markPicture(group.shown), " ");
        return button;
      });
    return this.panels.filled("Where does this row belong?", async () => {
      const [shown] = await get(`rows?rows=${row}`);
      return [
        this.studio.thumbnail(shown),
        h("p", { class: "lead" }, own ? `It is in ${groupName(own)} now.` : "It was not placed yet."),
        h(
          "div",
          { class: "choices-row" },
          buttons,
          own?.rows.length === 1
            ? null
            : this.act("A group of its own", { "data-place": "new" }, () => this.send("group", [row])),
        ),
      ];
    });
  }

  /** A group: its name, what it is one with, what does not belong to it. @param {Group} group */
  group(group) {
    const input = /** @type {HTMLInputElement} */ (
      h("input", {
        type: "text",
        maxlength: "80",
        id: "group-name",
        value: group.name,
        autocomplete: "off",
        "data-first": true,
      })
    );
    const form = h(
      "form",
      {},
      h("label", { for: "group-name" }, `Name of group ${group.shown} (${counted(group.rows.length, "row")})`),
      input,
      h("button", { type: "submit", class: "main" }, "Save"),
    );
    const rest = h("div", { class: "gallery" });
    const split = h(
      "div",
      {},
      this.act("Split the marked rows off", { "data-split": true, disabled: true }, () =>
        this.send("split", marked(), { group: this.numberOf(group) }),
      ),
    );
    const marked = () =>
      [...rest.querySelectorAll("[aria-pressed=true]")].map((each) =>
        Number(/** @type {HTMLElement} */ (each).dataset.member),
      );
    const dialog = this.panels.dialog(
      "A group",
      form,
      this.withGroup(
        "Merge with",
        "data-merge",
        this.groups.filter((each) => each.number !== group.number),
        (other) => this.send("merge", [], { group: this.numberOf(group), other: this.numberOf(other) }),
      ) ?? "",
      group.rows.length > 1 ? h("p", { class: "lead" }, "Mark rows that do not belong here:") : "",
      rest,
      group.rows.length > 1 ? split : "",
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.studio.outbox.put("name", { id: newId(), group: this.numberOf(group), name: input.value });
      dialog.close();
    });
    input.addEventListener("focus", () => input.select());
    if (group.rows.length < 2) return;
    get(`rows?rows=${group.rows.slice(-SOME).join(",")}`)
      .then((rows) => {
        for (const row of rows) {
          const button = h(
            "button",
            { type: "button", class: "member", "aria-pressed": "false", "data-member": row.row },
            this.studio.thumbnail(row),
          );
          button.addEventListener("click", () => {
            button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
            split
              .querySelector("button")
              ?.toggleAttribute("disabled", !marked().length || marked().length === group.rows.length);
          });
          rest.append(button);
        }
      })
      .catch(() => undefined);
  }
}
