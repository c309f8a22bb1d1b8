"""A small OpenML on the loopback interface, for scikit-learn's downloader to talk to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Upload:
    """One data set as OpenML has it: columns with their type (None: numeric), the last of them the target, and rows."""

    name: str
    version: int
    columns: list[tuple[str, list[str] | None]]
    rows: list[list[Any]]
    change: Callable[[bytes], bytes] = bytes
    """What goes wrong on the way: changes the bytes of the file."""

    def arff(self) -> bytes:
        def kind(values: list[str] | None) -> str:
            return "REAL" if values is None else "{" + ",".join(f"'{value}'" for value in values) + "}"

        def cell(value: Any) -> str:
            return "?" if value is None else f"'{value}'" if isinstance(value, str) else repr(value)

        lines = [f"@RELATION {self.name}", *(f"@ATTRIBUTE '{name}' {kind(values)}" for name, values in self.columns)]
        return "\n".join([*lines, "@DATA", *(",".join(map(cell, row)) for row in self.rows), ""]).encode()


@dataclass
class Server:
    """Its address, what it offers by number, and which paths were asked for."""

    address: str
    uploads: dict[int, Upload]
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, bytes, int | None]:
        """Status, body, and the length to announce if it is not that of the body."""
        self.asked.append(path)
        parts = path.strip("/").split("/")
        if parts[0] in ("file", "data"):
            # Some versions of scikit-learn take the address from the description, some make it from the number.
            upload = self.uploads[int(parts[1] if parts[0] == "file" else parts[-1])]
            body = upload.arff()
            return 200, upload.change(body), len(body)
        if parts[4] == "list":
            wanted = parts[parts.index("data_name") + 1], int(parts[parts.index("data_version") + 1])
            found = [number for number, up in self.uploads.items() if (up.name, up.version) == wanted]
            if not found:
                return 412, b'{"error": {"code": "372", "message": "No results"}}', None
            listed = [{"did": found[0], "name": wanted[0], "version": wanted[1], "status": "active"}]
            return 200, json.dumps({"data": {"dataset": listed}}).encode(), None
        number = int(parts[-1])
        if number not in self.uploads:
            return 412, b'{"error": {"code": "111", "message": "Unknown dataset"}}', None
        upload = self.uploads[number]
        if parts[-2] == "features":
            features = [
                {
                    "index": str(i),
                    "name": name,
                    "data_type": "numeric" if values is None else "nominal",
                    "is_target": "true" if i == len(upload.columns) - 1 else "false",
                    "is_ignore": "false",
                    "is_row_identifier": "false",
                    "number_of_missing_values": str(sum(row[i] is None for row in upload.rows)),
                    **({} if values is None else {"nominal_value": values}),
                }
                for i, (name, values) in enumerate(upload.columns)
            ]
            return 200, json.dumps({"data_features": {"feature": features}}).encode(), None
        if parts[-2] == "qualities":
            quality = [{"name": "NumberOfInstances", "value": str(float(len(upload.rows)))}]
            return 200, json.dumps({"data_qualities": {"quality": quality}}).encode(), None
        description = {
            "id": str(number),
            "name": upload.name,
            "version": str(upload.version),
            "description": "made for a test",
            "format": "ARFF",
            "status": "active",
            "file_id": str(number),
            "url": f"{self.address}/file/{number}/{upload.name}.arff",
            "md5_checksum": hashlib.md5(upload.arff()).hexdigest(),
        }
        return 200, json.dumps({"data_set_description": description}).encode(), None


@contextmanager
def serve(uploads: dict[int, Upload], monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Start the server and send scikit-learn there; stop it at the end."""
    import sklearn.datasets._openml as sklearn_openml

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, length = server.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{listener.server_address[1]}", uploads)
    if hasattr(sklearn_openml, "_OPENML_PREFIX"):  # until addresses were written out in full
        monkeypatch.setattr(sklearn_openml, "_OPENML_PREFIX", f"{server.address}/")
    for constant in ("_SEARCH_NAME", "_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
        address = getattr(sklearn_openml, constant)
        if address.startswith("https://"):
            monkeypatch.setattr(sklearn_openml, constant, f"{server.address}/{address.split('/', 3)[3]}")
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
