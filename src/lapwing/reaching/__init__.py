"""Going to any goal, from data with actions: landmarks, a plan over them, and a local controller."""
