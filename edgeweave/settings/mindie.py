"""A `ScheduleConfig` of MindIE, as it is pasted, read as settings of the scheduler.

Knows the keys that mean here what they mean there, and the places where they are written: the whole `config.json`, its
`BackendConfig`, or the section alone. The text is JSON, or JSON as documentation prints it: `True`, `#` comments, a
comma at the end, no braces around. All of that is YAML once the braces are there, so the strict YAML reader of this
package reads it. Does not know where the text came from, nor what the settings do.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings.yaml_file import parse_mapping

SECTION = "ScheduleConfig"
HOMES = ("BackendConfig.ScheduleConfig", "ScheduleConfig")
MAX_SEQ_LEN, MAX_BATCH, MAX_PREFILL_BATCH = "maxSeqLen", "maxBatchSize", "maxPrefillBatchSize"
NEXT_HEAD = "layerwiseDisaggregated.nextPHeadPrior"
FIELDS = {
    MAX_PREFILL_BATCH: "max_prefill_batch_size",
    "maxPrefillTokens": "max_prefill_tokens",
    MAX_SEQ_LEN: "max_seq_len",
    MAX_BATCH: "max_batch_size",
    NEXT_HEAD: "plan",
}
LARGEST = {MAX_BATCH: 819_200}
LARGEST_WHOLE = 2**31 - 1
DEFAULT_BATCH_SIZE = 200
"""MindIE's own `maxBatchSize`, which a `maxPrefillBatchSize` of 0 or less stands for."""


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """What a pasted configuration says.

    `fields` holds settings of the scheduler under their own names, only those that were written. `ignored` holds the
    paths of all that is not followed: keys of the section itself, and the other sections by name.
    """

    fields: dict[str, object]
    ignored: tuple[str, ...]


def parse_schedule_config(text: str) -> ScheduleConfig:
    """Return the settings of the scheduler in a pasted `ScheduleConfig`.

    Raises:
        InvalidSettingsError: the text cannot be read, or has no such section; or one line for each key whose type or
            range is wrong, or whose name is nearly that of a key that is followed.
    """
    written = dict(_leaves(parse_mapping(_in_braces(text), where=SECTION)))
    home = _home(written)
    followed = _followed(written, home)
    ignored = [path for path in written if path not in followed and path not in HOMES]
    lines = [*_illegal_lines(written, followed), *_misspelt_lines(ignored, home)]
    if lines:
        raise InvalidSettingsError("\n".join(lines))
    fields = _fields({key: written[path] for path, key in followed.items()})
    return ScheduleConfig(fields, tuple(dict.fromkeys(_shortened(path, home) for path in ignored)))


def _in_braces(text: str) -> str:
    """Return `text` with braces around it, where a section was copied out of its file without them."""
    lines = (line.lstrip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return text if first.startswith("{") else "{" + text + "\n}"


def _leaves(mapping: Mapping[str, object], *, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each value with its dotted path; an empty mapping is a value."""
    for key, value in mapping.items():
        own = f"{path}{key}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, path=f"{own}.")
        else:
            yield own, value


def _home(written: Mapping[str, object]) -> str:
    """Return the path of the section, with its dot; empty where the keys stand alone."""
    for home in HOMES:
        if any(path == home or path.startswith(f"{home}.") for path in written):
            return f"{home}."
    if any(path in FIELDS or path.startswith("layerwiseDisaggregated") for path in written):
        return ""
    raise InvalidSettingsError(f"{SECTION}: not found; paste {SECTION}, BackendConfig or the whole config.json")


def _followed(written: Mapping[str, object], home: str) -> dict[str, str]:
    """Return the paths that are followed, each with the key that it stands for."""
    paths = {f"{home}{key}": key for key in FIELDS}
    if f"{home}{MAX_SEQ_LEN}" not in written:  # where MindIE itself has it
        paths[f"{home.replace(SECTION, 'ModelDeployConfig')}{MAX_SEQ_LEN}"] = MAX_SEQ_LEN
    return {path: key for path, key in paths.items() if path in written}


def _illegal_lines(written: Mapping[str, object], followed: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each value of a wrong type or range."""
    for path in (*HOMES, *(f"{home}.layerwiseDisaggregated" for home in HOMES), "layerwiseDisaggregated"):
        if path in written and written[path] != {}:
            yield f"{path}: {written[path]!r} is not legal; legal: an object with keys of its own"
    for path, key in followed.items():
        value, largest = written[path], LARGEST.get(key, LARGEST_WHOLE)
        if key == NEXT_HEAD:
            legal, is_legal = "true for 2P1D or false for 1P1D", isinstance(value, bool)
        elif key == MAX_PREFILL_BATCH:
            legal, is_legal = f"a whole number to {largest}", _is_whole(value, -largest, largest)
        else:
            legal, is_legal = f"a whole number from 1 to {largest}", _is_whole(value, 1, largest)
        if not is_legal:
            yield f"{path}: {value!r} is not legal; legal: {legal}"


def _is_whole(value: object, least: int, largest: int) -> bool:
    return type(value) is int and least <= value <= largest


def _misspelt_lines(ignored: list[str], home: str) -> Iterator[str]:
    """Yield a line for each key of the section that is nearly, but not quite, one that is followed."""
    for path in ignored:
        key = path.removeprefix(home)
        near = difflib.get_close_matches(key, FIELDS, n=1, cutoff=0.9) if path.startswith(home) else []
        if near:
            yield f"{path}: no such key; did you mean {near[0]}?"


def _fields(values: Mapping[str, object]) -> dict[str, object]:
    """Return legal values under the names of the scheduler's settings."""
    fields = {FIELDS[key]: value for key, value in values.items()}
    prefill_batch = values.get(MAX_PREFILL_BATCH)
    if isinstance(prefill_batch, int) and prefill_batch <= 0:
        fields[FIELDS[MAX_PREFILL_BATCH]] = values.get(MAX_BATCH, DEFAULT_BATCH_SIZE)
    if NEXT_HEAD in values:
        fields[FIELDS[NEXT_HEAD]] = "2p1d" if values[NEXT_HEAD] else "1p1d"
    return fields


def _shortened(path: str, home: str) -> str:
    """Return a key of the section as it is, and a key of another section as that section."""
    return path if path.startswith(home) else path.rpartition(".")[0] or path
