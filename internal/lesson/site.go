package lesson

import (
	"encoding/json"
	"html"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/web"
)

// Frame writes a page: a title and its content as HTML, with the addresses of scripts and styles.
type Frame func(w http.ResponseWriter, r *http.Request, title, body string, scripts, styles []string)

// Site answers for lessons, checks and runs of listings.
type Site struct {
	Dir     string   // where progress is kept
	Version string   // of Warpline, for folders that are exported
	Frame   Frame    // of pages
	Program []string // the command that has "learn run"; nil: this program

	mu      sync.Mutex // of the progress
	judging sync.Mutex // of a puzzle
	runs    runs
}

// mostAnswers bounds the bodies of requests, in bytes.
const mostAnswers = 64 << 10

// Handler answers /learn/, /quiz/, /exercise/, /api/cells/ and /api/runs/. Who may ask is the server's to say.
func (s *Site) Handler() (http.Handler, error) {
	if s.Program == nil {
		var err error
		if s.Program, err = self(); err != nil {
			return nil, err
		}
	}
	s.runs = runs{program: s.Program, all: map[string]*run{}}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /learn/assets/", http.StripPrefix("/learn/assets/", http.FileServerFS(files)))
	mux.HandleFunc("GET /learn/{$}", s.list)
	mux.HandleFunc("GET /learn/{id}", s.lesson)
	mux.HandleFunc("POST /learn/{id}/read", s.done)
	mux.HandleFunc("GET /quiz/{id}", s.quiz)
	mux.HandleFunc("POST /quiz/{id}", s.judge)
	mux.HandleFunc("GET /exercise/{$}", s.exercises)
	mux.HandleFunc("GET /exercise/{name}", s.exercise)
	mux.HandleFunc("POST /exercise/{name}/check", s.check)
	mux.HandleFunc("POST /api/cells/{id}/runs", s.run)
	mux.HandleFunc("GET /api/cells/{id}/export", s.export)
	mux.HandleFunc("GET /api/runs/{id}/events", s.events)
	mux.HandleFunc("DELETE /api/runs/{id}", s.stop)
	return mux, nil
}

// Close ends what runs for pages.
func (s *Site) Close() { s.runs.close() }

func (s *Site) page(w http.ResponseWriter, r *http.Request, title, body string) {
	s.Frame(w, r, title, body, []string{"/learn/assets/lesson.js"}, []string{"/learn/assets/lesson.css"})
}

// progress reads what was done; where that fails the page is shown with the reason.
func (s *Site) progress() (*Progress, render.Markup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := LoadProgress(s.Dir)
	if err != nil {
		return &Progress{}, render.Markup("<p role=\"alert\">" + html.EscapeString(err.Error()) + "</p>\n")
	}
	return p, ""
}

// change notes something in the progress.
func (s *Site) change(f func(p *Progress) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := LoadProgress(s.Dir)
	if err != nil {
		return err
	}
	return f(p)
}

// list is the page of all lessons.
func (s *Site) list(w http.ResponseWriter, r *http.Request) {
	p, trouble := s.progress()
	var h piece
	h.Add("%s<p>Eleven lessons, in order. Programs in them run here, on any machine; a GPU is used where there is one.</p>\n<ol class=\"lessons\">\n", trouble)
	for _, l := range All() {
		_, done := p.Read[l.ID]
		h.Add("<li><a href=\"/learn/%s\">%s</a> <span class=\"minutes\">%d minutes</span> <span>%s</span></li>\n", l.ID, l.Title, l.Minutes, read01(done))
	}
	h.Add("</ol>\n<h2>Final checks</h2>\n<ul>\n")
	for _, q := range Quizzes() {
		h.Add("<li><a href=\"/quiz/%s\">%s</a>, %d questions", q.ID, q.Title, len(q.Questions))
		if score, ok := p.Scores[q.ID]; ok {
			h.Add(": best score %d %%", int(100*score+.5))
		}
		h.Add("</li>\n")
	}
	h.Add("</ul>\n<p><a href=\"/exercise/\">Exercises</a></p>\n")
	s.page(w, r, "Lessons", h.String())
}

func (s *Site) lesson(w http.ResponseWriter, r *http.Request) {
	l, ok := Find(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	p, trouble := s.progress()
	_, done := p.Read[l.ID]
	s.page(w, r, l.Title, string(trouble)+l.HTML(done)+beside(l))
}

// beside links a lesson's neighbours.
func beside(l *Lesson) string {
	var h piece
	h.Add("<nav class=\"beside\" aria-label=\"lessons\">")
	all := All()
	for i := range all {
		if all[i] != l {
			continue
		}
		if i > 0 {
			h.Add("<a rel=\"prev\" href=\"/learn/%s\">← %s</a> ", all[i-1].ID, all[i-1].Title)
		}
		if i+1 < len(all) {
			h.Add("<a rel=\"next\" href=\"/learn/%s\">%s →</a>", all[i+1].ID, all[i+1].Title)
		} else {
			h.Add("<a rel=\"next\" href=\"/quiz/b\">%s →</a>", "the final check")
		}
	}
	h.Add("</nav>\n")
	return h.String()
}

func (s *Site) done(w http.ResponseWriter, r *http.Request) {
	l, ok := Find(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	err := s.change(func(p *Progress) error { return p.DidRead(l.ID, time.Now()) })
	answer(w, map[string]string{"lesson": l.ID}, err)
}

func (s *Site) quiz(w http.ResponseWriter, r *http.Request) {
	q, ok := FindQuiz(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.page(w, r, q.Title, q.HTML())
}

// judge scores {"answers":[0,2,…]}.
func (s *Site) judge(w http.ResponseWriter, r *http.Request) {
	q, ok := FindQuiz(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	var given struct {
		Answers []int `json:"answers"`
	}
	if !web.Body(w, r, mostAnswers, &given) {
		return
	}
	result, err := q.Judge(given.Answers)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, err)
		return
	}
	err = s.change(func(p *Progress) error { return p.DidQuiz(q.ID, result.Score) })
	answer(w, result, err)
}

func (s *Site) run(w http.ResponseWriter, r *http.Request) {
	l, ok := lessons.Find(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	var given Setting
	if !web.Body(w, r, mostAnswers, &given) {
		return
	}
	id, err := s.runs.start(l, given)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, err)
		return
	}
	web.Send(w, http.StatusCreated, map[string]string{"id": id, "events": "/api/runs/" + id + "/events"})
}

// events are a run's, as a stream for an EventSource.
func (s *Site) events(w http.ResponseWriter, r *http.Request) {
	running, ok := s.runs.find(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	running.follow(r.Context(), func(e event) {
		text, err := json.Marshal(e)
		if err != nil {
			return // an event has only texts and numbers
		}
		_, _ = w.Write([]byte("data: " + string(text) + "\n\n")) // who asked may have gone, which ends the context
		_ = out.Flush()
	})
}

func (s *Site) stop(w http.ResponseWriter, r *http.Request) {
	running, ok := s.runs.find(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	running.stop()
	w.WriteHeader(http.StatusNoContent)
}

func (s *Site) export(w http.ResponseWriter, r *http.Request) {
	l, ok := lessons.Find(r.PathValue("id"))
	if !ok || l.Run == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="`+strings.ToLower(l.ID)+`.zip"`)
	_ = Export(w, l, s.Version) // who asked may have gone
}

// answer writes a value as JSON, or why there is none.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		web.Refuse(w, http.StatusInternalServerError, err)
		return
	}
	web.Send(w, http.StatusOK, v)
}
