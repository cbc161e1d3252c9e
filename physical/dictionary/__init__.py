"""The term dictionary: RDF terms as int64 ids, with numbers inlined in the id itself."""
