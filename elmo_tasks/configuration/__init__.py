"""The composed configuration: checked values, identity of a run, objects of named classes."""

from elmo_tasks.configuration import resolvers as resolvers  # registers what conf/ calls
