"""What HolisticTraceAnalysis reads of traces, as JSON: python figures.py TRACE... > figures.json

With -once before the traces it prints how many seconds that takes instead, its imports left out.

The last profiler step is included, which it leaves out otherwise. Needs HolisticTraceAnalysis 0.5.0. Where ts has a
fraction it rounds starts up and ends down to whole microseconds, so that its busy time is a little short there.
"""

import json
import logging
import math
import os
import sys
import time

from hta.trace_analysis import TraceAnalysis

logging.disable(logging.CRITICAL)


def temporal(analysis):
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    return {k: float(row[k]) for k in row.index if k != "rank"}


def idle(analysis):
    frame, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    return [
        {"stream": int(r.stream), "category": r.idle_category, "us": float(r.idle_time)} for r in frame.itertuples()
    ]


def overlap(analysis):
    frame = analysis.get_comm_comp_overlap(visualize=False)
    share = float(frame.iloc[0]["comp_comm_overlap_pctg"]) if len(frame) else math.nan
    return None if math.isnan(share) else share


def figures(path):
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path), include_last_profiler_step=True)
    out = {}
    for name, measure in (("temporal", temporal), ("idle", idle), ("comm_comp_overlap_pctg", overlap)):
        try:
            out[name] = measure(analysis)
        except Exception as e:  # it cannot do every trace; which, is part of the result
            out[name] = {"error": type(e).__name__ + ": " + str(e)}
    return out


if __name__ == "__main__":
    if sys.argv[1] == "-once":
        start = time.perf_counter()
        for p in sys.argv[2:]:
            figures(os.path.abspath(p))
        print(time.perf_counter() - start)
        sys.exit()
    json.dump({os.path.basename(p): figures(os.path.abspath(p)) for p in sys.argv[1:]}, sys.stdout, indent=1, sort_keys=True)
    print()
