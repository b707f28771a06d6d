"""The composed configuration: checking its values, naming a run, instantiating the classes that it names."""

from elmo_tasks.configuration.resolvers import register

register()
