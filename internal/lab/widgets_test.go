package lab

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestWidgets: names differ, first values are ones that the input could have, and a value never becomes another flag or a path.
func TestWidgets(t *testing.T) {
	f := &files{dir: t.TempDir()}
	if err := f.unpack(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range pages() {
		for i := range p.Widgets {
			w := &p.Widgets[i]
			if seen[w.ID] {
				t.Errorf("two widgets are %s", w.ID)
			}
			seen[w.ID] = true
			first, err := w.arguments(url.Values{}, f)
			if (err != nil) != (w.Needs != "") {
				t.Errorf("%s: %v", w.ID, err)
			}
			for _, c := range w.Controls {
				if c.Kind == choice && !slices.Contains(c.options(), c.Value) {
					t.Errorf("%s: %s is %s, which is not to be chosen", w.ID, c.Name, c.Value)
				}
				for _, bad := range []string{"--out=x", "-x", "../../etc/passwd", "/etc/passwd", "a b", "x\x00", strings.Repeat("9", 400)} {
					args, err := w.arguments(url.Values{c.Name: {bad}}, f)
					if err == nil && !slices.Equal(args, first) && !(c.Kind == several && bad == "a b") {
						t.Errorf("%s takes %q as %s: %q", w.ID, bad, c.Name, args)
					}
				}
			}
			for _, preset := range w.Presets {
				set, err := url.ParseQuery(preset.Set)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.arguments(set, f); err != nil {
					t.Errorf("%s, %s: %v", w.ID, preset.Title, err)
				}
			}
			if _, err := w.arguments(url.Values{"nothing": {"1"}}, f); err == nil {
				t.Errorf("%s takes a control that it has not", w.ID)
			}
		}
	}
}

// TestAnswers: what a widget is asked becomes a command line, and what cannot be asked an error with what to do.
func TestAnswers(t *testing.T) {
	s := newServer(t)
	for _, test := range []struct {
		at   string
		code int
		want string
	}{
		{"/api/widgets/timeline", http.StatusOK, "--launch=2 --device=40 --steps=1 --every=0 --json"},
		{"/api/widgets/timeline?steps=7", http.StatusOK, "--steps=7"},
		{"/api/widgets/transfer?tensor-bias=true&pinned=true", http.StatusOK, "lab transfer --card=a100-80 --move=bias --direction=to-device --pinned --json"},
		{"/api/widgets/timeline?steps=0", http.StatusBadRequest, "from 1 to 40"},
		{"/api/widgets/timeline?steps=1&steps=2", http.StatusBadRequest, "2 times"},
		{"/api/widgets/timeline?stepz=1", http.StatusBadRequest, "no control"},
		{"/api/widgets/nothing", http.StatusNotFound, "no widget"},
	} {
		if w := ask(s, "GET", test.at, nil); w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: %d %s", test.at, w.Code, w.Body)
		}
	}
}

// TestFiles: what is dropped is kept by its content, found again by that name alone, and the oldest go.
func TestFiles(t *testing.T) {
	s := newServer(t)
	var first string
	for i := range mostFiles + 3 {
		w := ask(s, "POST", "/api/files?name=a.trace.json.gz", strings.NewReader(strings.Repeat("x", i)))
		name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(w.Body.String()), `{"file":"`), `"}`)
		if w.Code != http.StatusOK || !strings.HasSuffix(name, ".json.gz") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		path, err := s.files.path(name)
		if text, failed := os.ReadFile(path); err != nil || failed != nil || len(text) != i {
			t.Fatalf("%s: %v, %v", name, err, failed)
		}
		if i == 0 {
			first = name
		}
	}
	if _, err := s.files.path(first); err == nil {
		t.Error("nothing was removed")
	}
	if list, err := filepath.Glob(filepath.Join(s.files.dir, "*")); err != nil || len(list) != mostFiles {
		t.Errorf("%d files are kept", len(list))
	}
	for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", strings.Repeat("0", 32), "0", strings.Repeat("0", 31) + "/", first + "/../../x"} {
		if path, err := s.files.path(name); err == nil {
			t.Errorf("%q is %s", name, path)
		}
	}
	for name, want := range map[string]string{"a.pickle": ".pickle", "x/../../b.json": ".json", "a": "", "a.b c": "", "trace.2024.json.gz": ".json.gz", "a.": "", "..": ""} {
		if got := ending(name); got != want {
			t.Errorf("%q ends in %q, want %q", name, got, want)
		}
	}
}

// TestPartialFiles: of a file that does not come as a whole, or cannot be kept, nothing is left, and the answer says what happened; what an
// ended lab has left goes once nothing comes of it.
func TestPartialFiles(t *testing.T) {
	s := newServer(t)
	cut := func() io.Reader {
		return io.MultiReader(strings.NewReader("some of it"), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	if w := ask(s, "POST", "/api/files", cut()); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "after 10 bytes") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	full := func() io.Reader {
		return io.MultiReader(strings.NewReader("some of it"), iotest.ErrReader(errors.New("no space left on device")))
	}
	if w := ask(s, "POST", "/api/files", full()); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "after 10 bytes of it: no space left on device") || !strings.Contains(w.Body.String(), "make room in "+s.files.dir) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if list, err := os.ReadDir(s.files.dir); err != nil || len(list) != 0 {
		t.Errorf("%v is left: %v", list, err)
	}
	old, fresh := filepath.Join(s.files.dir, partial+"1"), filepath.Join(s.files.dir, partial+"2")
	for _, name := range []string{old, fresh} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*abandoned)); err != nil {
		t.Fatal(err)
	}
	if w := ask(s, "POST", "/api/files", strings.NewReader("whole")); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if list, err := filepath.Glob(filepath.Join(s.files.dir, partial+"*")); err != nil || !slices.Equal(list, []string{fresh}) {
		t.Errorf("%v is left: %v", list, err)
	}
}

// FuzzHandlers: whatever is asked, nothing panics, no command begins with what a query says, and no file outside is read.
func FuzzHandlers(f *testing.F) {
	for _, seed := range []string{"/api/widgets/timeline?steps=7", "/api/widgets/transfer?device=batch,weight", "/explore/race?s=e30", "/assets/../lab.go", "/api/widgets/%2e%2e", "/?token=x", "/api/widgets/memory?model=gpt2", "/api/trace/sum.ptx/tile?level=3", "/api/trace/../find?name=x"} {
		f.Add("GET", seed, "")
	}
	f.Add("POST", "/api/files?name=../../x.json", "content")
	f.Add("POST", "/api/kernel", `{"kernel":"relu"}`)
	s := newServer(f)
	f.Fuzz(func(t *testing.T, method, at, body string) {
		u, err := url.ParseRequestURI(at)
		if err != nil || !strings.HasPrefix(at, "/") {
			return
		}
		r := &http.Request{Method: method, URL: u, Header: http.Header{"Cookie": {s.cookie() + "=" + s.token}}, Body: io.NopCloser(strings.NewReader(body)), Host: "localhost", RequestURI: at}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if line := w.Header().Get("Warpline-Command"); line != "" && strings.Contains(line, "..") {
			t.Errorf("%s runs %s", at, line)
		}
	})
}
