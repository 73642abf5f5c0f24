package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/web"
)

// runs is the training that a page has started, one at a time: warpline train with its own live view, which is shown under this
// address.
type runs struct {
	mu      sync.Mutex
	cancel  context.CancelFunc
	ended   chan struct{}
	state   string // "", running, done, error
	command string
	view    string            // the address of its live view, while it runs
	lines   []json.RawMessage // what it has printed
	problem *advice.Error
}

// mostLines is how many lines of a training are kept.
const mostLines = 20_000

// close stops the training, and waits for it.
func (t *runs) close() {
	t.mu.Lock()
	cancel, ended := t.cancel, t.ended
	t.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}

// train starts a training of what a query of the controls says.
func (s *Server) train(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Query string `json:"query"`
	}
	if !web.Body(w, r, MostBody, &asked) {
		return
	}
	q, err := url.ParseQuery(asked.Query)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, advice.Failf("as in task=mlp&steps=200", "the query cannot be read"))
		return
	}
	args, err := find("training").arguments(q, &s.files)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, err)
		return
	}
	args = append(args, "--out="+filepath.Join(s.config.Dir, "runs", time.Now().Format("2006-01-02-150405.000")))
	if !s.runs.begin(s.config.Command, args) {
		web.Refuse(w, http.StatusConflict, advice.Failf("stop it first", "a training is under way"))
		return
	}
	web.Send(w, http.StatusOK, map[string]string{"command": Quote(args)})
}

// begin runs a command line, unless another is under way.
func (t *runs) begin(command Command, args []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == "running" {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel, t.ended, t.state, t.command, t.view, t.lines, t.problem = cancel, make(chan struct{}), "running", Quote(args), "", nil, nil
	out, in := io.Pipe()
	var said strings.Builder
	go func() {
		status := command(ctx, append(args, "--listen=127.0.0.1:0", "--json"), in, &said)
		in.Close()
		<-t.ended
		t.mu.Lock()
		defer t.mu.Unlock()
		t.view, t.state = "", "done"
		if status > 1 && ctx.Err() == nil {
			t.state = "error"
			t.problem = told(said.String())
		}
		cancel()
	}()
	go t.read(out, t.ended)
	return true
}

// read keeps what a training prints: the address of its view first.
func (t *runs) read(out io.Reader, ended chan<- struct{}) {
	defer close(ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, MostBody)
	for lines.Scan() {
		var first struct{ URL string }
		line := append(json.RawMessage(nil), lines.Bytes()...)
		t.mu.Lock()
		switch {
		case t.view == "" && json.Unmarshal(line, &first) == nil && first.URL != "":
			t.view = first.URL
		case len(t.lines) < mostLines:
			t.lines = append(t.lines, line)
		}
		t.mu.Unlock()
	}
	if lines.Err() != nil { // a line was too long: the training goes on
		_, _ = io.Copy(io.Discard, out)
	}
}

// training tells how the training is, with the lines that it has printed behind those that are known.
func (s *Server) training(w http.ResponseWriter, r *http.Request) {
	t := &s.runs
	t.mu.Lock()
	defer t.mu.Unlock()
	from, err := strconv.Atoi(r.URL.Query().Get("from"))
	if err != nil || from < 0 || from > len(t.lines) {
		from = 0
	}
	answer := map[string]any{"state": t.state, "command": t.command, "from": from, "lines": append([]json.RawMessage{}, t.lines[from:]...)}
	if t.view != "" {
		answer["view"] = "/explore/training/live/"
	}
	if t.state == "error" {
		answer["error"], answer["hint"] = t.problem.Text, t.problem.Hint
	}
	web.Send(w, http.StatusOK, answer)
}

// stop ends the training at its next step, with a checkpoint.
func (s *Server) stop(w http.ResponseWriter, _ *http.Request) {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	if s.runs.cancel != nil {
		s.runs.cancel()
	}
	w.WriteHeader(http.StatusNoContent)
}

// direct asks servers of this machine, whatever proxies the environment names.
var direct = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// live shows the view of the training under this address.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	s.runs.mu.Lock()
	view := s.runs.view
	s.runs.mu.Unlock()
	if view == "" {
		web.Refuse(w, http.StatusNotFound, advice.Failf("start one on /explore/training", "no training is under way"))
		return
	}
	to := view + r.PathValue("path")
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	asked, err := http.NewRequestWithContext(r.Context(), r.Method, to, nil)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, err)
		return
	}
	answer, err := direct.Do(asked)
	if err != nil {
		web.Refuse(w, http.StatusBadGateway, advice.Failf("start another", "the training has ended"))
		return
	}
	defer answer.Body.Close()
	for _, name := range []string{"Content-Type", "Content-Disposition"} {
		if v := answer.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(answer.StatusCode)
	relay(w, answer.Body)
}

// relay passes on what comes as it comes.
func relay(w http.ResponseWriter, from io.Reader) {
	out, buffer := http.NewResponseController(w), make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if _, failed := w.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
	}
}
