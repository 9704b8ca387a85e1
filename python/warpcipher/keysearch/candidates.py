# SPDX-License-Identifier: Apache-2.0
"""Candidates for key bytes from the scores of a side-channel measurement.

A search adds up costs of 0 to 255; scores are logarithms of likelihoods. One step of cost is the
same difference of scores in every byte, the 255th part of the largest one, so that sums of costs
are in the order of sums of scores, except for rounding.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from ..arguments import kind, require_int, require_items, text_bytes
from .template import Candidates

MOST_COST = 255

Scores = Mapping[int, Mapping[int, float] | Sequence[float]]


def candidates_from_scores(scores: Scores, keep: int = 256) -> Candidates:
    """Candidates for `Template`, from the scores of the values of each byte (by position from 0).

    scores: for each byte a mapping from value to score, or 256 scores in the order of values: the
            logarithm of the likelihood to any base; the larger the likelier.
    keep:   only the best that many of each byte.

    Raises ValueError for a score that is not a finite number, and for no or too many values,
    TypeError for anything but such a mapping.
    """
    if not isinstance(scores, Mapping):
        raise TypeError(f"the scores are {kind(scores)}: expected a mapping from bytes to theirs")
    require_int("keep", keep, 1)
    kept: dict[int, list[tuple[int, float]]] = {}
    for given_position, given in scores.items():
        position = require_int("the position of a byte with scores", given_position)
        what = f"the scores of byte {position}"
        items: Iterable[tuple[int, object]] = (
            given.items()
            if isinstance(given, Mapping)
            else enumerate(require_items(what, given, "256 of them or a mapping"))
        )
        found = [
            (require_int(f"a value with one of {what}", value), _finite(position, score))
            for value, score in items
        ]
        if not isinstance(given, Mapping) and len(found) != 256:
            raise ValueError(f"byte {position} has {len(found)} scores, expected 256 or a mapping")
        if not found:
            raise ValueError(f"byte {position} has no scores")
        kept[position] = sorted(found, key=lambda item: (-item[1], item[0]))[:keep]
    worst = max((found[0][1] - found[-1][1] for found in kept.values()), default=0.0)
    if not math.isfinite(worst):
        raise ValueError("a byte has scores too far apart for a finite difference")
    return {
        position: {value: _cost(found[0][1] - score, worst) for value, score in found}
        for position, found in kept.items()
    }


def _finite(position: int, score: object) -> float:
    try:
        number = float(score)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"a score of byte {position} is {kind(score)}: expected a number") from None
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"byte {position} has a score that is not a finite number")
    return number


def _cost(loss: float, worst: float) -> int:
    return round(MOST_COST * (loss / worst)) if worst > 0 else 0


def parse_candidates(text: str | bytes) -> Candidates:
    """Candidates from JSON: for each byte by its position, values in hex, with scores or without.

        {"3": {"16": -0.2, "17": -2.5, "56": -7}, "15": ["3c", "3d"]}

    Raises ValueError if it is something else. The error repeats no value.
    """
    try:
        # Integers as floats: the largest become infinite, which no score may be.
        content = text_bytes("text", text)
        document = json.loads(content, object_pairs_hook=_without_repetition, parse_int=float)
    except RecursionError:
        raise ValueError(
            'the candidates are nested too deeply: expected an object such as {"3": {"16": -0.2}}'
        ) from None
    except (UnicodeError, json.JSONDecodeError):
        raise ValueError("the candidates are not JSON") from None
    if not isinstance(document, dict) or not document:
        raise ValueError('the candidates are not a JSON object such as {"3": {"16": -0.2}}')
    scores: dict[int, dict[int, float]] = {}
    for name, given in document.items():
        if not (name.isascii() and name.isdecimal() and len(name) < 4):
            raise ValueError("the candidates have a name that is not a position of a byte, as 3")
        if int(name) in scores:
            raise ValueError(f"the candidates have byte {int(name)} twice")
        if isinstance(given, list):
            given = _without_repetition((value, 0) for value in given)
        if not isinstance(given, dict):
            raise ValueError(f"byte {name}: expected an object of values and scores, or a list")
        scores[int(name)] = {
            _value(name, value): _score(name, score) for value, score in given.items()
        }
    return candidates_from_scores(scores)


def _without_repetition(pairs: Iterable[tuple[object, object]]) -> dict[object, object]:
    found: dict[object, object] = {}
    for name, value in pairs:
        key = name.lower() if isinstance(name, str) else None
        if key is None or key in found:
            raise ValueError("the candidates have a value twice, or one that is not text")
        found[key] = value
    return found


def _value(position: str, text: str) -> int:
    try:
        if len(text) != 2 or not text.isalnum():
            raise ValueError
        return int(text, 16)
    except ValueError:
        raise ValueError(f"byte {position} has a value that is not two hex digits") from None


def _score(position: str, score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise ValueError(f"byte {position} has a score that is not a number")
    return float(score)
