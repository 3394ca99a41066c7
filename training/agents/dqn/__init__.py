"""DQN: values of discrete actions, learnt from a target network (Mnih et al. 2015)."""
