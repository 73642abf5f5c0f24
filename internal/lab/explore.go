package lab

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/render"
)

// explorer is a page of widgets.
type explorer struct {
	id, title string
	about     []string // paragraphs
	widgets   []widget
	scripts   []string // besides explore.js
}

// explorers adds the pages and what scripts ask.
func (s *Server) explorers() error {
	s.files = files{dir: filepath.Join(s.config.Dir, "files")}
	if err := s.files.unpack(filepath.Join(s.config.Dir, "kernels")); err != nil {
		return advice.Explain(err, "give a folder that can be written with --dir")
	}
	s.large = append(s.large, "/api/files")
	s.mux.HandleFunc("GET /api/widgets", list)
	s.mux.HandleFunc("GET /api/widgets/{id}", s.widget)
	s.mux.HandleFunc("POST /api/files", s.files.put)
	s.mux.HandleFunc("POST /api/sim", s.begin)
	s.mux.HandleFunc("POST /api/sim/{id}", s.commands)
	s.mux.HandleFunc("DELETE /api/sim/{id}", s.end)
	s.mux.HandleFunc("POST /api/training", s.train)
	s.mux.HandleFunc("GET /api/training", s.training)
	s.mux.HandleFunc("DELETE /api/training", s.stop)
	s.mux.HandleFunc("GET /explore/training/live/{path...}", s.live)
	s.mux.HandleFunc("POST /explore/training/live/{path...}", s.live)
	s.traces()
	for i := range pages {
		p := &pages[i]
		s.Link("/explore/"+p.id, p.title)
		s.mux.HandleFunc("GET /explore/"+p.id, func(w http.ResponseWriter, r *http.Request) { s.Write(w, r, p.page()) })
	}
	return nil
}

// page is the page of an explorer.
func (e *explorer) page() Page {
	var h render.HTML
	for _, text := range e.about {
		h.Add("<p>%s</p>\n", text)
	}
	h.Add("<p class=\"share\"><button type=\"button\" data-share>copy a link to this state</button> <span role=\"status\"></span></p>\n")
	for i := range e.widgets {
		e.widgets[i].section(&h)
	}
	p := Page{Title: e.title, Body: h.String(), Scripts: []string{"/assets/explore.js"}}
	for _, name := range e.scripts {
		p.Scripts = append(p.Scripts, "/assets/"+name)
	}
	return p
}

// section writes a widget.
func (w *widget) section(h *render.HTML) {
	h.Add("<section data-widget=\"%s\" data-state=\"idle\" aria-labelledby=\"title-%s\"", w.id, w.id)
	if w.slow {
		h.Add(" data-slow")
	}
	if w.needs != "" {
		h.Add(" data-needs=\"%s\"", w.needs)
	}
	h.Add(">\n<h2 id=\"title-%s\">%s</h2>\n", w.id, w.title)
	if w.about != "" {
		h.Add("<p>%s</p>\n", w.about)
	}
	if len(w.presets) > 0 {
		h.Add("<p class=\"presets\">")
		for _, p := range w.presets {
			h.Add("<button type=\"button\" data-preset=\"%s\">%s</button> ", p.set.Encode(), p.title)
		}
		h.Add("</p>\n")
	}
	h.Add("<div class=\"controls\">\n")
	for i := range w.controls {
		w.controls[i].input(h, w.id)
	}
	h.Add("</div>\n")
	if len(w.actions) > 0 {
		h.Add("<p class=\"actions\">")
		for _, a := range w.actions {
			word, title, _ := strings.Cut(a, "=")
			main := ""
			if word == "start" {
				main = "main"
			}
			h.Add("<button type=\"button\" class=\"%s\" data-action=\"%s\">%s</button> ", main, word, title)
		}
		h.Add("</p>\n")
	}
	h.Add("<p class=\"problem\" role=\"alert\" hidden></p>\n<div class=\"picture\" data-picture></div>\n")
	if len(w.values) > 0 {
		h.Add("<dl class=\"values\" aria-live=\"polite\">\n")
		for _, v := range w.values {
			v.output(h)
		}
		h.Add("</dl>\n")
	}
	h.Add("<div class=\"more\" data-more></div>\n<p class=\"command\">in a terminal: <code data-command></code></p>\n</section>\n")
}

// input writes a control with its label.
func (c *control) input(h *render.HTML, of string) {
	id := of + "-" + c.name
	digits := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	switch c.kind {
	case hidden:
		h.Add("<input type=\"hidden\" id=\"%s\" data-control=\"%s\" value=\"%s\">\n", id, c.name, c.value)
		return
	case check:
		h.Add("<div class=\"control check\"><input type=\"checkbox\" id=\"%s\" data-control=\"%s\"", id, c.name)
		if c.value == "true" {
			h.Add(" checked")
		}
		h.Add("> <label for=\"%s\">%s</label></div>\n", id, c.label)
		return
	}
	h.Add("<div class=\"control\"><label for=\"%s\">%s</label> ", id, c.label)
	switch c.kind {
	case slider, percent:
		h.Add("<output for=\"%s\" class=\"echo\"></output><input type=\"range\" id=\"%s\" data-control=\"%s\" min=\"%s\" max=\"%s\" step=\"%s\" value=\"%s\"", id, id, c.name, digits(c.min), digits(c.max), digits(c.step), c.value)
		if c.kind == percent {
			h.Add(" data-unit=\"%%\"")
		}
		h.Add(">")
	case number:
		h.Add("<input type=\"number\" id=\"%s\" data-control=\"%s\" min=\"%s\" max=\"%s\" step=\"%s\" value=\"%s\">", id, c.name, digits(c.min), digits(c.max), digits(c.step), c.value)
	case choice:
		h.Add("<select id=\"%s\" data-control=\"%s\">", id, c.name)
		for _, o := range c.options {
			h.Add("<option value=\"%s\"", o)
			if o == c.value {
				h.Add(" selected")
			}
			h.Add(">%s</option>", o)
		}
		h.Add("</select>")
	case file:
		h.Add("<input type=\"hidden\" data-control=\"%s\" value=\"%s\"><input type=\"file\" id=\"%s\" data-file=\"%s\"> <output class=\"echo\">%s</output>", c.name, c.value, id, c.name, c.value)
	default:
		h.Add("<input type=\"text\" id=\"%s\" data-control=\"%s\" value=\"%s\" autocomplete=\"off\" spellcheck=\"false\">", id, c.name, c.value)
	}
	h.Add("</div>\n")
}

// output writes a figure, which scripts of the page fill in.
func (v *value) output(h *render.HTML) {
	h.Add("<div><dt>%s</dt><dd><output data-value=\"%s\" data-path=\"%s\" data-unit=\"%s\"", v.label, v.name, v.path, v.unit)
	if v.side != "" {
		h.Add(" data-side=\"%s\"", v.side)
	}
	h.Add(">–</output></dd></div>\n")
}
