"""What the layers of a biLM hold by themselves (section 5.3): senses and neighbours, without a task model."""
