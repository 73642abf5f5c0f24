package lesson

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/exercise"
	"github.com/warpline-ml/warpline/internal/sources"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// childEnv makes the test binary a program that is run by cells.
const childEnv = "WARPLINE_LESSON_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "talk":
		fmt.Println(strings.Join(os.Args[1:], " "))
		os.Exit(3)
	case "flood":
		fmt.Print(strings.Repeat("x", 3*mostBytes))
		os.Exit(0)
	case "sleep":
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// site serves lessons with the progress of a new folder.
func site(t *testing.T) (*httptest.Server, string) {
	t.Helper()
	dir := t.TempDir()
	s := &Site{Dir: dir, Version: "v1.2.3", Program: []string{os.Args[0]}, Frame: func(w http.ResponseWriter, _ *http.Request, title, body string, scripts, _ []string) {
		fmt.Fprintf(w, "<h1>%s</h1>%s%s", title, scripts[0], body)
	}}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server, dir
}

// ask is the status and the body of an answer.
func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestPages: every page has what scripts look for.
func TestPages(t *testing.T) {
	server, _ := site(t)
	wants := map[string][]string{
		"/learn/":        {"/learn/architecture", "/quiz/a", "/quiz/b", "not read yet"},
		"/learn/timing":  {`data-listing="L10"`, `data-line="3"`, `aria-expanded="false"`, `data-cell="L10"`, `data-param="warmup"`, `role="log"`, `data-exit`, `data-listing="L10Wrong"`, `data-action="stop"`},
		"/learn/several": {`data-listing="L21"`, `data-absent`},
		"/quiz/a":        {`data-quiz="a"`, `data-question="9"`, `data-action="check" disabled`, `data-value="score"`},
		"/quiz/b":        {`data-quiz="b"`, `data-question="10"`},
	}
	for _, l := range All() {
		wants["/learn/"+l.ID] = append(wants["/learn/"+l.ID], `data-lesson="`+l.ID+`"`)
	}
	for at, want := range wants {
		status, body := ask(t, "GET", server.URL+at, "")
		if status != http.StatusOK {
			t.Errorf("%s: %d", at, status)
		}
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %s", at, w)
			}
		}
		if strings.Contains(body, "data-complete") {
			t.Errorf("%s is complete before it is begun", at)
		}
		balanced(t, at, body)
	}
	for _, at := range []string{"/learn/nothing", "/quiz/c", "/learn/../cells.go", "/api/runs/1/events", "/api/cells/L21/export", "/learn/assets/../site.go"} {
		if status, _ := ask(t, "GET", server.URL+at, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", at, status)
		}
	}
}

// balanced: what is opened is closed, in order.
func balanced(t *testing.T, at, body string) {
	t.Helper()
	var open []string
	for _, piece := range strings.Split(body, "<")[1:] {
		tag, _, _ := strings.Cut(piece, ">")
		name, _, _ := strings.Cut(strings.TrimSuffix(tag, "\n"), " ")
		if name == "input" {
			continue
		}
		closed, ok := strings.CutPrefix(name, "/")
		if !ok {
			open = append(open, name)
			continue
		}
		if len(open) == 0 || open[len(open)-1] != closed {
			t.Fatalf("%s: </%s> behind %v", at, closed, open)
		}
		open = open[:len(open)-1]
	}
	if len(open) > 0 {
		t.Errorf("%s leaves %v open", at, open)
	}
}

