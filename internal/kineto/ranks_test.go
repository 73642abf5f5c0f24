package kineto

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// course is what a step of a rank takes, in nanoseconds.
type course struct {
	loader, host, kernel int64
	kernels              int
}

// together writes the traces of ranks that meet in an all-reduce of half a millisecond at the end of each step: who comes early
// waits in it. Each rank's clock is ahead by its skew.
type together struct {
	ranks, steps int
	skew         func(rank int) int64
	does         func(rank, step int) course
	args         func(rank, step int) string // of the all-reduce
}

const (
	micros = 1_000
	millis = 1_000_000
)

func (j *together) write() []string {
	out, now := make([]bytes.Buffer, j.ranks), make([]int64, j.ranks)
	id := 0
	event := func(r int, cat, name string, tid int, at, dur int64, args string) {
		if out[r].Len() > 0 {
			out[r].WriteString(",\n")
		}
		at += j.skew(r)
		fmt.Fprintf(&out[r], `{"ph": "X", "cat": %q, "name": %q, "pid": 1, "tid": %d, "ts": %d.%03d, "dur": %d.%03d, "args": {%s}}`, cat, name, tid, at/1000, at%1000, dur/1000, dur%1000, args)
	}
	launch := func(r int, name string, stream int, begin, dur int64, args string) {
		id++
		event(r, "cuda_runtime", "cudaLaunchKernel", 1, now[r], 5*micros, fmt.Sprintf(`"correlation": %d`, id))
		event(r, "kernel", name, stream, begin, dur, fmt.Sprintf(`"device": 0, "stream": %d, "correlation": %d%s`, stream, id, args))
		now[r] += 5 * micros
	}
	for s := range j.steps {
		begins, began := make([]int64, j.ranks), make([]int64, j.ranks)
		last := int64(0)
		for r := range j.ranks {
			c := j.does(r, s)
			begins[r] = now[r]
			event(r, "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, now[r], c.loader, "")
			now[r] += c.loader + c.host
			free := int64(0)
			for range c.kernels {
				begin := max(now[r]+8*micros, free+micros)
				launch(r, "sm90_xmma_gemm_bf16bf16", 7, begin, c.kernel, "")
				free = begin + c.kernel
			}
			began[r] = max(free, now[r]+8*micros) + micros
			last = max(last, began[r])
		}
		for r := range j.ranks {
			end := last + millis/2
			launch(r, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 40, began[r], end-began[r], j.args(r, s))
			event(r, "cuda_runtime", "cudaStreamSynchronize", 1, now[r], end+3*micros-now[r], "")
			now[r] = end + 3*micros
			event(r, "user_annotation", fmt.Sprintf("ProfilerStep#%d", s), 1, begins[r], now[r]-begins[r], "")
		}
	}
	var files []string
	for r := range out {
		files = append(files, fmt.Sprintf(`{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d}, "traceEvents": [%s]}`, r, j.ranks, &out[r]))
	}
	return files
}

func numbered(_, step int) string {
	return fmt.Sprintf(`, "Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4, "Seq": %d, "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float"`, step+7)
}

func counting(_, _ int) string {
	return `, "Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4`
}

// compared is what is said of traces.
func compared(t *testing.T, files []string) *finding.Report {
	t.Helper()
	var members []*finding.Report
	for i, text := range files {
		rep, err := Diagnose(t.Context(), fmt.Sprintf("rank%d.json", i), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, rep)
	}
	rep, err := Group(t.Context(), members)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func usual(int, int) course {
	return course{loader: 100 * micros, host: 200 * micros, kernel: 900 * micros, kernels: 10}
}

// TestStraggler: who the others wait for is found with the reason and the time, however far clocks are apart and whether or
// not collectives are numbered, and the critical path leads through that; where no rank is late, none is called so.
func TestStraggler(t *testing.T) {
	r := testutil.Rand(t)
	for _, c := range []struct {
		name, why, stage string
		change           func(c *course)
		lost             int64
	}{
		{"loader", "its loader is slow", "the loader", func(c *course) { c.loader += 3 * millis }, 3 * millis},
		{"card", "its card is slow", "kernels", func(c *course) { c.kernel += c.kernel / 5 }, 10 * 180 * micros},
		{"work", "it has more to compute", "kernels", func(c *course) { c.kernels += 3 }, 3 * 901 * micros},
		{"host", "its host is slow", "the host", func(c *course) { c.host += 2 * millis }, 2 * millis},
		{"none", "", "", func(*course) {}, 0},
	} {
		for _, args := range []func(_, _ int) string{numbered, counting} {
			late := r.IntN(4)
			skews := []int64{0, r.Int64N(millis), 3_600_000_000_000 + r.Int64N(millis), 40 * millis}
			j := together{ranks: 4, steps: 8, skew: func(n int) int64 { return skews[n] }, args: args, does: func(rank, step int) course {
				x := usual(rank, step)
				x.host += r.Int64N(50 * micros)
				if rank == late {
					c.change(&x)
				}
				return x
			}}
			rep := compared(t, j.write())
			if c.why == "" {
				if len(rep.Findings) != 0 || len(rep.Checked) == 0 {
					t.Errorf("%s: %+v", c.name, rep.Findings)
				}
				continue
			}
			if len(rep.Findings) != 1 {
				t.Fatalf("%s: %d findings; %v", c.name, len(rep.Findings), rep.Notes)
			}
			f := rep.Findings[0]
			if f.Rule != "R35" || !strings.Contains(f.Title, fmt.Sprintf("rank %d: %s", late, c.why)) || math.Abs(float64(f.Gain.Step().Nanoseconds()-c.lost)) > 60*micros {
				t.Errorf("%s of rank %d: %s, gain %v of %d", c.name, late, f.Title, f.Gain.Step(), c.lost)
			}
			path := rep.Figures["critical_path_of_ranks"].([]pathRow)
			of := 0.0
			for _, p := range path {
				if *p.Rank == late {
					of += p.Share
				}
			}
			if of < 0.9 || !strings.Contains(fmt.Sprint(rep.Notes), fmt.Sprintf("rank %d, %s", late, c.stage)) {
				t.Errorf("%s of rank %d: %v; %v", c.name, late, path, rep.Notes)
			}
		}
	}
}

// TestNobodyBlamed: a rank that is late in turn, sends between two, collectives that cannot be told apart and files of the same
// rank blame nobody, and what cannot be told is said.
func TestNobodyBlamed(t *testing.T) {
	still := func(int) int64 { return 0 }
	turns := together{ranks: 4, steps: 12, skew: still, args: numbered, does: func(rank, step int) course {
		c := usual(rank, step)
		if step%4 == rank {
			c.host += 3 * millis
		}
		return c
	}}
	late := func(rank, step int) course {
		c := usual(rank, step)
		if rank == 1 {
			c.host += 3 * millis
		}
		return c
	}
	sends := together{ranks: 2, steps: 6, skew: still, does: late, args: func(_, _ int) string { return `, "Collective name": "send"` }}
	uneven := together{ranks: 2, steps: 6, skew: still, does: late, args: counting}
	files := uneven.write()
	files[1] = strings.Replace(files[1], "ncclDevKernel_AllReduce", "someKernel", 1) // one that the recorder did not see
	same := turns.write()
	for name, c := range map[string]struct {
		files []string
		note  string
	}{
		"in turn": {turns.write(), ""}, "sends": {sends.write(), "all communication is between two"}, "uneven": {files, "not the same number"},
		"twice": {[]string{same[0], same[0]}, "both of rank 0"}, "alone": {same[:1], ""},
	} {
		rep := compared(t, c.files)
		if len(rep.Findings) != 0 || !strings.Contains(fmt.Sprint(rep.Notes), c.note) {
			t.Errorf("%s: %+v; %v", name, rep.Findings, rep.Notes)
		}
	}
}

// TestPathIsWhole: the parts of the critical path add up to the window, whatever the training.
func TestPathIsWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(testutil.Seed(t), 1))
	for range 20 {
		o := tracetest.Options{Steps: 4, Loader: r.Int64N(50 * millis), Items: r.IntN(4), Pageable: r.IntN(2) == 0, HostCost: r.Int64N(20 * micros), Exposed: r.IntN(2) == 0}
		for name, raw := range map[string][]byte{"resnet": tracetest.ResNet(o), "gpt": tracetest.GPT(o)} {
			rep, err := Diagnose(t.Context(), name, bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			tr := rep.Detail.(*Trace)
			var sum int64
			for _, p := range tr.Path {
				sum += p.NS
			}
			if d := float64(sum-tr.Judged.Dur()) / float64(tr.Judged.Dur()); math.Abs(d) > 0.01 {
				t.Errorf("%s %+v: the path has %d of %d ns: %+v", name, o, sum, tr.Judged.Dur(), tr.Path[:min(4, len(tr.Path))])
			}
		}
	}
}
