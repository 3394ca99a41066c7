"""`make bench`: how fast each part of the loop is, beside a limit measured in the same run."""
