"""The benchmark suite. bench/run measures and writes one JSON file; tables, documents and comparisons are made from that file alone.

    results     rows, their medians and quartiles, the file
    sections/   what is measured, one file per subject
    peers/      the solvers people use today, one file each
    published/  the papers' experiments as their authors run them
    worker      a peer in a process of its own, with a time-out
    judge       what an answer is really worth
"""
