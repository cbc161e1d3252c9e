"""The physical operators, one file per family: twins of the files of `streamsparql.algebra`."""
