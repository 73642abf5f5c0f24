package live

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/web"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/train"
)

// handler answers what the page asks.
func (v *View) handler() http.Handler {
	files, err := fs.Sub(pages, "page")
	if err != nil {
		panic(err) // the name is right
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /events", v.stream)
	mux.HandleFunc("GET /state.json", func(w http.ResponseWriter, _ *http.Request) { web.Send(w, http.StatusOK, v.news(&cursor{})) })
	mux.HandleFunc("GET /blocks.json", v.sendBlocks)
	mux.HandleFunc("GET /timeline.json", v.sendTimeline)
	mux.HandleFunc("POST /profile", v.ask)
	mux.HandleFunc("GET /profile.json", v.sendProfile)
	mux.HandleFunc("GET /profile/trace.json.gz", v.sendTrace)
	mux.HandleFunc("GET /profile/table.txt", v.sendTable)
	return mux
}

// refuse answers with an error as JSON.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	web.Refuse(w, status, fmt.Errorf(format, args...))
}

// cursor is how much somebody has seen.
type cursor struct {
	points, scores, notes int
	kinds                 float64 // seconds of the newest
	look                  int     // step of the newest
	started               bool
}

// mostPoints is how many steps those who come late are shown: each so many, and the last ones.
const mostPoints = 4000

