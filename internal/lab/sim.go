package lab

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/simdebug"
	"github.com/warpline-ml/warpline/internal/simrun"
	"github.com/warpline-ml/warpline/internal/web"
)

// sims are launches that wait for somebody to look at them, as warpline sim debug has one. The oldest ends when there are too many.
type sims struct {
	mu  sync.Mutex
	all []*waiting
}

// waiting is one of them.
type waiting struct {
	id string
	mu sync.Mutex // a command at a time
	s  *simdebug.Session
}

// What people may have: launches at a time, commands of a request, and how long these may take.
const (
	mostSims     = 4
	mostAsked    = 40
	longestAsked = 10 * time.Second
)

func (x *waiting) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.s != nil {
		x.s.Close()
		x.s = nil
	}
}

// close ends all.
func (l *sims) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.all {
		x.close()
	}
	l.all = nil
}

// add keeps a launch.
func (l *sims) add(s *simdebug.Session) *waiting {
	x := &waiting{id: rand.Text(), s: s}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, x)
	for len(l.all) > mostSims {
		go l.all[0].close() // when its command is done
		l.all = l.all[1:]
	}
	return x
}

// take finds a launch, and forgets it if that is asked.
func (l *sims) take(id string, forget bool) *waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.all, func(x *waiting) bool { return x.id == id })
	if i < 0 {
		return nil
	}
	x := l.all[i]
	if forget {
		l.all = slices.Delete(l.all, i, i+1)
	}
	return x
}

// launch is what a query of the controls of a launch starts, and the words of the same in a terminal.
func (s *Server) launch(query string) (c simrun.Config, words []string, err error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return c, nil, advice.Failf("as in file=sum.ptx&grid=4", "%q is no query", query)
	}
	w := find("steps")
	if words, err = w.arguments(q, &s.files); err != nil {
		return c, nil, err
	}
	get := func(name string) string {
		if q.Has(name) {
			return q.Get(name)
		}
		i := slices.IndexFunc(w.Controls, func(c control) bool { return c.Name == name })
		return w.Controls[i].Value
	}
	if c.File, err = s.files.path(get("file")); err != nil {
		return c, nil, err
	}
	c.Kernel, c.Grid, c.Block, c.Card, c.Args = get("kernel"), get("grid"), get("block"), get("card"), strings.Fields(get("args"))
	c.Checks, c.Schedule, c.Numerics = "all", "reconverge", "float32" // as the command's flags are
	c.Shared = -1
	if n, err := strconv.Atoi(get("shared")); err == nil && n > 0 {
		c.Shared = n
	}
	return c, words, nil
}

// begin starts a launch, which waits at its first instruction.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Query string `json:"query"`
	}
	if !web.Body(w, r, MostBody, &asked) {
		return
	}
	c, words, err := s.launch(asked.Query)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), longestAsked)
	defer cancel()
	session, first, err := simdebug.Start(ctx, c)
	if err != nil {
		web.Refuse(w, http.StatusUnprocessableEntity, err)
		return
	}
	web.Send(w, http.StatusOK, map[string]any{"id": s.sims.add(session).id, "command": Quote(words), "first": first})
}

// commands carries out commands of a launch in their order, and answers with what each says.
func (s *Server) commands(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Commands [][]string `json:"commands"`
	}
	if !web.Body(w, r, MostBody, &asked) {
		return
	}
	x := s.sims.take(r.PathValue("id"), false)
	if x == nil {
		web.Refuse(w, http.StatusNotFound, advice.Failf("begin another", "the launch has ended"))
		return
	}
	if len(asked.Commands) > mostAsked {
		web.Refuse(w, http.StatusBadRequest, advice.Failf("give "+strconv.Itoa(mostAsked)+" at a time", "these are too many commands"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), longestAsked)
	defer cancel()
	replies, err := x.do(ctx, asked.Commands)
	if err != nil {
		s.sims.take(x.id, true)
		x.close()
		web.Refuse(w, http.StatusUnprocessableEntity, advice.Failf("begin another; set a breakpoint nearer", "the launch has ended: %v", err))
		return
	}
	web.Send(w, http.StatusOK, replies)
}

// do encodes each reply at once: what is in it are the session's own breakpoints, which later commands change.
func (x *waiting) do(ctx context.Context, commands [][]string) ([]json.RawMessage, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	replies := []json.RawMessage{}
	if x.s == nil {
		return nil, context.Canceled
	}
	for _, words := range commands {
		reply, err := x.s.Do(ctx, words)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(reply)
		if err != nil {
			return nil, err
		}
		replies = append(replies, raw)
	}
	return replies, nil
}

// end ends a launch.
func (s *Server) end(w http.ResponseWriter, r *http.Request) {
	if x := s.sims.take(r.PathValue("id"), true); x != nil {
		x.close()
	}
	w.WriteHeader(http.StatusNoContent)
}
