"""The version, in a module that every other module may import.

It is written here and not derived from git. A sweep compares it before it resumes, so that a version for each commit would
separate sweeps whose numbers are the same. The release workflow compares it with the tag.
"""

__version__ = "0.2.0.dev0"
