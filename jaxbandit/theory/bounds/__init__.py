"""Regret bounds as functions that return every term by name.

Each :class:`Bound` says how far its constants can be trusted:

- ``proved``: explicit constants with a proof in the source; a curve to draw. Where the source was recalled and not read
  again, ``source`` says so.
- ``recomputed``: explicit constants put together here from the source's lemmas, because the printed ones do not follow.
- ``as printed``: explicit constants as they stand in the source, although they do not follow from it. Never a certificate.
- ``order``: an O- or Ω-form; every constant is 1. To be scaled by a fit, and said so.

MZS22 is Masoudian, Zimmert & Seldin (2022), "L…" a line of its source; ZS20 is Zimmert & Seldin (AISTATS 2020); MZS24 is
Masoudian, Zimmert & Seldin (NeurIPS 2024).
"""