// TestProgressOfPages: what is read and passed is on disk, and on the page of all lessons.
func TestProgressOfPages(t *testing.T) {
	server, dir := site(t)
	if status, body := ask(t, "POST", server.URL+"/learn/memory/read", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	q, _ := FindQuiz("a")
	var right []int
	for _, question := range q.Questions {
		right = append(right, question.right)
	}
	text, _ := json.Marshal(map[string]any{"answers": right})
	status, body := ask(t, "POST", server.URL+"/quiz/a", string(text))
	if status != http.StatusOK || !strings.Contains(body, `"complete":true`) {
		t.Fatalf("%d %s", status, body)
	}
	p, err := LoadProgress(dir)
	if err != nil || p.Scores["a"] != 1 || p.Read["memory"].IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if err := p.DidQuiz("a", 0.5); err != nil || p.Scores["a"] != 1 {
		t.Errorf("a worse score replaces a better one: %v, %v", p.Scores, err)
	}
	_, page := ask(t, "GET", server.URL+"/learn/", "")
	if !strings.Contains(page, "best score 100 %") || !strings.Contains(page, "<span>read</span>") {
		t.Errorf("the page does not tell: %s", page)
	}
	for _, bad := range []string{"", "{", `{"answers":[1]}`, `{"answers":"x"}`, `{"other":1}`} {
		if status, body := ask(t, "POST", server.URL+"/quiz/a", bad); status != http.StatusBadRequest || !strings.Contains(body, `"error"`) {
			t.Errorf("%q: %d %s", bad, status, body)
		}
	}
	if status, _ := ask(t, "POST", server.URL+"/quiz/a", `{"answers":[`+strings.Repeat("1,", mostAnswers)+"1]}"); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d", status)
	}
}

// TestBrokenProgress: a file that is no progress is told, and left as it is.
func TestBrokenProgress(t *testing.T) {
	server, dir := site(t)
	path := filepath.Join(dir, file)
	if err := os.WriteFile(path, []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, "POST", server.URL+"/learn/memory/read", ""); status != http.StatusInternalServerError || !strings.Contains(body, "hint") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask(t, "GET", server.URL+"/learn/memory", ""); status != http.StatusOK || !strings.Contains(body, `role="alert"`) {
		t.Errorf("%d %.80s", status, body)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "{broken" {
		t.Errorf("%q, %v", text, err)
	}
}

// begin starts a run and returns its id.
func begin(t *testing.T, server *httptest.Server, cell, setting string) string {
	t.Helper()
	status, body := ask(t, "POST", server.URL+"/api/cells/"+cell+"/runs", setting)
	var begun struct{ ID string }
	if err := json.Unmarshal([]byte(body), &begun); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s %v", status, body, err)
	}
	return begun.ID
}

// TestCells: a run is the command with the numbers given and those that were left, and its output and status come as events.
func TestCells(t *testing.T) {
	server, _ := site(t)
	t.Setenv(childEnv, "talk")
	id := begin(t, server, "L10", `{"numbers":{"n":64},"wrong":true}`)
	_, events := ask(t, "GET", server.URL+"/api/runs/"+id+"/events", "")
	if !strings.Contains(events, "learn run L10 --device cpu --wrong --set n=64 --set warmup=3 --set runs=10") || !strings.HasSuffix(events, "data: {\"exit\":3}\n\n") {
		t.Errorf("%q", events)
	}
	t.Setenv(childEnv, "flood")
	id = begin(t, server, "L03", "{}")
	if _, events = ask(t, "GET", server.URL+"/api/runs/"+id+"/events", ""); len(events) > 2*mostBytes || !strings.Contains(events, "more than is kept") {
		t.Errorf("%d bytes of events", len(events))
	}
}

// TestStop: a run ends when it is told to, and there are only so many at a time.
func TestStop(t *testing.T) {
	server, _ := site(t)
	t.Setenv(childEnv, "sleep")
	var ids []string
	for range mostRuns {
		ids = append(ids, begin(t, server, "L03", "{}"))
	}
	if status, body := ask(t, "POST", server.URL+"/api/cells/L03/runs", "{}"); status != http.StatusBadRequest || !strings.Contains(body, "run already") {
		t.Errorf("one more than %d: %d %s", mostRuns, status, body)
	}
	for _, id := range ids {
		if status, _ := ask(t, "DELETE", server.URL+"/api/runs/"+id, ""); status != http.StatusNoContent {
			t.Errorf("%d", status)
		}
		if _, events := ask(t, "GET", server.URL+"/api/runs/"+id+"/events", ""); !strings.Contains(events, `"exit":-1`) {
			t.Errorf("%q", events)
		}
	}
}

