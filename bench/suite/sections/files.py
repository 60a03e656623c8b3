"""Loading a task, every number and checksum checked, beside read() of the same bytes from the page cache: into a buffer for files that are
mapped, into fresh memory for those that have to be copied."""


def run(session):
    lines = session.programs.bench("files", session.programs.folder, "--mib", 256 if session.quick else 2048)
    best = {line["name"]: min(line["seconds"]) for line in lines}
    for line in lines:
        memory = line["peak_memory"] / line["bytes"] if "peak_memory" in line else None
        limit = best["read() into fresh memory" if line["name"].startswith("copied") else "read(), 1 MiB buffer"]
        session.add("files", f"{line['bytes'] / 1e9:.2f} GB", line["name"], line["seconds"], bytes=line["bytes"], share=limit / min(line["seconds"]),
                    binds="memory", memory=memory)
