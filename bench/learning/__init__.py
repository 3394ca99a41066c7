"""What the agents learn: many training runs, one after another, and what came of each."""
