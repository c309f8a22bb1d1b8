"""``pairlens studio``: answer "same or different?" on a local page, with the map beside the question."""

from __future__ import annotations

import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import _options as options
from pairlens.cli._console import progress, tell

Asked = StrEnum("Asked", "auto same place prefer")
"""The kinds of questions that people are asked."""


Columns = list[str] | None


def studio(
    data: options.Data,
    id_column: options.IdColumn = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", help="File that keeps the answers; by default DATA.answers.db beside the table."),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; any but this machine's needs --token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port; by default 8477, or a free one.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")] = False,
    annotators: Annotated[
        list[str] | None,
        typer.Option(
            "--annotators", metavar="NAMES", help="Names of the annotators, comma-separated; each gets a link."
        ),
    ] = None,
    question: Annotated[
        Asked,
        typer.Option(
            "--question",
            help="same: two rows; place: a row and the groups so far; auto: place from three groups on; prefer: which "
            "row is better.",
        ),
    ] = Asked.auto,
    show: Annotated[
        Columns, typer.Option("--show", metavar="COLUMNS", help="Columns to show; by default all that are short.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            "--image",
            metavar="COLUMN",
            help="Column with paths of pictures; or a size such as 28x28, if the numbers of a row are a picture.",
        ),
    ] = None,
    text: Annotated[
        Columns, typer.Option("--text", metavar="COLUMN", help="Column with long texts; may be repeated.")
    ] = None,
    drop: Annotated[
        Columns, typer.Option("--drop", metavar="COLUMNS", help="Columns that are neither learned from nor shown.")
    ] = None,
    files: Annotated[
        Path | None, typer.Option("--files", help="Folder with the pictures; by default that of the table.")
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", help="Secret in the link, at least 16 characters; needed with --host.")
    ] = None,
    rows: options.RowsFile = None,
    embed: options.Embed = None,
    embed_model: options.EmbedModel = None,
    link: Annotated[
        bool, typer.Option("--link", help="Print the link of the studio that runs on DATA, and end.")
    ] = False,
    remap: Annotated[
        bool, typer.Option("--remap", help="The table has changed: match the answered rows by id.")
    ] = False,
) -> None:
    """Answer questions about the rows on a local page, beside a live map of them.

    Every answer is stored at once in DATA.answers.db beside the table; pairlens studio backup copies it. Ctrl-C ends
    the studio; the same command goes on where it ended. Nothing leaves this machine, except texts that --embed-model
    sends to an address.
    """
    from pairlens.cli._work import embedding_beside, embedding_models, what_embedding_would_change
    from pairlens.studio.rows import rows_from_file
    from pairlens.studio.run import Studio, open_store, running_links

    path = store if store is not None else data.with_name(f"{data.stem}.answers.db")
    if link:
        for name, url in running_links(path).items():
            tell(f"studio: {url}" + ("" if name == "me" else f"  ({name})"))
        return
    with progress(f"reading {data.name}") as update, embedding_beside(data, update, files):
        known = rows_from_file(
            data,
            ids=id_column,
            drop=options.as_list(drop),
            show=options.as_list(show),
            image=image,
            text=options.as_list(text),
            files=files,
            rows=rows,
            embed=embedding_models(data, options.as_list(embed), embed_model),
        )
    if hint := what_embedding_would_change(known.prepared):
        tell(hint)
    kept = open_store(path, known, remap=remap)
    try:
        people = options.as_list(annotators)
        running = Studio.prepare(
            known, kept, question=question.value, annotators=people, host=host, port=port, token=token
        )
    except BaseException:
        kept.close()
        raise
    if running.left_out:
        tell(f"pairlens: warning: {running.left_out}", err=True)
    for name, url in running.urls.items():
        tell(f"studio: {url}" + (f"  ({name})" if people else ""))
    tell(f"{known.n_rows:,} rows; answers are kept in {path}; Ctrl-C ends")
    if not no_browser:
        webbrowser.open(next(iter(running.urls.values())))
    running.serve()


def backup(
    store: Annotated[Path, typer.Argument(help="File that keeps the answers.", metavar="STORE")],
    target: Annotated[Path, typer.Argument(help="File to write; a new one.", metavar="TARGET")],
) -> None:
    """Copy the answers of a studio, also while it runs; of a damaged file, all that can be read.

    The copy is a store too: give it by --store, or give it the name of the first one.
    """
    from pairlens.studio.store import backup as copy

    copied = copy(store, target)
    for seq, damage in sorted(copied.damages.items()):
        tell(f"pairlens: warning: entry {seq}: {damage}", err=True)
    if not copied.whole:
        tell(f"pairlens: warning: {store} is damaged; what cannot be read of it is not in {target}", err=True)
    tell(f"{copied.n_events:,} entries of {store} are in {target}")
