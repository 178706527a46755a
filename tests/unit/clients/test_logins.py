"""A token file is read again after its token was refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from innkeeper.clients.logins import TokenFile
from innkeeper.domain.errors import Unavailable


def test_a_refused_token_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    login = TokenFile(path)
    assert login.token() == "one"
    path.write_text("two\n")
    assert login.token() == "one"
    login.renew()
    assert login.token() == "two"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"])
def test_a_file_without_a_token_is_unavailable(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    login = TokenFile(path)
    with pytest.raises(Unavailable):
        login.token()
    path.write_text("one\n")
    assert login.token() == "one"
