"""Files that are written whole or not at all."""

import pytest

from ironburst.system import files


def test_the_new_text_replaces_the_old_with_its_mode(tmp_path):
    path = tmp_path / "a"
    files.write(path, "one")
    assert path.stat().st_mode & 0o777 == 0o600
    files.write(path, "two", 0o644)
    assert path.read_text() == "two" and path.stat().st_mode & 0o777 == 0o644 and list(tmp_path.iterdir()) == [path]


def test_where_it_fails_the_old_text_stays_and_nothing_is_left(tmp_path):
    path = tmp_path / "a"
    files.write(path, "one")
    with pytest.raises(UnicodeEncodeError):
        files.write(path, "two \ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        files.write(tmp_path / "folder", "two")
    assert path.read_text() == "one" and {each.name for each in tmp_path.iterdir()} == {"a", "folder"}
