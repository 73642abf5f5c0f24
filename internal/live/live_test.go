package live_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/live"
	"github.com/warpline-ml/warpline/internal/web"
	"github.com/warpline-ml/warpline/train"
)

// told is a Watcher that remembers, and does something behind each step.
type told struct {
	steps []train.Step
	notes []string
	each  func(step int)
}

func (w *told) Start(train.Start) {}
func (w *told) Score(train.Score) {}
func (w *told) Scoring(int, int)  {}
func (w *told) Note(text string)  { w.notes = append(w.notes, text) }
func (w *told) Step(s train.Step) {
	w.steps = append(w.steps, s)
	if w.each != nil {
		w.each(s.Step)
	}
}

func config(t *testing.T, device string, steps int) train.Config {
	t.Helper()
	c, err := train.Defaults("mlp")
	if err != nil {
		t.Fatal(err)
	}
	c.Order = "sequential" // nothing is held out, and scored
	c.Device, c.Steps, c.Batch, c.Out = device, steps, 8, filepath.Join(t.TempDir(), "run")
	return c
}

// view serves a view whose training tells w.
func view(t *testing.T, w *told) (*live.View, string) {
	t.Helper()
	s, err := web.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := live.New(s, w)
	t.Cleanup(v.Close)
	return v, s.URL
}

// ask asks for something and returns the status and what came.
func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(body)
}

func wantStatus(t *testing.T, method, url string, status int, words string) {
	t.Helper()
	if got, body := ask(t, method, url); got != status || !strings.Contains(body, words) {
		t.Errorf("%s %s: %d %s, want %d with %q", method, url, got, body, status, words)
	}
}

// TestRun watches whole runs, one reader reading and one not, with a profile of two steps; the run is what it is without.
func TestRun(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0"} {
		t.Run(device, func(t *testing.T) {
			alone := new(told)
			if _, err := train.Run(t.Context(), config(t, device, 12), alone); err != nil {
				t.Fatal(err)
			}
			w := new(told)
			v, url := view(t, w)
			wantStatus(t, "POST", url+"profile", 409, "not begun")
			wantStatus(t, "GET", url+"blocks.json", 200, `"segments":[]`)
			stuck(t, url)
			messages := stream(t, url)
			w.each = func(step int) {
				if step != 4 {
					return
				}
				wantStatus(t, "POST", url+"profile?steps=2", 202, `"steps":2`)
				wantStatus(t, "POST", url+"profile?steps=2", 409, "one at a time")
				for _, bad := range []string{"0", "-1", "1001", "x", "1e3"} {
					wantStatus(t, "POST", url+"profile?steps="+bad, 400, "from 1 to 1000")
				}
				wantStatus(t, "GET", url+"profile", 404, "")
				wantStatus(t, "GET", url+"profile/trace.json.gz", 404, "POST /profile")
				wantStatus(t, "GET", url+"state.json", 200, `"task":"mlp"`)
				filled(t, url)
			}
			if _, err := train.Run(t.Context(), config(t, device, 12), v); err != nil {
				t.Fatal(err)
			}
			if len(w.steps) != 12 || len(alone.steps) != 12 || len(w.notes) != 0 {
				t.Fatalf("%d and %d steps, notes %q", len(w.steps), len(alone.steps), w.notes)
			}
			for i := range w.steps {
				if w.steps[i].Loss != alone.steps[i].Loss {
					t.Errorf("step %d: loss %v, alone %v", i+1, w.steps[i].Loss, alone.steps[i].Loss)
				}
			}
			recorded(t, url)
			v.End("the run is done", false)
			wantStatus(t, "POST", url+"profile", 409, "has ended")
			seen(t, messages)
		})
	}
}

// filled asks for the allocator's blocks: they fill its segments, and those in use are what is allocated, parameters among them.
func filled(t *testing.T, url string) {
	t.Helper()
	_, body := ask(t, "GET", url+"blocks.json")
	var now struct {
		Allocated, Reserved int64
		Segments            []struct {
			Bytes  int64
			Blocks []struct {
				Bytes, Requested int64
				State, Kind      string
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &now); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	kinds := map[string]int64{}
	var reserved, used int64
	for _, s := range now.Segments {
		reserved += s.Bytes
		for _, b := range s.Blocks {
			s.Bytes -= b.Bytes
			if b.State != "free" {
				used += b.Bytes
			}
			kinds[b.Kind] += b.Requested
		}
		if s.Bytes != 0 {
			t.Errorf("%d bytes of a segment are in no block", s.Bytes)
		}
	}
	if reserved != now.Reserved || used != now.Allocated || used == 0 || kinds["parameter"] == 0 {
		t.Errorf("%d of %d reserved, %d of %d allocated, by kind %v", reserved, now.Reserved, used, now.Allocated, kinds)
	}
}

// stuck is a reader of the stream that never reads.
func stuck(t *testing.T, url string) {
	t.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, "GET /events HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// stream reads what the page is told, until the end.
func stream(t *testing.T, url string) <-chan []string {
	t.Helper()
	r, err := http.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan []string, 1)
	go func() {
		defer r.Body.Close()
		var list []string
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				list = append(list, text)
			}
		}
		if err := lines.Err(); err != nil {
			list = append(list, err.Error())
		}
		all <- list
	}()
	return all
}

