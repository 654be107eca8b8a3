"""Any reward: a model of the actions, learned once, and the policy of a reward by value iteration."""
