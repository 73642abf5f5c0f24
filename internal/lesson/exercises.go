package lesson

import (
	"context"
	"net/http"
	"time"

	"github.com/warpline-ml/warpline/internal/exercise"
	"github.com/warpline-ml/warpline/internal/web"
)

// judging bounds how long a puzzle of a page may run.
const judging = 30 * time.Second

// exercises is the page of all of them.
func (s *Site) exercises(w http.ResponseWriter, r *http.Request) {
	p, trouble := s.progress()
	var h piece
	h.WriteString(string(trouble))
	h.Add("<p>Exercises in Go are folders with tests, made by <code>warpline learn start NAME</code>. Kernel puzzles are solved here or in a folder: they run on a simulated GPU under all checks.</p>\n<ul class=\"exercises\">\n")
	for _, e := range exercise.All() {
		h.Add("<li><a href=\"/exercise/%s\">%s</a> <span class=\"minutes\">%d minutes</span>", e.Name, e.Title, e.Minutes)
		if _, passed := p.Exercises[e.Name]; passed {
			h.Add(" <span>passed</span>")
		}
		h.Add("</li>\n")
	}
	h.Add("</ul>\n")
	s.page(w, r, "Exercises", h.String())
}

// exercise is the page of one.
func (s *Site) exercise(w http.ResponseWriter, r *http.Request) {
	e, err := exercise.Find(r.PathValue("name"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	var h piece
	h.Add("<article data-exercise=\"%s\">\n<p>%s</p>\n", e.Name, inline(e.About))
	if e.Puzzle {
		h.puzzle(e)
	} else {
		h.Add("<p><code>warpline learn start %s</code> makes a folder with what it begins with and its tests, with <code>--source DIR</code> where DIR has Warpline's sources. There <code>go test</code> or <code>warpline learn check .</code> judges it.</p>\n", e.Name)
	}
	h.Add("<h2>Hints</h2>\n")
	for i, hint := range e.Hints {
		h.Add("<details data-hint=\"%d\"><summary>hint %d</summary><p>%s</p></details>\n", i+1, i+1, inline(hint))
	}
	h.solution(e)
	h.Add("</article>\n")
	s.page(w, r, e.Title, h.String())
}

// puzzle is a kernel to be changed and judged on the page.
func (p *piece) puzzle(e *exercise.Exercise) {
	ptx, source, err := e.Begin()
	if err != nil {
		return // it is in the program, which tests see
	}
	p.Add("<p>The kernel below does not do that yet. Change its PTX, the assembly language of all cards, and check it; <code>warpline learn start %s</code> makes a folder, for those who would rather change the CUDA C++.</p>\n", e.Name)
	p.Add("<details><summary>the same in CUDA C++</summary><pre tabindex=\"0\"><code>%s</code></pre></details>\n", source)
	p.Add("<form data-puzzle=\"%s\"><label for=\"ptx\">PTX of the kernel</label>\n<textarea id=\"ptx\" name=\"ptx\" data-param=\"ptx\" rows=\"24\" spellcheck=\"false\">\n%s</textarea>\n", e.Name, ptx)
	p.Add("<button type=\"submit\" data-action=\"check\">check</button>\n<div role=\"log\" tabindex=\"0\" aria-label=\"result\"></div>\n<p role=\"status\" data-value=\"pass\"></p></form>\n")
}

// solution is hidden until it is asked for.
func (p *piece) solution(e *exercise.Exercise) {
	files, err := e.Solution()
	if err != nil {
		return
	}
	p.Add("<details data-solution><summary>a solution</summary>\n")
	for _, f := range files {
		if f.Name != "puzzle.h" {
			p.Add("<h3>%s</h3><pre tabindex=\"0\"><code>%s</code></pre>\n", f.Name, f.Text)
		}
	}
	p.Add("</details>\n")
}

// check judges {"ptx":"…"} of a puzzle, one at a time.
func (s *Site) check(w http.ResponseWriter, r *http.Request) {
	e, err := exercise.Find(r.PathValue("name"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	var given struct {
		PTX string `json:"ptx"`
	}
	if !web.Body(w, r, mostAnswers, &given) {
		return
	}
	report, err := s.judged(r.Context(), e, given.PTX)
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, err)
		return
	}
	if report.Pass {
		err = s.change(func(p *Progress) error { return p.DidExercise(e.Name, time.Now()) })
	}
	answer(w, report, err)
}

// judged judges a puzzle when its turn has come.
func (s *Site) judged(ctx context.Context, e *exercise.Exercise, ptx string) (*exercise.Report, error) {
	s.judging.Lock()
	defer s.judging.Unlock()
	ctx, cancel := context.WithTimeout(ctx, judging)
	defer cancel()
	return e.Judge(ctx, ptx)
}