// TestUnbroken: what is told of a run has no halves of characters, wherever its output is cut.
func TestUnbroken(t *testing.T) {
	const text = "a×…𝄞b"
	for i := range len(text) + 1 {
		got := unbroken(text[:i])
		if !utf8.ValidString(got) || i-len(got) >= utf8.UTFMax || utf8.ValidString(text[:i]) && got != text[:i] {
			t.Errorf("%q of %q", got, text[:i])
		}
	}
	r := &run{more: make(chan struct{})}
	fmt.Fprint(r, "a\xe2\x80")
	var told strings.Builder
	r.follow(t.Context(), func(e event) {
		told.WriteString(e.Text)
		if e.Text == "a" {
			fmt.Fprint(r, "\xa6")
			r.ended = true
		}
	})
	if told.String() != "a…" {
		t.Errorf("%q", &told)
	}
}

// TestClose: no run outlives the site.
func TestClose(t *testing.T) {
	t.Setenv(childEnv, "sleep")
	rs := runs{program: []string{os.Args[0]}, all: map[string]*run{}}
	l, _ := lessons.Find("L03")
	for range mostRuns {
		if _, err := rs.start(l, Setting{}); err != nil {
			t.Fatal(err)
		}
	}
	rs.close()
	for _, r := range rs.all {
		if r.mu.Lock(); !r.ended || r.exit != -1 {
			t.Errorf("ended %v with %d", r.ended, r.exit)
		}
		r.mu.Unlock()
	}
}

// TestSettings: numbers out of bounds, names that are not there and devices that are not offered are refused.
func TestSettings(t *testing.T) {
	server, _ := site(t)
	for cell, settings := range map[string][]string{
		"L10": {`{"numbers":{"n":0}}`, `{"numbers":{"n":1000000}}`, `{"numbers":{"x":1}}`, `{"device":"cuda:0;rm"}`, `{"numbers":{"n":1.5}}`, `[]`, `{"device":"sim:h100-80"}`},
		"L03": {`{"wrong":true}`},
		"L21": {`{}`},
	} {
		for _, s := range settings {
			if status, body := ask(t, "POST", server.URL+"/api/cells/"+cell+"/runs", s); status != http.StatusBadRequest || !strings.Contains(body, `"error"`) {
				t.Errorf("%s %s: %d %s", cell, s, status, body)
			}
		}
	}
	if status, _ := ask(t, "POST", server.URL+"/api/cells/L99/runs", "{}"); status != http.StatusNotFound {
		t.Errorf("L99: %d", status)
	}
}

// TestExport: a listing's folder has its program, what that needs, and a main.
func TestExport(t *testing.T) {
	asked := "warpline v1.2.3"
	if sources.Have() {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		t.Setenv("HOME", t.TempDir()) // where other systems have their caches
		asked = "/warpline/sources-"
	}
	for _, l := range lessons.Listings {
		if l.Run == nil {
			continue
		}
		var b bytes.Buffer
		if err := Export(&b, &l, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(&all, r); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"package main", "func " + l.ID + "(", asked, l.ID + "(env, Numbers{"} {
			if !strings.Contains(all.String(), want) {
				t.Errorf("%s lacks %q", l.ID, want)
			}
		}
	}
}

