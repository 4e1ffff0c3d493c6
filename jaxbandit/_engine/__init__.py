"""Simulation of games on the devices of this machine. Private: use :func:`jaxbandit.simulate` and :func:`jaxbandit.rollout`."""
