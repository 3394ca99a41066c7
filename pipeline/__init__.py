"""Stage commands of Sharpwave: one module a verb, dispatched by `pipeline.cli`."""
