"""A model of integers: each layer's value at a position depends on everything before it, so order errors change tokens.

Stands where a real model would be too slow for thousands of schedules. KV is a list for each sequence and layer; a
row that comes twice, early, late or after its sequence was freed fails at once.
"""

from dataclasses import dataclass, field

VOCAB = 97
STOP_TOKEN = 0


def mix(before: int, value: int) -> int:
    """Return a number that depends on both, and on their order."""
    return (before * 1_000_003 ^ value * 69_069 + 12_345) & 0xFFFF_FFFF


@dataclass(slots=True)
class SymbolicLayers:
    """Layers `[start, stop)` with their KV."""

    start: int
    stop: int
    kv: dict[int, list[list[int]]] = field(default_factory=dict)

    def run(self, sequence: int, position: int, value: int, *, start: int, stop: int) -> int:
        """Run layers `[start, stop)` at one position."""
        layers = self.kv.setdefault(sequence, [[] for _ in range(self.stop - self.start)])
        for layer in range(start, stop):
            values = layers[layer - self.start]
            assert len(values) == position, f"sequence {sequence} layer {layer}: position {position}, KV {len(values)}"
            value = mix(values[-1] if values else layer, value)
            values.append(value)
        return value

    def free(self, sequences: tuple[int, ...]) -> None:
        """Free the KV of sequences."""
        for sequence in sequences:
            self.kv.pop(sequence, None)


def generate(prompt: tuple[int, ...], *, num_layers: int, max_tokens: int) -> list[int]:
    """Return what one place would generate: the reference."""
    layers = SymbolicLayers(0, num_layers)
    output: list[int] = []
    value = 0
    for position, token in enumerate(prompt):
        value = layers.run(1, position, token, start=0, stop=num_layers)
    while True:
        output.append(value % VOCAB)
        if output[-1] == STOP_TOKEN or len(output) == max_tokens:
            return output
        value = layers.run(1, len(prompt) + len(output) - 1, output[-1], start=0, stop=num_layers)
