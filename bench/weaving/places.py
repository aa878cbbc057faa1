"""Where the body of a model is: in one place with all else, or at a distance, perhaps behind mutual TLS."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Without a distance, one engine holds all layers."""

    distance_km: float | None = None
    has_tls: bool = False

    @property
    def is_split(self) -> bool:
        """Whether there is a link."""
        return self.distance_km is not None

    def __str__(self) -> str:
        """Name the place in a line or a table."""
        if self.distance_km is None:
            return "one place"
        return f"{self.distance_km:,.0f} km{', TLS' if self.has_tls else ''}"


ONE_PLACE = Place()
