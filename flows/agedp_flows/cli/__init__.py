"""The commands, one file per group: arguments, options and output. Heavy imports happen inside the functions."""
