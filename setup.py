"""What pyproject.toml cannot say: conf/ and experiments/ stand beside the package and are installed within it."""

from setuptools import find_packages, setup

BESIDE = {"elmo_tasks.conf": "conf", "elmo_tasks.experiments": "experiments"}

setup(packages=[*find_packages(include=["elmo_tasks*"]), *BESIDE], package_dir=BESIDE)
