"""A YAML file read strictly, as one mapping.

Plain scalars are read as YAML 1.2 does: `1:1` is text (YAML 1.1 takes it for 61 in base 60), `on` and `no`
are text, `true` and `false` are not. JSON is read too. A key that is written twice is an error.
"""

import re
from collections.abc import Hashable

import yaml

from edgeweave.errors import InvalidSettingsError


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML with the scalars of YAML 1.2 and unique keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:  # noqa: FBT001, FBT002 (the library's signature)
        mapping: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            written = [self.construct_object(key) for key, _ in node.value]
            twice = next(key for key in written if written.count(key) > 1)
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice} is written twice", node.start_mark)
        return mapping


_StrictLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _starts in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_starts))


def parse_mapping(text: str, *, where: str) -> dict[str, object]:
    """Return the mapping that `text` holds; an empty text is an empty mapping.

    Raises:
        InvalidSettingsError: `text` is not a YAML mapping; the line names `where` and the place in it.
    """
    if text.lstrip().startswith("{"):  # JSON may be indented with tabs, which YAML forbids
        text = text.expandtabs(1)
    try:
        content = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 (a subclass of SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidSettingsError(f"{where}{place}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        first_line = str(error).splitlines()[0]
        raise InvalidSettingsError(f"{where}: not YAML: {first_line}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidSettingsError(f"{where}: holds {type(content).__name__}; it has to be a mapping of sections")
    return {str(key): value for key, value in content.items()}
