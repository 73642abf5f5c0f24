package lab

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/render"
)

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
	for i := range pages() {
		p := &pages()[i]
		s.Link("/explore/"+p.ID, p.Title)
		s.mux.HandleFunc("GET /explore/"+p.ID, func(w http.ResponseWriter, r *http.Request) { s.Write(w, r, p.page()) })
	}
	return nil
}

// page is the page of an explorer.
func (e *explorer) page() Page {
	var h render.HTML
	for _, text := range e.About {
		h.Add("<p>%s</p>\n", text)
	}
	h.Add("<p class=\"share\"><button type=\"button\" data-share>copy a link to this state</button> <span role=\"status\"></span></p>\n")
	for i := range e.Widgets {
		e.Widgets[i].section(&h)
	}
	p := Page{Title: e.Title, Body: h.String(), Scripts: []string{"/assets/explore.js"}}
	for _, name := range e.Scripts {
		p.Scripts = append(p.Scripts, "/assets/"+name)
	}
	return p
}

// section writes a widget.
func (w *widget) section(h *render.HTML) {
	h.Add("<section data-widget=\"%s\" data-state=\"idle\" aria-labelledby=\"title-%s\"", w.ID, w.ID)
	if w.Slow {
		h.Add(" data-slow")
	}
	if w.Needs != "" {
		h.Add(" data-needs=\"%s\"", w.Needs)
	}
	h.Add(">\n<h2 id=\"title-%s\">%s</h2>\n", w.ID, w.Title)
	if w.About != "" {
		h.Add("<p>%s</p>\n", w.About)
	}
	if len(w.Presets) > 0 {
		h.Add("<p class=\"presets\">")
		for _, p := range w.Presets {
			h.Add("<button type=\"button\" data-preset=\"%s\">%s</button> ", p.Set, p.Title)
		}
		h.Add("</p>\n")
	}
	h.Add("<div class=\"controls\">\n")
	for i := range w.Controls {
		w.Controls[i].input(h, w.ID)
	}
	h.Add("</div>\n")
	if len(w.Actions) > 0 {
		h.Add("<p class=\"actions\">")
		for _, a := range w.Actions {
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
	if len(w.Values) > 0 {
		h.Add("<dl class=\"values\" aria-live=\"polite\">\n")
		for _, v := range w.Values {
			v.output(h)
		}
		h.Add("</dl>\n")
	}
	h.Add("<div class=\"more\" data-more></div>\n<p class=\"command\">in a terminal: <code data-command></code></p>\n</section>\n")
}

// input writes a control with its label.
func (c *control) input(h *render.HTML, of string) {
	id := of + "-" + c.Name
	digits := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	switch c.Kind {
	case hidden:
		h.Add("<input type=\"hidden\" id=\"%s\" data-control=\"%s\" value=\"%s\">\n", id, c.Name, c.Value)
		return
	case check:
		h.Add("<div class=\"control check\"><input type=\"checkbox\" id=\"%s\" data-control=\"%s\"", id, c.Name)
		if c.Value == "true" {
			h.Add(" checked")
		}
		h.Add("> <label for=\"%s\">%s</label></div>\n", id, c.Label)
		return
	}
	h.Add("<div class=\"control\"><label for=\"%s\">%s</label> ", id, c.Label)
	switch c.Kind {
	case slider, percent:
		h.Add("<output for=\"%s\" class=\"echo\"></output><input type=\"range\" id=\"%s\" data-control=\"%s\" min=\"%s\" max=\"%s\" step=\"%s\" value=\"%s\"", id, id, c.Name, digits(c.Min), digits(c.Max), digits(c.Step), c.Value)
		if c.Kind == percent {
			h.Add(" data-unit=\"%%\"")
		}
		h.Add(">")
	case number:
		h.Add("<input type=\"number\" id=\"%s\" data-control=\"%s\" min=\"%s\" max=\"%s\" step=\"%s\" value=\"%s\">", id, c.Name, digits(c.Min), digits(c.Max), digits(c.Step), c.Value)
	case choice:
		h.Add("<select id=\"%s\" data-control=\"%s\">", id, c.Name)
		for _, o := range c.options() {
			h.Add("<option value=\"%s\"", o)
			if card, ok := cards.Find(o); c.From == "cards" && ok {
				h.Add(" data-sm=\"%s\"", strconv.Itoa(10*card.Compute[0]+card.Compute[1]))
			}
			if o == c.Value {
				h.Add(" selected")
			}
			h.Add(">%s</option>", o)
		}
		h.Add("</select>")
	case file:
		h.Add("<input type=\"hidden\" data-control=\"%s\" value=\"%s\"><input type=\"file\" id=\"%s\" data-file=\"%s\"> <output class=\"echo\">%s</output>", c.Name, c.Value, id, c.Name, c.Value)
	default:
		h.Add("<input type=\"text\" id=\"%s\" data-control=\"%s\" value=\"%s\" autocomplete=\"off\" spellcheck=\"false\">", id, c.Name, c.Value)
	}
	h.Add("</div>\n")
}

// output writes a figure, which scripts of the page fill in.
func (v *value) output(h *render.HTML) {
	h.Add("<div><dt>%s</dt><dd><output data-value=\"%s\" data-path=\"%s\" data-unit=\"%s\"", v.Label, v.Name, v.Path, v.Unit)
	if v.Side != "" {
		h.Add(" data-side=\"%s\"", v.Side)
	}
	h.Add(">–</output></dd></div>\n")
}
