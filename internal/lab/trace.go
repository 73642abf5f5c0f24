package lab

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/diagnose"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/web"
)

// views are the traces that pages look at: those that were asked of last.
type views struct {
	reading chan struct{} // of one: who reads a file
	mu      sync.Mutex
	all     []viewed // the one that was asked of last is the last
	idle    *time.Timer
}

type viewed struct {
	path string
	*kineto.View
}

// What is kept: some 50 bytes for each event, until nobody has asked for a while.
const (
	mostViews = 2
	idleViews = 10 * time.Minute
)

// of is the view of a file, which is read where it is not there. One file is read at a time, and those that are there need not wait for
// it; the error of who has gone meanwhile is that of ctx.
func (v *views) of(ctx context.Context, path string) (*kineto.View, error) {
	if kept := v.kept(path); kept != nil {
		return kept, nil
	}
	select {
	case v.reading <- struct{}{}:
		defer func() { <-v.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if kept := v.kept(path); kept != nil { // another has read it
		return kept, nil
	}
	v.shed(mostViews - 1)
	read, err := new(diagnose.Config).Look(ctx, path)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, viewed{path, read})
	return read, nil
}

// kept is the view of a file that was read, or nil.
func (v *views) kept(path string) *kineto.View {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.idle == nil {
		v.idle = time.AfterFunc(idleViews, v.close)
	}
	v.idle.Reset(idleViews)
	i := slices.IndexFunc(v.all, func(x viewed) bool { return x.path == path })
	if i < 0 {
		return nil
	}
	found := v.all[i]
	v.all = append(slices.Delete(v.all, i, i+1), found)
	return found.View
}

// shed forgets all but so many.
func (v *views) shed(most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = slices.Delete(v.all, 0, max(0, len(v.all)-most))
}

// close forgets all.
func (v *views) close() { v.shed(0) }

// asked is what is asked of a trace.
type asked struct {
	ctx  context.Context
	path string
	v    *kineto.View
	q    url.Values
}

// number is a whole number of a query that the view may have, or 0.
func (a *asked) number(name string) int64 {
	n, _ := strconv.ParseInt(a.q.Get(name), 10, 64)
	return max(min(n, 1<<62), 0)
}

// trace answers with what is asked of a file.
func (s *Server) trace(answer func(w http.ResponseWriter, a *asked)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path, err := s.files.path(r.PathValue("file"))
		if err != nil {
			web.Refuse(w, http.StatusNotFound, err)
			return
		}
		v, err := s.views.of(r.Context(), path)
		if r.Context().Err() != nil {
			return // who asked has gone
		}
		if err != nil { // which names the file as it is kept
			web.Refuse(w, http.StatusUnprocessableEntity, advice.Failf("drop a trace of torch.profiler, or one that warpline writes", "%s", strings.ReplaceAll(err.Error(), path, "the file")))
			return
		}
		answer(w, &asked{r.Context(), path, v, r.URL.Query()})
	}
}

// traces adds what a page asks that looks at a trace.
func (s *Server) traces() {
	for path, answer := range map[string]func(w http.ResponseWriter, a *asked){"": overview, "/tile": tile, "/top": top, "/find": search, "/event": event} {
		s.mux.HandleFunc("GET /api/trace/{file}"+path, s.trace(answer))
	}
}

// overview tells what there is to see.
func overview(w http.ResponseWriter, a *asked) {
	web.Send(w, http.StatusOK, map[string]any{"span_ns": a.v.Span.Dur(), "events": a.v.Events, "left": a.v.Left, "cut": a.v.Cut, "levels": a.v.Levels(),
		"tile_lanes": kineto.TileLanes, "tile_ticks": kineto.TileTicks, "looks": kineto.Looks, "lanes": append([]kineto.Lane{}, a.v.Lanes...)})
}

// tile answers with a tile, which never changes.
func tile(w http.ResponseWriter, a *asked) {
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(a.v.Tile(int(a.number("level")), int(a.number("index")), int(a.number("block")))) // who asked may have gone
}

// What is told of a trace at a time.
const (
	mostNames = 20
	mostFound = 50
	mostLinks = 8
)

// top tells what takes the time of a window.
func top(w http.ResponseWriter, a *asked) {
	from, to := a.number("from"), a.number("to")
	names, events := a.v.Top(kineto.Window{Start: a.v.Span.Start + min(from, a.v.Span.Dur()), End: a.v.Span.Start + min(to, a.v.Span.Dur())}, mostNames)
	web.Send(w, http.StatusOK, map[string]any{"names": names, "events": events})
}

// search tells events by their names.
func search(w http.ResponseWriter, a *asked) {
	name := a.q.Get("name")
	if name == "" || len(name) > mostText {
		web.Refuse(w, http.StatusBadRequest, advice.Failf("give a part of a name, of at most "+strconv.Itoa(mostText)+" bytes", "%.40q cannot be found", name))
		return
	}
	behind := -1
	if a.q.Has("behind") {
		behind = int(a.number("behind"))
	}
	found, all := a.v.Find(name, behind, mostFound)
	web.Send(w, http.StatusOK, map[string]any{"found": found, "all": all})
}

// event tells all of one event, by its number or by where it is.
func event(w http.ResponseWriter, a *asked) {
	i := int(a.number("event"))
	if a.q.Has("lane") {
		at, ok := a.v.At(int(a.number("lane")), min(a.number("at"), a.v.Span.Dur()), min(a.number("near"), a.v.Span.Dur()))
		if !ok {
			web.Send(w, http.StatusOK, nil)
			return
		}
		i = at
	}
	e, ok := a.v.Event(i)
	if !ok {
		web.Refuse(w, http.StatusNotFound, advice.Failf("there are "+strconv.Itoa(a.v.Events), "there is no event %d", i))
		return
	}
	linked, links := a.v.Linked(i, mostLinks)
	answer := map[string]any{"event": e, "around": a.v.Around(i), "linked": linked, "links": links}
	if a.q.Has("event") {
		var whole struct{ Args json.RawMessage }
		raw, err := new(diagnose.Config).Event(a.ctx, a.path, e.Place)
		if err != nil {
			web.Refuse(w, http.StatusUnprocessableEntity, err)
			return
		}
		if json.Unmarshal(raw, &whole) == nil {
			answer["args"] = whole.Args
		}
	}
	web.Send(w, http.StatusOK, answer)
}
