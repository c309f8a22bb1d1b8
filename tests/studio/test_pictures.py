"""Pictures: by row number alone, from their folder alone, decoded and written anew."""

from __future__ import annotations

import io
import os

import httpx
import numpy as np
import pytest

from pairlens.tables.pictures import MOST_PIXELS, PictureError, PictureFolder
from tests.studio.conftest import Person, link, write_table

Image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'pairlens[studio]'")


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "data"
    inside.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(inside / "good.png")
    Image.fromarray(noise).save(inside / "good.jpg", exif=b"Exif\x00\x00secret of the camera")
    Image.fromarray(noise).save(tmp_path / "outside.png")
    return inside


def shown(folder, cell):
    return PictureFolder(folder, [cell]).encoded(0)


def test_what_is_sent_is_decoded_and_written_anew(folder):
    for name in ("good.png", "good.jpg"):
        content = shown(folder, name)
        assert content.startswith(b"\x89PNG")
        assert content != (folder / name).read_bytes()
        assert b"secret" not in content
    assert b"secret" in (folder / "good.jpg").read_bytes()
    picture = Image.open(io.BytesIO(shown(folder, "good.png")))
    assert picture.size == (40, 30)
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(Image.open(folder / "good.png")))


@pytest.mark.parametrize(
    "cell",
    ["../outside.png", "x/../../outside.png", "good.png/../../outside.png", "..\\outside.png", "./.././outside.png"],
)
def test_paths_that_lead_outside(folder, cell):
    (folder / "x").mkdir()
    with pytest.raises(PictureError, match=r"outside the folder|is missing"):
        shown(folder, cell)


def test_absolute_paths(folder, tmp_path):
    for path in (tmp_path / "outside.png", "/etc/passwd", "file:///etc/passwd"):
        with pytest.raises(PictureError, match=r"outside the folder|is missing"):
            shown(folder, str(path))


def test_symbolic_links(folder, tmp_path):
    os.symlink(tmp_path / "outside.png", folder / "link.png")
    os.symlink(tmp_path, folder / "up")
    os.symlink("loop", folder / "loop")
    os.symlink(folder / "good.png", folder / "inside.png")
    for cell in ("link.png", "up/outside.png", "loop"):
        with pytest.raises(PictureError, match=r"outside the folder|is missing"):
            shown(folder, cell)
    assert shown(folder, "inside.png").startswith(b"\x89PNG")


def test_svg_and_other_programs(folder):
    (folder / "a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (folder / "b.png").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (folder / "c.png").write_text("<html><script>alert(1)</script></html>")
    (folder / "d.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(/etc/passwd) (r) file\n")
    for name in ("a.svg", "b.png", "c.png", "d.eps"):
        with pytest.raises(PictureError, match="not a picture of a kind"):
            shown(folder, name)


def test_pictures_too_large_to_unpack(folder):
    side = int(MOST_PIXELS**0.5) + 100
    Image.new("1", (side, side)).save(folder / "large.png")
    Image.new("1", (2 * side, 4 * side)).save(folder / "bomb.png")
    for name in ("large.png", "bomb.png"):
        with pytest.raises(PictureError, match=r"pixels, more than can be shown|not a picture of a kind"):
            shown(folder, name)
    Image.new("RGB", (3000, 1500)).save(folder / "wide.png")
    assert Image.open(io.BytesIO(shown(folder, "wide.png"))).size == (800, 400)


def test_missing_and_damaged(folder):
    (folder / "half.png").write_bytes((folder / "good.png").read_bytes()[:200])
    (folder / "empty.png").write_bytes(b"")
    for cell, words in [
        ("", "has no picture"),
        ("none.png", "is missing"),
        ("half.png", "damaged|not a picture"),
        ("empty.png", "not a picture"),
        (".", "not a file"),
        ("a\x00b", "not a path"),
    ]:
        with pytest.raises(PictureError, match=words):
            shown(folder, cell)


def test_the_route_takes_row_numbers_alone(studio, folder):
    cells = ["good.png", "../outside.png", "/etc/passwd", "gone.png", ""] + ["good.jpg"] * 85
    path = folder / "things.csv"
    write_table(path, extra={"file": cells})
    person = Person.enter(link(studio(path)))
    rows = person.get("rows?rows=0,4")
    assert [row["picture"] for row in rows] == [True, False]
    assert "file" not in dict(rows[0]["cells"])
    reply = person.client.get("/api/picture/0")
    assert reply.headers["content-type"] == "image/png"
    assert [person.client.get(f"/api/picture/{row}").status_code for row in (1, 2, 3, 4, 90, 10**6)] == [404] * 6
    for name in ("good.png", "-1", "0/../1", "..%2foutside.png", "0?path=/etc/passwd"):
        assert person.client.get(f"/api/picture/{name}").status_code in (404, 200)
        assert b"root:" not in person.client.get(f"/api/picture/{name}").content
    assert httpx.get(f"{person.base}/api/picture/0").status_code == 401


def test_another_folder(studio, folder, tmp_path):
    path = tmp_path / "elsewhere.csv"
    write_table(path, extra={"file": ["good.png"] * 90})
    person = Person.enter(link(studio(path, files=folder)))
    assert person.client.get("/api/picture/0").status_code == 200
