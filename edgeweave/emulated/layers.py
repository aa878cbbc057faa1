"""What emulated layers do to a digest, for any run of layers at the cost of one.

A digest is two numbers, u and v. A layer maps u to m u + c. So the digest that went into layer 0, called y, can be had
back at any layer; what a layer keeps of a row is z, a mix of y and the row's position. S is the sum of z over the
sequence up to a row. With M the product of all m below, and w = v / M, a layer adds g S to w. All m are odd and so have
an inverse. Each layer has its own m, c and g: maps of two layers cannot be exchanged, left out or done twice without
another result.

Knows the numbers of layers. Does not know sequences.
"""

from dataclasses import dataclass

import numpy as np

from edgeweave.emulated.mixing import MASK, Words, mix


@dataclass(frozen=True, slots=True)
class LayerNumbers:
    """The numbers of all layers, as plain integers.

    `products[l]` and `offsets[l]` map y to the u that goes into layer l, `inverses[l]` is 1 / `products[l]`; each has
    one more than there are layers. `gains[l]` is the g of layer l.
    """

    products: tuple[int, ...]
    inverses: tuple[int, ...]
    offsets: tuple[int, ...]
    gains: tuple[int, ...]

    @classmethod
    def of(cls, num_layers: int) -> "LayerNumbers":
        """Return the numbers of a model of `num_layers`."""
        products, offsets, gains = [1], [0], []
        for layer in range(num_layers):
            factor, offset, gain = (mix(4 * layer + which + 1) for which in range(3))
            products.append(products[-1] * (factor | 1) & MASK)
            offsets.append((offsets[-1] * (factor | 1) + offset) & MASK)
            gains.append(gain | 1)
        inverses = [pow(product, -1, MASK + 1) for product in products]
        return cls(tuple(products), tuple(inverses), tuple(offsets), tuple(gains))


class LayerMaps:
    """The same numbers for rows; digests are `[tokens, 2]`."""

    def __init__(self, numbers: LayerNumbers) -> None:
        self._products = np.array(numbers.products, dtype=np.uint64)
        self._inverses = np.array(numbers.inverses, dtype=np.uint64)
        self._offsets = np.array(numbers.offsets, dtype=np.uint64)
        self._gains = np.array(numbers.gains, dtype=np.uint64)

    def taken_back(self, digests: Words, *, layer: int) -> tuple[Words, Words]:
        """Return y and w of digests that are about to go into `layer`: each [tokens]."""
        back = self._inverses[layer : layer + 1]
        return (digests[:, 0] - self._offsets[layer : layer + 1]) * back, digests[:, 1] * back

    def put(self, y: Words, w: Words, *, layer: int) -> Words:
        """Return digests as they go into `layer`: [tokens, 2]."""
        product = self._products[layer : layer + 1]
        return np.stack((y * product + self._offsets[layer : layer + 1], w * product), axis=1)

    def gains(self, start: int, stop: int) -> Words:
        """Return the g of layers `[start, stop)`."""
        return self._gains[start:stop]
