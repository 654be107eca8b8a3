"""Integrations: Gymnasium, PyTorch, Stable-Baselines3, scikit-learn, and the user's own training loop."""
