"""One experiment for each statement of the paper: run, judged and written as a page."""
