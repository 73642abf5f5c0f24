package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/simdebug"
	"github.com/warpline-ml/warpline/internal/simrun"
)

// begun starts a launch and tells its name.
func begun(t *testing.T, s *Server, query string) string {
	t.Helper()
	w := ask(s, "POST", "/api/sim", strings.NewReader(fmt.Sprintf(`{"query":%q}`, query)))
	var told struct{ ID string }
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return told.ID
}

// TestSim: what a page is told of a launch is what warpline sim debug --json tells.
func TestSim(t *testing.T) {
	s := newServer(t)
	id := begun(t, s, "file=sum_bug.ptx")
	commands := [][]string{{"step", "warp"}, {"lanes"}, {"registers"}, {"list"}, {"break", "8"}, {"continue"}, {"shared"}, {"back", "3"}, {"where"}, {"nonsense"}, {"warp", "2"}, {"delete"}, {"continue"}, {"findings"}}
	raw, err := json.Marshal(map[string]any{"commands": commands})
	if err != nil {
		t.Fatal(err)
	}
	w := ask(s, "POST", "/api/sim/"+id, bytes.NewReader(raw))
	var got []map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got) != len(commands) {
		t.Fatalf("%d %.300s", w.Code, w.Body)
	}
	var in, out bytes.Buffer
	for _, c := range commands {
		line, err := json.Marshal(map[string]any{"cmd": c[0], "args": c[1:]})
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	c := simrun.Config{File: filepath.Join(s.config.Dir, "kernels", "sum_bug.ptx"), Grid: "4", Block: "256", Card: "a100-80", Checks: "all", Schedule: "reconverge", Shared: -1, Args: []string{"f32[1000]=1", "f32[4]", "i32:1000"}}
	if err := simdebug.Serve(t.Context(), c, simdebug.Console{In: &in, Out: &out, JSON: true}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:] // the first is where it begins
	for i, line := range lines {
		var want map[string]any
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%v:\n%.400v\n%.400v", commands[i], got[i], want)
		}
	}
	if w := ask(s, "DELETE", "/api/sim/"+id, nil); w.Code != http.StatusNoContent {
		t.Error(w.Code)
	}
	if w := ask(s, "POST", "/api/sim/"+id, bytes.NewReader(raw)); w.Code != http.StatusNotFound {
		t.Errorf("after its end: %d", w.Code)
	}
}

// TestSims: the oldest of too many launches ends, and what cannot be launched is an error with what to do.
func TestSims(t *testing.T) {
	s := newServer(t)
	first := begun(t, s, "file=sum.ptx")
	for range mostSims {
		begun(t, s, "file=sum.ptx")
	}
	if w := ask(s, "POST", "/api/sim/"+first, strings.NewReader(`{"commands":[["where"]]}`)); w.Code != http.StatusNotFound {
		t.Errorf("the oldest: %d %s", w.Code, w.Body)
	}
	for query, want := range map[string]string{"file=../x": "no file", "file=/etc/passwd": "no file", "file=sum.ptx&args=@/etc/passwd": "args", "file=sum.ptx&grid=0": "grid", "file=sum.ptx&args=i32:1": "argument", "x=%": "query", "file=tour.ptx": "kernel"} {
		w := ask(s, "POST", "/api/sim", strings.NewReader(fmt.Sprintf(`{"query":%q}`, query)))
		if w.Code/100 != 4 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
