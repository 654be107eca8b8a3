"""φ as a features extractor of Stable-Baselines3; the code is in `lapwing.integrations.sb3`."""

from lapwing.integrations.sb3 import LaplacianExtractor

__all__ = ["LaplacianExtractor"]
