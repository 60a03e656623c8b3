"""Vector loops beside the plainest loop over the same numbers, which is the limit of any loop that reads each once."""


def run(session):
    lines = session.programs.bench("kernels")
    for line in lines:
        plain = next(one for one in lines if one["name"] == "sum" and one["numbers"] == line["numbers"])
        place = "cache" if line["numbers"] < 1e6 else "memory"
        reads = line["name"] != "normals"  # which writes, and computes far more than it moves
        session.add("kernels", f"{line['numbers']} numbers in the {place}", line["name"], line["seconds"], bytes=line["bytes"],
                    share=min(plain["seconds"]) / min(line["seconds"]) if reads else None, binds=place if reads else "arithmetic")
