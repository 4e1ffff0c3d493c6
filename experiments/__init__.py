"""Developers' tools and studies. They run from a checkout and are not part of the installed package."""
