"""A token proves itself, and what is stored of it does not give it away."""

import pytest

from service.keys import tokens

HASH_KEY = "k" * 32


def test_token_is_read_back_from_its_text() -> None:
    token = tokens.new_token()
    assert tokens.parse(str(token)) == token


def test_no_two_tokens_are_alike() -> None:
    made = [tokens.new_token() for _ in range(100)]
    assert len({token.prefix for token in made}) == len({token.secret for token in made}) == 100


@pytest.mark.parametrize(
    "text",
    ["", "vnce_", "vnce_0123456789ab_short", "vnce_0123456789AB_" + "x" * 43, "\0", "é" * 60],
)
def test_other_text_is_no_token(text: str) -> None:
    assert tokens.parse(text) is None


def test_only_the_right_secret_under_the_right_hash_key_is_right() -> None:
    token = tokens.new_token()
    stored = tokens.keyed_hash(token, HASH_KEY)
    assert tokens.is_right(token, stored, HASH_KEY)
    assert not tokens.is_right(tokens.new_token(), stored, HASH_KEY)
    assert not tokens.is_right(token, stored, "other" * 8)


def test_what_is_stored_does_not_contain_the_secret() -> None:
    token = tokens.new_token()
    stored = tokens.keyed_hash(token, HASH_KEY)
    assert token.secret not in stored
    assert stored != tokens.keyed_hash(token, "other" * 8)
