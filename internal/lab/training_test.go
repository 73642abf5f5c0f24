package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTraining: a training is one command, whose lines a page gets, and whose view it is shown; it stops when it is told, and another
// may begin then.
func TestTraining(t *testing.T) {
	view := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s", r.Method, r.URL) }))
	defer view.Close()
	s := newServer(t)
	var asked []string
	s.config.Command = func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		asked = args
		fmt.Fprintf(stdout, "{\"url\":%q}\n{\"step\":1,\"loss\":2}\n", view.URL+"/")
		<-ctx.Done()
		fmt.Fprintln(stdout, `{"final":true}`)
		return 130
	}
	type answer struct {
		State, View, Command string
		Lines                []map[string]any
	}
	look := func(from int) (a answer) {
		t.Helper()
		w := ask(s, "GET", fmt.Sprintf("/api/training?from=%d", from), nil)
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	until := func(what string, f func() bool) {
		t.Helper()
		for range 500 {
			if f() {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s: %+v", what, look(0))
	}
	if a := look(0); a.State != "" || a.View != "" {
		t.Errorf("at first: %+v", a)
	}
	if w := ask(s, "GET", "/explore/training/live/", nil); w.Code != http.StatusNotFound {
		t.Errorf("a view of nothing: %d", w.Code)
	}
	for range 2 {
		if w := ask(s, "POST", "/api/training", strings.NewReader(`{"query":"task=mlp&steps=50"}`)); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		until("the first step", func() bool { a := look(0); return len(a.Lines) == 1 && a.View != "" && a.State == "running" })
		if w := ask(s, "POST", "/api/training", strings.NewReader(`{"query":""}`)); w.Code != http.StatusConflict {
			t.Errorf("a second one: %d", w.Code)
		}
		if w := ask(s, "GET", "/explore/training/live/timeline.json?x=1", nil); w.Body.String() != "GET /timeline.json?x=1" {
			t.Errorf("the view: %d %s", w.Code, w.Body)
		}
		if w := ask(s, "POST", "/explore/training/live/profile?steps=3", nil); w.Body.String() != "POST /profile?steps=3" {
			t.Errorf("the view: %d %s", w.Code, w.Body)
		}
		if w := ask(s, "DELETE", "/api/training", nil); w.Code != http.StatusNoContent {
			t.Error(w.Code)
		}
		until("the end", func() bool { a := look(0); return a.State == "done" && a.View == "" && len(a.Lines) == 2 })
		if a := look(1); len(a.Lines) != 1 || a.Lines[0]["final"] != true {
			t.Errorf("behind the first: %+v", a)
		}
	}
	if asked[0] != "train" || asked[1] != "mlp" || !slices.Contains(asked, "--steps=50") || !slices.Contains(asked, "--listen=127.0.0.1:0") {
		t.Errorf("%q", asked)
	}
	s.config.Command = func(_ context.Context, _ []string, _, stderr io.Writer) int {
		fmt.Fprint(stderr, "error: no card\nhint: take cpu\n")
		return 2
	}
	ask(s, "POST", "/api/training", strings.NewReader(`{"query":"device=cuda:0"}`))
	until("the failure", func() bool { return look(0).State == "error" })
	if w := ask(s, "GET", "/api/training", nil); !strings.Contains(w.Body.String(), `"error":"no card"`) || !strings.Contains(w.Body.String(), `"hint":"take cpu"`) {
		t.Errorf("%s", w.Body)
	}
	for _, bad := range []string{`{"query":"task=../x"}`, `{"query":"steps=0"}`, `{"query":"%"}`, `{`} {
		if w := ask(s, "POST", "/api/training", strings.NewReader(bad)); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
}
