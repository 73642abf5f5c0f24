"""Writes internal/tfevents/testdata/scalars.tfevents with TensorBoard's own writer: python tensorboard_golden.py FILE"""
import sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

with open(sys.argv[1], "wb") as f:
    w = RecordWriter(f)
    w.write(Event(wall_time=1700000000.25, file_version="brain.Event:2").SerializeToString())
    for step, tag, v in [(1, "loss/train", 2.5), (300, "loss/held out", -1e-30), (70000, "accuracy", 0.875)]:
        s = Summary(value=[Summary.Value(tag=tag, simple_value=v)])
        w.write(Event(wall_time=1700000000.25, step=step, summary=s).SerializeToString())
    w.flush()
