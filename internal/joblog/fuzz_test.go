package joblog

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
)

func FuzzLog(f *testing.F) {
	f.Add([]byte("[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n[rank1]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed NCCL work: 807.\n"))
	f.Add([]byte("Root Cause (first observed failure):\n[0]:\n  time      : 2025-05-21_15:43:03\n  host      : w\n  rank      : 0 (local_rank: 0)\n  exitcode  : -9 (pid: 14750)\n  traceback : Signal 9\nsrun: error: node7: tasks 3-4,6: Exited with exit code 1\n0: x\n1: Killed\n"))
	f.Add([]byte("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.91 GiB is free. Process 7 has 4 GiB memory in use.\n"))
	f.Add([]byte("node1:3063:3066 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [receive] via NET/Socket/0\nslurmstepd: error: *** JOB 4 ON n7 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Reader{}.Diagnose(context.Background(), "rank3.log", bytes.NewReader(b))
		if err != nil {
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		other, err := Reader{}.Diagnose(context.Background(), "rank4.log", bytes.NewReader(b))
		if err != nil {
			t.Fatal("the same text is read one time and not the other:", err)
		}
		g, err := Group(context.Background(), append([]*finding.Report{}, r, other))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range g.Findings {
			if f.Rule == "" || f.Title == "" || f.Fix == "" {
				t.Fatalf("%+v", f)
			}
		}
	})
}

func FuzzRecorder(f *testing.F) {
	good, _ := json.Marshal(made("all_reduce:8:completed", "all_reduce:8:started"))
	f.Add(good, true)
	f.Add([]byte("\x80\x02}X\x07\x00\x00\x00entries]s."), false)
	f.Fuzz(func(t *testing.T, b []byte, swap bool) {
		r, err := Recorder(context.Background(), "trace_rank_1", bytes.NewReader(b))
		if err != nil {
			return
		}
		name := "trace_rank_2"
		if swap {
			b = bytes.ReplaceAll(b, []byte("started"), []byte("completed"))
		}
		other, err := Recorder(context.Background(), name, bytes.NewReader(b))
		if err != nil {
			return
		}
		g, err := Group(context.Background(), append([]*finding.Report{}, r, other))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(g); err != nil {
			t.Fatal(err)
		}
		for _, f := range g.Findings {
			if strings.TrimSpace(f.Title) == "" {
				t.Fatalf("%+v", f)
			}
		}
	})
}
