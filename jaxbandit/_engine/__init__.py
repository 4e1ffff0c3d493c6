"""How this machine plays a game. Private: use :func:`jaxbandit.simulate` and :func:`jaxbandit.rollout`."""
