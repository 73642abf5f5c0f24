package joblog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pickle"
)

// made is the record of a rank in the form of version 2.10: a collective of so many for each word, "op:elements:state".
func made(calls ...string) map[string]any {
	var entries []any
	for i, c := range calls {
		f := strings.Split(c, ":")
		entries = append(entries, map[string]any{
			"record_id": int64(i), "pg_id": int64(0), "process_group": []any{"0", "default_pg"}, "collective_seq_id": int64(i + 1), "p2p_seq_id": int64(0), "op_id": int64(i + 1),
			"profiling_name": "nccl:" + f[0], "input_sizes": []any{[]any{atoi(f[1])}}, "output_sizes": []any{[]any{atoi(f[1])}}, "input_dtypes": []any{"Float"}, "output_dtypes": []any{"Float"},
			"state": f[2], "retired": f[2] == "completed", "timeout_ms": int64(600000), "is_p2p": f[0] == "send",
			"frames": []any{
				map[string]any{"name": "all_reduce", "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": int64(2806)},
				map[string]any{"name": "main", "filename": "/home/u/train.py", "line": int64(100 + i)},
			},
		})
	}
	return map[string]any{"version": "2.10", "pg_config": map[string]any{"0": map[string]any{"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}, "pg_status": map[string]any{}, "entries": entries}
}

func atoi(s string) (n int64) { fmt.Sscan(s, &n); return n }

// pickled is the record as PyTorch pickles it.
func pickled(t *testing.T, v any) []byte {
	t.Helper()
	var plain func(v any) any
	plain = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			var d pickle.Dict
			for k, x := range v {
				d = append(d, pickle.Item{Key: k, Value: plain(x)})
			}
			return d
		case []any:
			return pickle.List(func(yield func(any) bool) {
				for _, x := range v {
					if !yield(plain(x)) {
						return
					}
				}
			})
		}
		return v
	}
	var b bytes.Buffer
	if err := pickle.Encode(&b, plain(v)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// recorded reads the records of ranks in one of the two forms.
func recorded(t *testing.T, form string, ranks map[int]map[string]any) []*finding.Report {
	t.Helper()
	var all []*finding.Report
	for r := range 8 {
		v, ok := ranks[r]
		if !ok {
			continue
		}
		b, err := json.Marshal(v)
		if form == "pickle" {
			b, err = pickled(t, v), nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if !IsRecorder(b) {
			t.Fatalf("a record as %s is not recognised", form)
		}
		report, err := Recorder(context.Background(), fmt.Sprintf("run/nccl_trace_rank_%d", r), bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, report)
	}
	return all
}

func TestRecordsAreCompared(t *testing.T) {
	done := []string{"all_reduce:8:completed", "all_gather:8:completed"}
	with := func(more ...string) map[string]any { return made(append(append([]string(nil), done...), more...)...) }
	for _, c := range []struct {
		name  string
		ranks map[int]map[string]any
		want  []string // parts of the first finding; none: healthy
	}{
		{"healthy", map[int]map[string]any{0: with(), 1: with(), 2: with()}, nil},
		{"healthy with sends that only some have", map[int]map[string]any{0: with("send:8:scheduled"), 1: with(), 2: with()}, nil},
		{"healthy, uneven pieces of an all-to-all", map[int]map[string]any{0: with("all_to_all:8:completed"), 1: with("all_to_all:16:completed"), 2: with("all_to_all:24:completed")}, nil},
		{"a rank is missing", map[int]map[string]any{0: with("all_reduce:64:started"), 1: with("all_reduce:64:started"), 2: with()},
			[]string{"fix the program: rank 2 did not come to collective number 3 (all_reduce)", "default_pg", "train.py:101"}},
		{"another call", map[int]map[string]any{0: with("all_reduce:64:started"), 1: with("broadcast:64:started"), 2: with("all_reduce:64:started")},
			[]string{"fix the program", "broadcast", "on rank 1 and all_reduce", "train.py:102"}},
		{"another size", map[int]map[string]any{0: with("all_reduce:64:started"), 1: with("all_reduce:63:started"), 2: with("all_reduce:64:started")},
			[]string{"fix the program", "63", "on rank 1 and all_reduce"}},
		{"all wait", map[int]map[string]any{0: with("all_reduce:64:started"), 1: with("all_reduce:64:started"), 2: with("all_reduce:64:started")},
			[]string{"restart here: all 3 ranks made collective number 3", "network"}},
		{"a record is missing", map[int]map[string]any{0: with("all_reduce:64:started"), 2: with("all_reduce:64:started")},
			[]string{"restart here: of rank 1 there is no record"}},
	} {
		for _, form := range []string{"json", "pickle"} {
			t.Run(c.name+" "+form, func(t *testing.T) {
				group, err := Group(context.Background(), recorded(t, form, c.ranks))
				if err != nil {
					t.Fatal(err)
				}
				if len(c.want) == 0 {
					if len(group.Findings) != 0 || len(group.Checked) == 0 {
						t.Fatalf("%v; checked %v", titles(group.Findings), group.Checked)
					}
					return
				}
				if len(group.Findings) == 0 {
					t.Fatal("nothing was found")
				}
				f := group.Findings[0]
				for _, part := range c.want {
					if !strings.Contains(f.Title+"\n"+f.Fix, part) {
						t.Errorf("no %q in %s: %s\n%s", part, f.Rule, f.Title, f.Fix)
					}
				}
				if f.Rule != "R37" {
					t.Error(f.Rule)
				}
			})
		}
	}
}

// TestPyTorchsOwnRecords reads what PyTorch 2.15 itself wrote of three sums over gloo (testdata/fr.py), in both forms.
func TestPyTorchsOwnRecords(t *testing.T) {
	var both []*Dump
	for _, name := range []string{"testdata/gloo_2.pickle", "testdata/gloo_2.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !IsRecorder(b) {
			t.Errorf("%s is not recognised", name)
		}
		r, err := Recorder(context.Background(), name, bytes.NewReader(b))
		if err != nil {
			t.Fatal(name, err)
		}
		d := r.Detail.(*Dump)
		both = append(both, d)
		calls := d.Calls["0"]
		if len(calls) != 3 || d.Rank != 2 || d.Version == "" || fmt.Sprint(d.Groups["0"].ranks) != "[0 1 2]" {
			t.Fatalf("%s: %+v", name, d)
		}
		for i, c := range calls {
			if c.seq != int64(i+1) || c.op != "all_reduce" || c.sizes != "[[4 4]] → [[4 4]]" || !c.done() {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
	if both[0].Version != both[1].Version {
		t.Error(both[0].Version, both[1].Version)
	}
}

func TestBadRecords(t *testing.T) {
	good, _ := json.Marshal(made("all_reduce:8:completed", "all_reduce:8:started"))
	for _, c := range []struct {
		name, text, want string
		cut              bool // read as far as it goes
	}{
		{"cut", string(good[:len(good)*2/3]), "", true},
		{"cut before the first entry", string(good[:bytes.Index(good, []byte(`"collective_seq_id"`))]) + `"collective_seq_id"`, "byte", false},
		{"deep", `{"collective_seq_id":` + strings.Repeat("[", 20000), "byte", false},
		{"no object", `["collective_seq_id"]`, "byte", false},
		{"code", "\x80\x02cos\nsystem\n(S'touch /tmp/x collective_seq_id'\ntR.", "pickle", false},
	} {
		r, err := Recorder(context.Background(), c.name, strings.NewReader(c.text))
		if c.cut {
			if err != nil || len(r.Notes) == 0 {
				t.Errorf("%s: %v %+v", c.name, err, r)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
