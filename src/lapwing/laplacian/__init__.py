"""The mathematics: chains, objectives, encoders, training, Rayleigh-Ritz, evaluation."""
