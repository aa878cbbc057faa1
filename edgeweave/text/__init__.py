"""Text to token ids and back: tokenizer, chat template, incremental detokenizer, stop strings.

Gateway and SDK use it; it needs the extra `edgeweave[text]`. Knows nothing of models, requests or the
network, and never imports torch or transformers.
"""

from edgeweave.text.stream import TextPiece, TextStream
from edgeweave.text.text_model import TextModel

__all__ = ["TextModel", "TextPiece", "TextStream"]
