package lab

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestTrace: what is asked of a trace is answered, from the file that was dropped and from no other.
func TestTrace(t *testing.T) {
	s := newServer(t)
	text, err := os.ReadFile("../kineto/testdata/hta-alexnet-critical-path.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	w := ask(s, "POST", "/api/files?name=a.json.gz", strings.NewReader(string(text)))
	var kept struct{ File string }
	if err := json.Unmarshal(w.Body.Bytes(), &kept); err != nil {
		t.Fatal(err)
	}
	at := "/api/trace/" + kept.File
	for _, test := range []struct {
		at   string
		code int
		want string
	}{
		{at, http.StatusOK, `"lanes":[{"name":"GPU 0, stream 7","depth":0,"device":true`},
		{at + "/tile?level=0", http.StatusOK, "{"},
		{at + "/tile?level=99&index=-1&block=x", http.StatusOK, "\x00\x00\x00\x00{}"},
		{at + "/top?from=0&to=9e9", http.StatusOK, `"names":[]`},
		{at + "/top?from=0&to=9223372036854775807", http.StatusOK, `"name":"aten::to"`},
		{at + "/find?name=aten::conv2d", http.StatusOK, `"name":"aten::conv2d"`},
		{at + "/find?name=aten::conv2d&behind=99999999", http.StatusOK, `"found":[{`},
		{at + "/find", http.StatusBadRequest, "part of a name"},
		{at + "/event?event=0", http.StatusOK, `"memory bandwidth (GB/s)"`},
		{at + "/event?event=-7", http.StatusOK, `"event":0`},
		{at + "/event?event=99999999", http.StatusNotFound, "no event"},
		{at + "/event?lane=0&at=9223372036854775807&near=9223372036854775807", http.StatusOK, `"event":`},
		{at + "/event?lane=77777", http.StatusOK, "null"},
		{"/api/trace/sum.ptx", http.StatusUnprocessableEntity, `{"error":"the file is no trace","hint":"drop a trace of torch.profiler`},
		{"/api/trace/0", http.StatusNotFound, "drop the file"},
		{"/api/trace/..%2f..%2fetc%2fpasswd", http.StatusNotFound, "drop the file"},
	} {
		if w := ask(s, "GET", test.at, nil); w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: %d %.300q", test.at, w.Code, w.Body)
		}
	}
	if n := len(s.views.all); n != 1 {
		t.Errorf("%d views are kept", n)
	}
	if s.views.close(); len(s.views.all) != 0 {
		t.Error("a view is kept for ever")
	}
}

// TestViews: those that were asked of last are kept and nothing holds the others; who waits for a file may go, while others ask of what
// is there.
func TestViews(t *testing.T) {
	v := &views{reading: make(chan struct{}, 1)}
	path := func(name string) string { return "../kineto/testdata/hta-" + name + ".json.gz" }
	for _, name := range []string{"triton", "rocm62-mi250", "triton", "alexnet-critical-path"} {
		if _, err := v.of(t.Context(), path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if len(v.all) != 2 || v.all[0].path != path("triton") || v.all[1].path != path("alexnet-critical-path") {
		t.Errorf("%+v", v.all)
	}
	for _, x := range v.all[len(v.all):cap(v.all)] {
		if x.View != nil {
			t.Errorf("%s is held", x.path)
		}
	}
	v.reading <- struct{}{} // another file, for long
	if _, err := v.of(t.Context(), path("triton")); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.of(gone, path("rocm62-mi250")); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone gets %v", err)
	}
	<-v.reading
}
