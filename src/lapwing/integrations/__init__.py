"""lapwing inside other libraries: Gymnasium, PyTorch, Stable-Baselines3, scikit-learn, one's own loop."""
