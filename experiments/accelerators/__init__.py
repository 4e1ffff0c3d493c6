"""Programs compiled ahead of time for GPUs and TPUs, and readers of the compilers' output."""