// news is what somebody has not seen.
type news struct {
	Start    *begun       `json:"start,omitempty"`
	Now      float64      `json:"seconds"`
	Points   [][5]float64 `json:"points"` // step, loss, milliseconds, bytes used, bytes reserved
	Kinds    []kinds      `json:"kinds"`
	Looks    []train.Look `json:"looks,omitempty"`
	Memory   *memory      `json:"memory,omitempty"`
	Scores   any          `json:"scores,omitempty"` // all of them
	Scoring  [2]int       `json:"scoring"`
	Notes    []string     `json:"notes,omitempty"` // all that are kept
	Timeline int          `json:"timeline"`        // the number of the newest, 0 for none

	Findings []prof.Finding `json:"findings"` // of the newest window; null before the first
	Checked  string         `json:"checked,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	Profile  profile        `json:"profile"`
	Ended    *Ending        `json:"ended,omitempty"`
}

// begun is what is known from the start.
type begun struct {
	Task       string `json:"task"`
	Model      string `json:"model"`
	Device     string `json:"device"`
	Out        string `json:"out,omitempty"`
	Parameters int    `json:"parameters"`
	Done       int    `json:"done"`
	Steps      int    `json:"steps"`
	Batch      int    `json:"batch"`
	Computed   bool   `json:"computed"`
}

// memory is that of the device now, in bytes.
type memory struct {
	Used     int64 `json:"used"`
	Reserved int64 `json:"reserved"`
	Peak     int64 `json:"peak"`
	Total    int64 `json:"total"`
}

// news is what is new behind a cursor, which moves on.
func (v *View) news(c *cursor) *news {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := &news{Now: time.Since(v.began).Seconds(), Scoring: v.scoring, Timeline: v.number, Profile: v.profile, Ended: v.ended, Points: [][5]float64{}, Kinds: []kinds{}}
	if s := v.start; s != nil && !c.started {
		n.Start = &begun{s.Task, s.Model, s.Device, s.Out, s.Parameters, s.Done, s.Steps, s.Batch, s.Computed}
		c.started = true
	}
	stride := 1 + (len(v.points)-c.points)/mostPoints
	for i, p := range v.points[c.points:] {
		if i%stride == 0 || c.points+i == len(v.points)-1 {
			n.Points = append(n.Points, [5]float64{float64(p.Step), p.Loss, p.MS, float64(p.Used), float64(p.Reserved)})
		}
	}
	c.points = len(v.points)
	for _, k := range v.kinds {
		if k.Seconds > c.kinds {
			n.Kinds, c.kinds = append(n.Kinds, k), k.Seconds
		}
	}
	for i := range v.looks {
		if l := &v.looks[i]; l.Step > c.look {
			n.Looks, c.look = append(n.Looks, *l), l.Step
		}
	}
	if len(v.scores) > c.scores {
		n.Scores, c.scores = v.scores, len(v.scores)
	}
	if c.notes != v.noted {
		n.Notes, c.notes = v.notes, v.noted
	}
	if v.dev != nil {
		m := v.dev.Memory()
		n.Memory = &memory{m.Used, m.Reserved.Current, m.Peak, v.dev.Properties().Memory}
	}
	if f := v.found; f != nil {
		n.Findings, n.Checked, n.Summary = f.findings, f.checked, f.summary
	}
	return n
}

// Of the stream: the shortest time between two messages, and the longest, so that both sides see when the other has gone.
const (
	briefest = 200 * time.Millisecond
	longest  = 10 * time.Second
)

// stream sends what is new as it comes, as server-sent events, until the run has ended or the reader has gone. Each reader has a
// cursor of its own: a slow one gets more at a time, and nobody waits for it.
func (v *View) stream(w http.ResponseWriter, r *http.Request) {
	v.change(func() { v.viewers++ })
	defer v.change(func() { v.viewers-- })
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	c := new(cursor)
	for {
		v.mu.Lock()
		changed := v.changed
		v.mu.Unlock()
		n := v.news(c)
		text, err := json.Marshal(n)
		if err != nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(longest))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil || n.Ended != nil {
			return
		}
		time.Sleep(briefest)
		select {
		case <-changed:
		case <-time.After(longest):
		case <-r.Context().Done():
			return
		}
	}
}

// mostSteps is how many steps a profile may have.
const mostSteps = 1000

// ask takes a request for a profile of the next steps.
func (v *View) ask(w http.ResponseWriter, r *http.Request) {
	steps := 3
	if text := r.URL.Query().Get("steps"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostSteps {
			refuse(w, http.StatusBadRequest, "steps is %q: give a number from 1 to %d", text, mostSteps)
			return
		}
		steps = n
	}
	why := ""
	v.change(func() {
		switch s := v.profile.State; {
		case v.start == nil || v.dev == nil:
			why = "the run has not begun"
		case v.ended != nil:
			why = "the run has ended"
		case s == waiting || s == recording:
			why = "a profile is under way: one at a time"
		case !v.dev.Computes():
			why = v.dev.Name() + " computes nothing, and takes no time"
		case v.start.Steps-v.queued <= steps:
			why = fmt.Sprintf("%d steps are left, too few for a window of %d", max(0, v.start.Steps-v.queued), steps)
		default:
			v.profile = profile{State: waiting, Steps: steps, last: v.profile.last} // the one before is there until then
		}
	})
	if why != "" {
		refuse(w, http.StatusConflict, "%s", why)
		return
	}
	web.Send(w, http.StatusAccepted, map[string]any{"steps": steps, "state": "/profile.json", "trace": "/profile/trace.json.gz", "table": "/profile/table.txt"})
}

func (v *View) sendProfile(w http.ResponseWriter, _ *http.Request) {
	v.mu.Lock()
	p := v.profile
	v.mu.Unlock()
	web.Send(w, http.StatusOK, p)
}

// recorded is the profile that was asked for, or refuses.
func (v *View) recorded(w http.ResponseWriter) *prof.Profile {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.profile.last == nil {
		refuse(w, http.StatusNotFound, "there is no profile yet: POST /profile?steps=3 asks for one")
		return nil
	}
	return v.profile.last
}

func (v *View) sendTimeline(w http.ResponseWriter, _ *http.Request) {
	v.mu.Lock()
	p := v.timeline
	v.mu.Unlock()
	if p == nil {
		refuse(w, http.StatusNotFound, "there is no timeline yet")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = p.Trace(w, "timeline") // who asked may have gone
}

func (v *View) sendTrace(w http.ResponseWriter, _ *http.Request) {
	p := v.recorded(w)
	if p == nil {
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Disposition", `attachment; filename="trace.json.gz"`)
	z := gzip.NewWriter(w)
	if p.Trace(z, "trace.json.gz") == nil {
		_ = z.Close() // who asked may have gone
	}
}

// sendTable writes the table, by=op|module|line|shape|kernel and sort=COLUMN.
func (v *View) sendTable(w http.ResponseWriter, r *http.Request) {
	p := v.recorded(w)
	if p == nil {
		return
	}
	t := prof.Table{By: prof.Op, Sort: r.URL.Query().Get("sort"), Explain: r.URL.Query().Has("explain")}
	if name := r.URL.Query().Get("by"); name != "" {
		by, err := prof.ByName(name)
		if err != nil {
			refuse(w, http.StatusBadRequest, "%v: %s", err, advice.HintOf(err))
			return
		}
		t.By = by
	}
	var text strings.Builder
	if err := p.WriteTable(&text, t); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text.String()) // who asked may have gone
}
