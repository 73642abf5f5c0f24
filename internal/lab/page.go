package lab

import (
	"net/http"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/web"
)

// Page is what stands in the frame of the lab.
type Page struct {
	Title   string
	Body    string   // HTML
	Scripts []string // modules, by their addresses
	Styles  []string
}

// Write answers with a page.
func (s *Server) Write(w http.ResponseWriter, r *http.Request, p Page) {
	var h render.HTML
	h.Add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	h.Add("<title>%s · Warpline lab</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/assets/lab.css\">\n", p.Title)
	for _, at := range p.Styles {
		h.Add("<link rel=\"stylesheet\" href=\"%s\">\n", at)
	}
	for _, at := range append([]string{"/assets/lab.js"}, p.Scripts...) {
		h.Add("<script type=\"module\" src=\"%s\"></script>\n", at)
	}
	h.Add("</head>\n<body>\n<a class=\"skip\" href=\"#main\">to the content</a>\n")
	s.navigate(&h, r.URL.Path)
	h.Add("<main id=\"main\" tabindex=\"-1\">\n<h1>%s</h1>\n", p.Title)
	h.WriteString(p.Body)
	h.Add("</main>\n</body>\n</html>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(h.String())) // who asked may have gone
}

// navigate writes the navigation, in which the page at a path is marked.
func (s *Server) navigate(h *render.HTML, at string) {
	h.Add("<header><nav aria-label=\"lab\">\n<a class=\"home\" href=\"/\"")
	h.WriteString(current(at == "/"))
	h.Add(">Warpline lab</a>\n<button type=\"button\" class=\"menu\" aria-expanded=\"false\" aria-controls=\"places\">menu</button>\n<ul id=\"places\">\n")
	for _, l := range s.links {
		h.WriteString("<li>")
		h.Add("<a href=\"%s\"", l.path)
		h.WriteString(current(at == l.path || strings.HasSuffix(l.path, "/") && strings.HasPrefix(at, l.path)))
		h.Add(">%s</a></li>\n", l.title)
	}
	h.Add("</ul></nav></header>\n")
}

// current marks the place where one is.
func current(here bool) string {
	if here {
		return ` aria-current="page"`
	}
	return ""
}

// home is the first page.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	var h render.HTML
	h.Add("<p>Everything on these pages is computed by the program that serves them, Warpline %s: nothing is fetched from elsewhere.</p>\n<ul class=\"places\">\n", s.config.Version)
	for _, l := range s.links {
		h.Add("<li><a href=\"%s\">%s</a></li>\n", l.path, l.title)
	}
	h.Add("</ul>\n")
	s.Write(w, r, Page{Title: "The lab", Body: h.String()})
}

// found answers with what is there, and where there is nothing with a way back: a page, or an error for scripts.
func (s *Server) found(w http.ResponseWriter, r *http.Request) {
	m := &missing{ResponseWriter: w}
	s.mux.ServeHTTP(m, r)
	switch {
	case m.status == 0:
	case strings.HasPrefix(r.URL.Path, "/api/"):
		web.Refuse(w, m.status, advice.Failf("docs/lab.md lists what can be asked", "%s %.100s: %s", r.Method, r.URL.Path, http.StatusText(m.status)))
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(m.status)
		var h render.HTML
		h.Add("<p>There is no page %.100s here. <a href=\"/\">The first page</a> lists all.</p>\n", r.URL.Path)
		s.Write(w, r, Page{Title: http.StatusText(m.status), Body: h.String()})
	}
}

// missing keeps back what package http says of addresses and methods that it does not know: a line of text.
type missing struct {
	http.ResponseWriter
	status int
}

func (m *missing) WriteHeader(status int) {
	text := strings.HasPrefix(m.Header().Get("Content-Type"), "text/plain")
	if (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) && text {
		m.status = status
		return
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *missing) Write(b []byte) (int, error) {
	if m.status != 0 {
		return len(b), nil
	}
	return m.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController, which flushes.
func (m *missing) Unwrap() http.ResponseWriter { return m.ResponseWriter }
