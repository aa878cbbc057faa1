"""How long something takes by how much of it there is, learnt from what was seen.

Two shapes. A `Line` forgets: it follows a time that depends on many different sizes. A `Curve` keeps a mean for each
size, for few sizes of which one may run for minutes: what another one takes must not be forgotten meanwhile.
"""

from dataclasses import dataclass, field

MEMORY = 64
"""A line forgets: observations count by about the last 64, by their weight."""
MIN_OBSERVATIONS = 4
OUTLIER = 4.0
"""A time this many times the expected one is not taken."""
LEAST_SPREAD = 0.05
"""Relative variance of the sizes below which the fixed part of a line cannot be told from the rest."""
ASSUMED_FIXED_SHARE = 0.2
RECENT = 16
"""The mean of a size follows about so many observations of it."""


@dataclass(slots=True)
class Line:
    """`y = fixed + slope * x`, by least squares over what was seen lately; neither part is negative."""

    _num_seen: int = 0
    _weight: float = 0.0
    _x: float = 0.0
    _y: float = 0.0
    _xx: float = 0.0
    _xy: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether enough was seen to predict."""
        return self._num_seen >= MIN_OBSERVATIONS

    def observe(self, x: float, y: float, *, weight: float = 1.0) -> None:
        """Take one observation that counts as `weight` of them, unless it is an outlier."""
        if self.is_known and y > OUTLIER * max(self.at(x), 1.0):
            return
        keep = (1.0 - 1.0 / MEMORY) ** weight
        self._num_seen += 1
        self._weight = self._weight * keep + weight
        self._x = self._x * keep + weight * x
        self._y = self._y * keep + weight * y
        self._xx = self._xx * keep + weight * x * x
        self._xy = self._xy * keep + weight * x * y

    def at(self, x: float) -> float:
        """Return the expected `y` at `x`."""
        fixed, slope = self._parts()
        return fixed + slope * x

    def _parts(self) -> tuple[float, float]:
        if not self._weight:
            return 0.0, 0.0
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        variance = self._xx / self._weight - mean_x * mean_x
        if mean_x <= 0 or variance <= LEAST_SPREAD * mean_x * mean_x:
            fixed = ASSUMED_FIXED_SHARE * mean_y
            return fixed, (mean_y - fixed) / mean_x if mean_x > 0 else 0.0
        slope = max(0.0, (self._xy / self._weight - mean_x * mean_y) / variance)
        fixed = mean_y - slope * mean_x
        return (fixed, slope) if fixed >= 0 else (0.0, mean_y / mean_x)


@dataclass(slots=True)
class _Mean:
    value: float = 0.0
    count: int = 0

    def take(self, seen: float) -> None:
        self.count = min(self.count + 1, RECENT)
        self.value += (seen - self.value) / self.count


@dataclass(slots=True)
class Curve:
    """A mean `y` for each size `x`; between and beyond those that were seen often, a line through all of them.

    While one size was seen, the whole of it is taken to be fixed: nothing is promised of others.
    """

    _means: dict[int, _Mean] = field(default_factory=dict)
    _found: tuple[float, float] | None = None

    @property
    def is_known(self) -> bool:
        """Whether enough was seen to predict."""
        return sum(mean.count for mean in self._means.values()) >= MIN_OBSERVATIONS

    def observe(self, x: int, y: float) -> None:
        """Take one observation, unless it is an outlier."""
        if self.is_known and y > OUTLIER * max(self.at(x), 1.0):
            return
        self._means.setdefault(x, _Mean()).take(y)
        self._found = None

    def at(self, x: int) -> float:
        """Return the expected `y` at `x`."""
        mean = self._means.get(x)
        if mean is not None and mean.count >= MIN_OBSERVATIONS:
            return mean.value
        fixed, slope = self._parts()
        return fixed + slope * x

    @property
    def fixed(self) -> float:
        """The part that does not depend on `x`."""
        return self._parts()[0]

    def _parts(self) -> tuple[float, float]:
        """Return fixed part and slope; they are looked up far more often than anything is observed."""
        if self._found is None:
            self._found = self._fitted()
        return self._found

    def _fitted(self) -> tuple[float, float]:
        weight = sum(mean.count for mean in self._means.values())
        if not weight:
            return 0.0, 0.0
        mean_x = sum(mean.count * x for x, mean in self._means.items()) / weight
        mean_y = sum(mean.count * mean.value for mean in self._means.values()) / weight
        spread = sum(mean.count * (x - mean_x) ** 2 for x, mean in self._means.items())
        if not spread:
            return mean_y, 0.0
        slope = sum(mean.count * (x - mean_x) * mean.value for x, mean in self._means.items()) / spread
        slope = min(max(0.0, slope), mean_y / mean_x)
        return max(0.0, mean_y - slope * mean_x), slope
