"""Where values come from: a file, variables, flags. Each source becomes entries under full keys.

Knows how each source spells a key, such as `edge.tls.ca_file`: nested in the file,
`EDGEWEAVE_EDGE__TLS__CA_FILE` in the environment, `--tls-ca-file` as a flag. Does not know which keys or
values are legal.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pydantic import BaseModel, ByteSize

from edgeweave.settings.common import CommonSettings
from edgeweave.settings.flag_parser import FlagParser

Key = tuple[str, ...]

PREFIX = "EDGEWEAVE_"
DELIMITER = "__"


@dataclass(frozen=True, slots=True)
class Entry:
    """A value, the key that it was written under, and where: a file's name, a variable or a flag."""

    value: object
    key: Key
    where: str


Entries = dict[Key, Entry]


def variable_of(key: Key) -> str:
    """Return the variable that sets `key`."""
    return PREFIX + DELIMITER.join(key).upper()


def flag_of(key: Key) -> str:
    """Return the flag that sets `key`; the section is that of the service that is started."""
    return "--" + "-".join(key[1:]).replace("_", "-")


def entries_of_mapping(mapping: Mapping[str, object], *, where: str, base: Key = ()) -> Entries:
    """Return the leaves of a nested mapping; an empty mapping and a list are leaves."""
    entries: Entries = {}
    for name, value in mapping.items():
        key = (*base, str(name))
        if isinstance(value, dict) and value:
            entries |= entries_of_mapping(value, where=where, base=key)
        else:
            entries[key] = Entry(value, key, where)
    return entries


def entries_of_environ(environ: Mapping[str, str]) -> Entries:
    """Return the variables that spell a key; those without the delimiter are not settings."""
    entries: Entries = {}
    for name, value in sorted(environ.items()):
        spelled = name.removeprefix(PREFIX)
        if spelled != name and DELIMITER in spelled:
            key = tuple(spelled.lower().split(DELIMITER))
            entries[key] = Entry(value, key, name)
    return entries


def leaf_keys(model: type[BaseModel], *, base: Key) -> Iterator[tuple[Key, str]]:
    """Yield key and description of every setting of `model`, those of nested models one by one."""
    for name, field in model.model_fields.items():
        nested = _nested_model(field.annotation)
        if nested is None:
            yield (*base, name), _described(field.description, None if field.is_required() else field.default)
        else:
            yield from leaf_keys(nested, base=(*base, name))


@dataclass(frozen=True, slots=True)
class Flags:
    """What the flags say: the settings file, the values, and what no flag is known for."""

    config: str | None
    entries: Entries
    unknown: tuple[str, ...]


def read_flags(settings: type[CommonSettings], argv: Sequence[str]) -> Flags:
    """Return the flags of a service. `--help` prints all of them and exits.

    Raises:
        InvalidSettingsError: a flag without its value.
    """
    keys = dict(leaf_keys(settings, base=(settings.section,)))
    parser = FlagParser(prog=f"edgeweave serve {settings.section}", description=settings.__doc__)
    parser.add_argument("--config", metavar="FILE", help="settings file, YAML or JSON")
    for key, description in keys.items():
        parser.add_argument(flag_of(key), dest=".".join(key), metavar="VALUE", help=description.replace("%", "%%"))
    known, unknown = parser.parse_known_args([_dashed(argument) for argument in argv])
    given = {key: vars(known)[".".join(key)] for key in keys}
    entries = {key: Entry(text, key, flag_of(key)) for key, text in given.items() if text is not None}
    return Flags(known.config, entries, tuple(_without_values(unknown)))


def _dashed(argument: str) -> str:
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else argument


def _without_values(unknown: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that are wrong by themselves: not the value after a flag that is not known."""
    for before, argument in pairwise(["", *unknown]):
        if argument.startswith("-") or not before.startswith("-"):
            yield argument


def _nested_model(annotation: object) -> type[BaseModel] | None:
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _described(description: str | None, default: object) -> str:
    match default:
        case None | []:
            return f"{description}"
        case ByteSize():
            return f"{description} [{default.human_readable()}]"
        case bool():
            return f"{description} [{str(default).lower()}]"
        case _:
            return f"{description} [{default}]"
