"""The computation of plans: interval operators over columnar batches.

`lowering` turns a logical plan into operators, `pipeline` runs them. This package imports the
algebra, but not the translator and nothing that users touch; setup.cfg has the contract.
"""

if __name__ == "physical":
    raise ImportError("this is a part of a package: import streamsparql.physical instead")