// TestExportBuilds: every folder is a program that compiles against this module, with nothing fetched.
func TestExportBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles all listings")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, needs, _ := strings.Cut(string(mod), "\nrequire (")
	dir := t.TempDir()
	overlay := map[string]string{}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".go" {
			overlay[filepath.Join("exported", name)] = path
		}
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	put("go.sum", string(sum))
	for _, l := range lessons.Listings {
		if l.Run == nil {
			continue
		}
		files, err := exported(&l, "(devel)")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f[0] == "go.mod" && sources.Have() { // which names the copy that this program has
				put(f[0], f[1])
			} else if f[0] == "go.mod" {
				put(f[0], f[1]+fmt.Sprintf("\nreplace github.com/warpline-ml/warpline => %q\n\nrequire (%s", root, needs))
			} else {
				put(filepath.Join(l.ID, f[0]), f[1])
			}
		}
	}
	cmd := exec.Command("go", "list", "-mod=mod", "-deps", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "github.com/warpline-ml/warpline/tensor\n") {
		t.Errorf("%v: %s", err, out)
	}
	// To list what a program is compiled to compiles it, and links nothing.
	if out, err := exec.Command("go", "list", "-export", testutil.Overlay(t, overlay), "./exported/...").CombinedOutput(); err != nil || strings.Count(string(out), "/exported/L") < 20 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRun: a program in this process prints what its file of package lessons has.
func TestRun(t *testing.T) {
	l, _ := lessons.Find("L03")
	var b strings.Builder
	if err := Run(l, Setting{}, &b); err != nil || b.String() != "[6 24]\n" {
		t.Errorf("%q, %v", &b, err)
	}
	if err := Run(l, Setting{Device: "cuda:99"}, &b); err == nil {
		t.Error("a device that is not there is no error")
	}
}

// FuzzRequests: no request makes the site panic.
func FuzzRequests(f *testing.F) {
	f.Add("POST", "/quiz/a", `{"answers":[0]}`)
	f.Add("POST", "/api/cells/L03/runs", `{"numbers":{"n":-1}}`)
	f.Add("GET", "/learn/%2e%2e/x", "")
	s := &Site{Dir: f.TempDir(), Program: []string{"/nothing/there"}, Frame: func(w http.ResponseWriter, _ *http.Request, _, body string, _, _ []string) { io.WriteString(w, body) }}
	h, err := s.Handler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequest(method, "http://127.0.0.1/"+strings.TrimPrefix(path, "/"), strings.NewReader(body))
		if err != nil {
			return
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
	})
}

// TestExercises: each has its page, and a puzzle is judged there and noted.
func TestExercises(t *testing.T) {
	server, dir := site(t)
	_, list := ask(t, "GET", server.URL+"/exercise/", "")
	for _, e := range exercise.All() {
		status, body := ask(t, "GET", server.URL+"/exercise/"+e.Name, "")
		if status != http.StatusOK || !strings.Contains(body, `data-exercise="`+e.Name+`"`) || !strings.Contains(body, `data-hint="2"`) || !strings.Contains(body, "data-solution") || !strings.Contains(list, "/exercise/"+e.Name+`"`) {
			t.Errorf("%s: %d", e.Name, status)
		}
		balanced(t, e.Name, body)
	}
	e, err := exercise.Find("kernel-dot")
	if err != nil {
		t.Fatal(err)
	}
	ptx, _, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	solution, err := e.Solution()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ptx, want string }{{ptx, `"pass":false`}, {solution[1].Text, `"pass":true`}} {
		text, _ := json.Marshal(map[string]string{"ptx": c.ptx})
		if status, body := ask(t, "POST", server.URL+"/exercise/kernel-dot/check", string(text)); status != http.StatusOK || !strings.Contains(body, c.want) {
			t.Errorf("%d %s", status, body)
		}
	}
	if p, err := LoadProgress(dir); err != nil || p.Exercises["kernel-dot"].IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	for at, body := range map[string]string{"/exercise/kernel-dot/check": `{"ptx":"no PTX"}`, "/exercise/activations/check": `{"ptx":""}`} {
		if status, text := ask(t, "POST", server.URL+at, body); status != http.StatusBadRequest || !strings.Contains(text, `"error"`) {
			t.Errorf("%s: %d %s", at, status, text)
		}
	}
}
