"""The files of a run and of a sweep: written, read, and whether they are whole and of this code and these texts."""