// seen looks at what the page was told: each step once, and the end.
func seen(t *testing.T, messages <-chan []string) {
	t.Helper()
	at, ended, profiled := 0.0, "", false
	for _, m := range <-messages {
		var n struct {
			Points  [][5]float64
			Profile struct{ State string }
			Ended   *struct{ Text string }
		}
		if err := json.Unmarshal([]byte(m), &n); err != nil {
			t.Fatal(err)
		}
		for _, p := range n.Points {
			if p[0] != at+1 {
				t.Errorf("step %v follows %v", p[0], at)
			}
			at = p[0]
		}
		profiled = profiled || n.Profile.State == "done"
		if n.Ended != nil {
			ended = n.Ended.Text
		}
	}
	if at != 12 || ended != "the run is done" || !profiled {
		t.Errorf("%v steps, the end %q, profiled %v", at, ended, profiled)
	}
}

// recorded looks at the profile that was asked for.
func recorded(t *testing.T, url string) {
	t.Helper()
	_, body := ask(t, "GET", url+"profile.json")
	var p struct {
		State        string
		Steps, First int
		Took         int64 `json:"took_ns"`
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.State != "done" || p.Steps != 2 || p.First < 5 || p.Took <= 0 {
		t.Errorf("%v %s", err, body)
	}
	_, body = ask(t, "GET", url+"profile/trace.json.gz")
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct{ Name, Cat string }
	}
	if err := json.NewDecoder(z).Decode(&trace); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, e := range trace.TraceEvents {
		if strings.HasPrefix(e.Name, "ProfilerStep#") {
			steps++
		}
	}
	if steps != 2 {
		t.Errorf("%d steps in the trace", steps)
	}
	for _, by := range []string{"op", "module", "line", "shape", "kernel"} {
		wantStatus(t, "GET", url+"profile/table.txt?by="+by, 200, "calls")
	}
	wantStatus(t, "GET", url+"profile/table.txt?by=size", 400, "choose one of op, module, line, shape, kernel")
	wantStatus(t, "GET", url+"profile/table.txt?sort=size", 400, "size")
	wantStatus(t, "GET", url+"timeline.json", 200, "ProfilerStep#")
}

// TestRefused: what cannot be profiled is refused, and a window that the run ends in is kept as far as it came.
func TestRefused(t *testing.T) {
	w := new(told)
	v, url := view(t, w)
	w.each = func(step int) {
		switch step {
		case 3:
			wantStatus(t, "POST", url+"profile?steps=50", 409, "steps are left")
		}
	}
	if _, err := train.Run(t.Context(), config(t, "cpu", 6), v); err != nil {
		t.Fatal(err)
	}
	v.End("the run is done", false)
	wantStatus(t, "GET", url+"profile.json", 200, `"state":""`)

	w = new(told)
	v, url = view(t, w)
	w.each = func(step int) {
		if step == 1 {
			wantStatus(t, "POST", url+"profile", 409, "computes nothing")
		}
	}
	if _, err := train.Run(t.Context(), config(t, "null:h100-80", 8), v); err != nil {
		t.Fatal(err)
	}
	v.End("the run is done", false)
}

// failing is the device of this name.
var failing = &devicetest.Failing{Device: cpu.New()}

func init() {
	device.Register("failing", device.Engine{Open: func(device.Name) (device.Device, error) { return failing, nil }})
}

// TestDeviceFails: a device fails while a window is open. The run ends with its first error, the page is told, and nobody observes.
func TestDeviceFails(t *testing.T) {
	w := new(told)
	v, url := view(t, w)
	faults := 0
	w.each = func(step int) {
		switch step {
		case 2:
			wantStatus(t, "POST", url+"profile?steps=50", 202, "")
		case 6:
			wantStatus(t, "GET", url+"profile.json", 200, `"recording"`)
			if !failing.Observed() {
				t.Error("nobody observes")
			}
			failing.Fail(func() error {
				faults++
				return fmt.Errorf("fault %d", faults)
			})
		}
	}
	_, err := train.Run(t.Context(), config(t, "failing", 100), v)
	if err == nil || !strings.HasSuffix(err.Error(), "fault 1") {
		t.Errorf("the run ends with %v", err)
	}
	v.End("the run failed", true)
	wantStatus(t, "GET", url+"profile.json", 200, "the run ended first")
	wantStatus(t, "GET", url+"state.json", 200, "the run failed")
	if failing.Observed() {
		t.Error("the device is observed")
	}
}

// TestPage: everything that the page names is served, and it names nothing that is not.
func TestPage(t *testing.T) {
	_, url := view(t, new(told))
	for _, name := range []string{"", "page.js", "style.css"} {
		wantStatus(t, "GET", url+name, 200, "")
	}
	wantStatus(t, "GET", url+"../live.go", 404, "")
	for _, name := range []string{"index.html", "page.js", "style.css"} {
		text, err := os.ReadFile(filepath.Join("page", name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "://") || strings.Contains(string(text), "style=") || strings.Contains(string(text), "onclick") {
			t.Errorf("%s names another place, or what the policy forbids", name)
		}
	}
}
