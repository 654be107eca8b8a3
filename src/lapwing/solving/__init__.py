"""Any reward, at once: what each action does, learned once, and the policy of a reward by value iteration."""
