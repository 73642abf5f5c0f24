package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/lab"
)

// visitor is a browser in a lab.
type visitor struct {
	t    *testing.T
	c    *http.Client
	base string
	root string // of the module
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	s, err := lab.New(lab.Config{Listen: "127.0.0.1:0", Dir: t.TempDir(), Command: execute, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	site, err := addLessons(s, s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	s.Serve()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t, &http.Client{Jar: jar}, "", root}
	base, _, _ := strings.Cut(s.URL(), "?")
	v.base = strings.TrimSuffix(base, "/")
	r, err := v.c.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return v
}

func (v *visitor) get(path string) (status int, header http.Header, body string) {
	v.t.Helper()
	r, err := v.c.Get(v.base + path)
	if err != nil {
		v.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return r.StatusCode, r.Header, string(text)
}

// given is the query of a widget that needs a file, with one that it shows; empty for others.
func (v *visitor) given(id string) string {
	v.t.Helper()
	at := map[string]string{"snapshot": "snapshot/testdata/steady.pickle.gz", "trace": "kineto/testdata/hta-triton.json.gz"}[id]
	if at == "" {
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(v.root, "internal", filepath.FromSlash(at)))
	if err != nil {
		v.t.Fatal(err)
	}
	r, err := v.c.Post(v.base+"/api/files?name="+filepath.Base(at), "application/octet-stream", bytes.NewReader(raw))
	if err != nil {
		v.t.Fatal(err)
	}
	defer r.Body.Close()
	var kept struct{ File string }
	if err := json.NewDecoder(r.Body).Decode(&kept); err != nil {
		v.t.Fatal(err)
	}
	return "file=" + kept.File
}

// words are those of a command line that has no quotes but single ones.
func words(line string) (all []string) {
	word, open, quoted := "", false, false
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted, open = !quoted, true
		case r == ' ' && !quoted:
			if open {
				all = append(all, word)
			}
			word, open = "", false
		default:
			word, open = word+string(r), true
		}
	}
	return all
}

// shape is the keys of JSON lines.
func shape(t *testing.T, text string) (all [][]string) {
	for _, line := range decode(t, text) {
		all = append(all, slices.Sorted(maps.Keys(line)))
	}
	return all
}

// TestLabWidgets asks every widget what its page does at first, and each of its presets, and compares with what the command prints that
// it names, to the letter; of measured ones what they tell of.
func TestLabWidgets(t *testing.T) {
	v := newVisitor(t)
	_, _, text := v.get("/api/widgets")
	var all []struct {
		ID, Page string
		Measured bool
		Needs    string
		Presets  []string
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) < 4 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, w := range all {
		if status, _, page := v.get(w.Page); status != http.StatusOK || !strings.Contains(page, `data-widget="`+w.ID+`"`) {
			t.Errorf("%s is not on %s: %d", w.ID, w.Page, status)
		}
		for _, query := range append([]string{v.given(w.ID)}, w.Presets...) {
			status, header, got := v.get("/api/widgets/" + w.ID + "?" + query)
			line := words(header.Get("Warpline-Command"))
			if status != http.StatusOK || len(line) < 2 {
				t.Errorf("%s?%s: %d %s", w.ID, query, status, got)
				continue
			}
			code, want, stderr := command(t.Context(), append(line[1:], "--json")...)
			switch {
			case code > exitFound:
				t.Errorf("%q: %s", line, stderr)
			case !w.Measured && got != want:
				t.Errorf("%s?%s differs from %q:\n%.500s\n%.500s", w.ID, query, line, got, want)
			case w.Measured && !slices.EqualFunc(shape(t, got), shape(t, want), slices.Equal[[]string]):
				t.Errorf("%s?%s tells of other things than %q:\n%.500s\n%.500s", w.ID, query, line, got, want)
			}
		}
	}
}

// routes are the method and an address of every route of the lab and its lessons, as their sources have them.
func (v *visitor) routes() (all [][2]string) {
	v.t.Helper()
	pattern := regexp.MustCompile(`"(GET|POST|DELETE) (/[^"]*)"`)
	for _, dir := range []string{"lab", "lesson"} {
		sources, err := filepath.Glob(filepath.Join(v.root, "internal", dir, "*.go"))
		if err != nil {
			v.t.Fatal(err)
		}
		for _, path := range sources {
			text, err := os.ReadFile(path)
			if err != nil {
				v.t.Fatal(err)
			}
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
				at := strings.TrimSuffix(m[2], "{$}")
				all = append(all, [2]string{m[1], regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(at, "x")})
			}
		}
	}
	return all
}

