"""Parameters of the API that this gateway knows and does not offer.

Knows that a value which changes nothing is accepted and that any other is refused: a parameter that is dropped in
silence would change an answer without anyone noticing. Does not know which parameters there are.
"""

from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def only(*values: Any) -> AfterValidator:
    """Return a validator that accepts `values` and None; 0 and False are different values here."""
    accepted = [(type(value), value) for value in (None, *values)]

    def check(value: Any) -> Any:
        if (type(value), value) not in accepted:
            raise PydanticCustomError("not_offered", "is not offered by this server; leave it out")
        return value

    return AfterValidator(check)


NotOffered = Annotated[Any, only()]
NoList = Annotated[Any, only([], {})]
Zero = Annotated[Any, only(0, 0.0)]
One = Annotated[Any, only(1, 1.0)]
NoFlag = Annotated[Any, only(False)]  # noqa: FBT003 - the value that is accepted
Ignored = Any