// TestLabGuards asks every route without the token, by a name that leads here, from another site's page, and with too large a body.
func TestLabGuards(t *testing.T) {
	v := newVisitor(t)
	stranger := &http.Client{}
	all := v.routes()
	for _, want := range []string{"/api/files", "/api/trace/x", "/api/sim/x", "/api/training", "/exercise/x/check", "/api/cells/x/runs", "/api/runs/x/events", "/explore/training/live/x", "/"} {
		if !slices.ContainsFunc(all, func(r [2]string) bool { return r[1] == want }) {
			t.Errorf("%s is not among the routes: %v", want, all)
		}
	}
	for _, route := range all {
		for _, test := range []struct {
			name   string
			c      *http.Client
			change func(r *http.Request)
			want   int
		}{
			{"no token", stranger, func(*http.Request) {}, http.StatusForbidden},
			{"another name", v.c, func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
			{"another site", v.c, func(r *http.Request) {
				r.Header.Set("Origin", "http://evil.example")
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			}, http.StatusForbidden},
			{"a large body", v.c, func(r *http.Request) {
				r.ContentLength, r.Body = lab.MostBody+1, io.NopCloser(bytes.NewReader(make([]byte, lab.MostBody+1)))
			}, http.StatusRequestEntityTooLarge},
		} {
			if test.want == http.StatusRequestEntityTooLarge && route[1] == "/api/files" {
				continue // package lab's tests know its bound
			}
			r, err := http.NewRequest(route[0], v.base+route[1], nil)
			if err != nil {
				t.Fatal(err)
			}
			test.change(r)
			answer, err := test.c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("%s %s, %s: %s", route[0], route[1], test.name, answer.Status)
			}
		}
	}
}

// TestLabRefuses: what a command cannot do is told with its own error and hint, beside the command.
func TestLabRefuses(t *testing.T) {
	v := newVisitor(t)
	status, header, body := v.get("/api/widgets/memory?model=gpt2&context=2048")
	line := words(header.Get("Warpline-Command"))
	if status != http.StatusUnprocessableEntity || len(line) < 2 {
		t.Fatalf("%d, %q: %s", status, line, body)
	}
	told := decode(t, body)[0]
	code, out, stderr := command(t.Context(), append(line[1:], "--json")...)
	if want := fmt.Sprintf("error: %s\nhint: %s\n", told["error"], told["hint"]); code <= exitFound || out != "" || stderr != want {
		t.Errorf("the page is told\n%s%q ends with %d:\n%s", want, line, code, stderr)
	}
}

// TestLabLessons has the numbers of the lessons, by the presets.
func TestLabLessons(t *testing.T) {
	for _, test := range []struct {
		line string
		want map[string]any
	}{
		{"lab architecture --sms 4 --cores-per-sm 32", map[string]any{"total_cores": 128.0, "active": 128.0, "idle": 0.0}},
		{"lab architecture --card a100-80 --shape 1024x512 --step 75", map[string]any{"total_cores": 6912.0, "elements": 524288.0, "warps": 16384.0, "steps": 76.0, "bytes": 4194304.0, "active": 5888.0, "bound": "memory"}},
		{"lab transfer", map[string]any{"host_bytes": 20318208.0, "device_bytes": 0.0}},
		{"lab transfer --move weight,bias --pinned --card rtx-4090", map[string]any{"host_bytes": 19267584.0, "device_bytes": 1050624.0, "link_gbps": 25.0}},
		{"lab timeline", map[string]any{"timer_ms": 2.0, "true_ms": 42.0}},
		{"lab timeline --steps 10 --launch 20 --device 20", map[string]any{"timer_ms": 200.0, "true_ms": 220.0, "bound": "host"}},
		{"lab timeline --steps 10 --launch 20 --device 20 --every 1", map[string]any{"timer_ms": 400.0, "true_ms": 400.0}},
	} {
		_, out, stderr := command(t.Context(), append(strings.Fields(test.line), "--json")...)
		got := decode(t, out)
		if len(got) != 1 {
			t.Fatalf("%s: %s", test.line, stderr)
		}
		for k, want := range test.want {
			if got[0][k] != want {
				t.Errorf("%s: %s is %v, want %v", test.line, k, got[0][k], want)
			}
		}
	}
	_, out, _ := command(t.Context(), "lab", "race", "--json")
	race := decode(t, out)[0]
	limit := race["amdahl"].(map[string]any)["limit"].(float64)
	if cpu := race["cpu"].(map[string]any); limit < 19.999 || limit > 20.001 || cpu["cores"] != 8.0 || cpu["rounds"] != 16.0 || race["gpu"].(map[string]any)["cores"] != 256.0 {
		t.Errorf("the race: limit %v, %v", limit, cpu["rounds"])
	}
}

// TestLabEnds: the one line of JSON has the address with its token, and SIGTERM is how a lab ends well.
func TestLabEnds(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "lab", "--json", "--no-open", "--dir", t.TempDir())
	cmd.Env = append(os.Environ(), beCommand+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var told struct{ URL string }
	if err != nil || json.Unmarshal([]byte(line), &told) != nil || !strings.HasPrefix(told.URL, "http://127.0.0.1:") || !strings.Contains(told.URL, "/?token=") {
		t.Fatalf("%q: %v", line, err)
	}
	if r, err := http.Get(told.URL); err != nil || r.StatusCode == http.StatusOK { // a client without cookies is sent back without its token
		t.Errorf("%v: %v", r, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
